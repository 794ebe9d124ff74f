//! The type graph: the type of the value at each path of an object, and how
//! patches treat it.

mod build;

use std::{collections::HashMap, sync::OnceLock};

use serde_json::Value;

use crate::{
    definitions::outlines,
    facts::{self, Fact, ListType, PatchRule},
};

/// The kind of values that a type permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// An object with known fields.
    Object,
    /// An object with arbitrary keys and values of one type.
    Map,
    /// A list.
    List,
    /// A string.
    String,
    /// An integer.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A port number or name, or a number or percentage.
    IntOrString,
    /// An amount: `"500m"`, `"1Gi"`, or a plain number.
    Quantity,
    /// An RFC 3339 time in whole seconds.
    Time,
    /// An RFC 3339 time with six decimals.
    MicroTime,
    /// Base64-encoded bytes.
    Bytes,
    /// Any JSON; the contents have no declared type.
    Any,
}

/// A node of the type graph: the type of the value at a path. Two fields of the
/// same type can have different nodes because patch rules belong to fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TypeRef(u32);

impl TypeRef {
    fn node(self) -> &'static Node {
        &graph().nodes[self.0 as usize]
    }

    /// The type of the field `name`, or of every value in a map.
    #[must_use]
    pub fn field(self, name: &str) -> Option<Self> {
        let graph = graph();
        match graph.contents(self.node()) {
            Contents::Fields(fields) => fields.get(name).copied(),
            Contents::Items(item) if self.shape() == Shape::Map => Some(*item),
            _ => None,
        }
    }

    /// The fields of an object, sorted by name; empty for other types.
    pub fn fields(self) -> impl Iterator<Item = (&'static str, Self)> {
        let mut fields: Vec<_> = match graph().contents(self.node()) {
            Contents::Fields(fields) => fields.iter().map(|(k, v)| (*k, *v)).collect(),
            _ => Vec::new(),
        };
        fields.sort_unstable_by_key(|(name, _)| *name);
        fields.into_iter()
    }

    /// The type of a list's items or of a map's values.
    #[must_use]
    pub fn items(self) -> Option<Self> {
        match graph().contents(self.node()) {
            Contents::Items(item) => Some(*item),
            _ => None,
        }
    }

    /// The kind of values that the type permits.
    #[must_use]
    pub fn shape(self) -> Shape {
        self.node().shape
    }

    /// Returns the rule of strategic merge for the value.
    #[must_use]
    pub fn patch(self) -> PatchRule {
        self.node().fact.patch
    }

    /// Returns the rule by which server-side apply tracks a list. Lists without a declared list
    /// type are atomic.
    #[must_use]
    pub fn list_type(self) -> ListType {
        self.node().fact.list.unwrap_or(ListType::Atomic)
    }

    /// The declared list type, if any.
    pub(crate) fn declared_list_type(self) -> Option<ListType> {
        self.node().fact.list
    }

    /// The keys that identify the items of a map list in server-side apply;
    /// empty for other lists.
    #[must_use]
    pub fn list_map_keys(self) -> &'static [&'static str] {
        self.node().fact.keys
    }

    /// The value of an omitted key of a map list: its default, or the zero
    /// value of its type.
    #[must_use]
    pub fn key_default(self) -> Option<Value> {
        match (self.node().fact.default, self.shape()) {
            (Some(default), _) => Some(default.into()),
            (None, Shape::String) => Some("".into()),
            (None, Shape::Integer) => Some(0.into()),
            _ => None,
        }
    }

    /// Returns true if server-side apply owns an object or map as a whole.
    #[must_use]
    pub fn is_atomic(self) -> bool {
        self.node().fact.atomic
    }

    /// Returns true if the field is omitted when its value is zero.
    #[must_use]
    pub fn omits_zero(self) -> bool {
        self.node().omits_zero
    }

    /// Returns true if the type is a 32-bit integer, not a 64-bit one.
    #[must_use]
    pub fn is_narrow(self) -> bool {
        self.node().narrow
    }

    /// The fields of an object that are always present, with their zero values.
    #[must_use]
    pub fn always(self) -> &'static [(&'static str, Value)] {
        let graph = graph();
        match &self.node().contents {
            Contents::SameAs(target) => &graph.nodes[target.0 as usize].always,
            _ => &self.node().always,
        }
    }

    /// The definition that the type refers to, if it is not inline.
    #[must_use]
    pub fn definition(self) -> Option<&'static str> {
        self.node().definition
    }
}

/// The type graph; built on first use.
pub(crate) fn graph() -> &'static Graph {
    static GRAPH: OnceLock<Graph> = OnceLock::new();
    GRAPH.get_or_init(|| Graph::build(outlines(), &facts::read()))
}

/// The type graph of all definitions.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    nodes: Vec<Node>,
    definitions: HashMap<&'static str, TypeRef>,
}

#[derive(Debug)]
struct Node {
    shape: Shape,
    contents: Contents,
    fact: Fact,
    definition: Option<&'static str>,
    omits_zero: bool,
    narrow: bool,
    always: Vec<(&'static str, Value)>,
}

#[derive(Debug)]
enum Contents {
    Nothing,
    Fields(HashMap<&'static str, TypeRef>),
    Items(TypeRef),
    /// The same contents as the definition's own node.
    SameAs(TypeRef),
}

impl Graph {
    pub(crate) fn definition(&self, name: &str) -> Option<TypeRef> {
        self.definitions.get(name).copied()
    }

    fn contents<'a>(&'a self, node: &'a Node) -> &'a Contents {
        match &node.contents {
            // The node of a definition is never `SameAs`.
            Contents::SameAs(target) => &self.nodes[target.0 as usize].contents,
            contents => contents,
        }
    }
}

#[cfg(test)]
mod tests;
