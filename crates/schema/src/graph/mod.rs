//! The type graph: what may stand at a path of an object, and how patches
//! treat it.

mod build;

use std::{collections::HashMap, sync::OnceLock};

use serde_json::Value;

use crate::{
    definitions::definitions,
    facts::{self, Fact, ListType, PatchRule},
};

/// What a value may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// An object with known fields.
    Object,
    /// An object with any keys, and values of one type.
    Map,
    /// A list.
    List,
    /// A string.
    String,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A port number or name, a number or percentage.
    IntOrString,
    /// An amount: `"500m"`, `"1Gi"`, also a bare number.
    Quantity,
    /// A time in whole seconds, RFC 3339.
    Time,
    /// A time with six decimals, RFC 3339.
    MicroTime,
    /// Bytes in base64.
    Bytes,
    /// Any JSON; nothing is known of what is inside.
    Any,
}

/// A node of the type graph: the type of a value at one place. Two fields of
/// the same type can be different nodes, since patch rules belong to fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TypeRef(u32);

impl TypeRef {
    fn node(self) -> &'static Node {
        &graph().nodes[self.0 as usize]
    }

    /// The type of the field `name`; of any key's value in a map.
    #[must_use]
    pub fn field(self, name: &str) -> Option<Self> {
        let graph = graph();
        match graph.inside(self.node()) {
            Inside::Fields(fields) => fields.get(name).copied(),
            Inside::Items(item) if self.shape() == Shape::Map => Some(*item),
            _ => None,
        }
    }

    /// The fields of an object, in order of name; empty for all else.
    pub fn fields(self) -> impl Iterator<Item = (&'static str, Self)> {
        let mut fields: Vec<_> = match graph().inside(self.node()) {
            Inside::Fields(fields) => fields.iter().map(|(k, v)| (k.as_str(), *v)).collect(),
            _ => Vec::new(),
        };
        fields.sort_unstable_by_key(|(name, _)| *name);
        fields.into_iter()
    }

    /// The type of a list's elements, or of a map's values.
    #[must_use]
    pub fn items(self) -> Option<Self> {
        match graph().inside(self.node()) {
            Inside::Items(item) => Some(*item),
            _ => None,
        }
    }

    /// What the value may be.
    #[must_use]
    pub fn shape(self) -> Shape {
        self.node().shape
    }

    /// How strategic merge treats it.
    #[must_use]
    pub fn patch(self) -> PatchRule {
        self.node().fact.patch
    }

    /// How server-side apply owns a list. Lists of which nothing is said are
    /// atomic.
    #[must_use]
    pub fn list_type(self) -> ListType {
        self.node().fact.list.unwrap_or(ListType::Atomic)
    }

    /// What is said of the list's type, if anything.
    pub(crate) fn said_list_type(self) -> Option<ListType> {
        self.node().fact.list
    }

    /// The fields that tell a map list's items apart in server-side apply;
    /// empty for all other lists.
    #[must_use]
    pub fn list_map_keys(self) -> &'static [&'static str] {
        self.node().fact.keys
    }

    /// What a field that is a key of a map list is when it is left out: the
    /// default, or the zero of its type.
    #[must_use]
    pub fn key_default(self) -> Option<Value> {
        match (self.node().fact.default, self.shape()) {
            (Some(default), _) => Some(default.into()),
            (None, Shape::String) => Some("".into()),
            (None, Shape::Integer) => Some(0.into()),
            _ => None,
        }
    }

    /// Whether server-side apply owns an object or map as a whole.
    #[must_use]
    pub fn is_atomic(self) -> bool {
        self.node().fact.atomic
    }

    /// Whether the field is left out when its value is zero.
    #[must_use]
    pub fn omits_zero(self) -> bool {
        self.node().omits_zero
    }

    /// Whether it is a whole number of 32 bits, not 64.
    #[must_use]
    pub fn is_narrow(self) -> bool {
        self.node().narrow
    }

    /// The fields of an object that are always there, with their zero values.
    #[must_use]
    pub fn always(self) -> &'static [(&'static str, Value)] {
        let graph = graph();
        match &self.node().inside {
            Inside::SameAs(target) => &graph.nodes[target.0 as usize].always,
            _ => &self.node().always,
        }
    }

    /// The definition it refers to, if it is not written out in place.
    #[must_use]
    pub fn definition(self) -> Option<&'static str> {
        self.node().definition.as_deref()
    }
}

/// The type graph; built by the first call.
pub(crate) fn graph() -> &'static Graph {
    static GRAPH: OnceLock<Graph> = OnceLock::new();
    GRAPH.get_or_init(|| Graph::build(definitions(), &facts::read()))
}

/// The type graph over all definitions.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    nodes: Vec<Node>,
    definitions: HashMap<String, TypeRef>,
}

#[derive(Debug)]
struct Node {
    shape: Shape,
    inside: Inside,
    fact: Fact,
    definition: Option<String>,
    omits_zero: bool,
    narrow: bool,
    always: Vec<(&'static str, Value)>,
}

#[derive(Debug)]
enum Inside {
    Nothing,
    Fields(HashMap<String, TypeRef>),
    Items(TypeRef),
    /// What is inside the definition's own node.
    SameAs(TypeRef),
}

impl Graph {
    pub(crate) fn definition(&self, name: &str) -> Option<TypeRef> {
        self.definitions.get(name).copied()
    }

    fn inside<'a>(&'a self, node: &'a Node) -> &'a Inside {
        match &node.inside {
            // A definition's own node is never `SameAs`.
            Inside::SameAs(target) => &self.nodes[target.0 as usize].inside,
            inside => inside,
        }
    }
}

#[cfg(test)]
mod tests;
