//! The type graph: what may stand at a path of an object, and how patches
//! treat it.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::{
    facts::{Fact, Facts},
    registry::{DEFINITIONS, registry},
    zeros,
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

/// How a strategic merge patch treats a list or an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Strategy {
    /// Lists are replaced, objects merged field by field.
    #[default]
    Replace,
    /// A list is merged: by the merge key, or as a set of plain values.
    Merge,
    /// An object: fields that `$retainKeys` does not name are dropped.
    RetainKeys,
    /// A list merged by its key, in whose items `$retainKeys` counts.
    MergeRetainKeys,
    /// An object that is replaced as a whole.
    ReplaceObject,
}

/// The strategic-merge rule of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PatchRule {
    /// The field that tells a list's items apart.
    pub merge_key: Option<&'static str>,
    /// How patches change the field.
    pub strategy: Strategy,
}

/// How server-side apply owns a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ListType {
    /// As a whole.
    Atomic,
    /// Value by value.
    Set,
    /// Item by item, told apart by [`TypeRef::list_map_keys`].
    Map,
}

/// A node of the type graph: the type of a value at one place. Two fields of
/// the same type can be different nodes, since patch rules belong to fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TypeRef(u32);

impl TypeRef {
    fn node(self) -> &'static Node {
        &registry().graph.nodes[self.0 as usize]
    }

    /// The type of the field `name`; of any key's value in a map.
    #[must_use]
    pub fn field(self, name: &str) -> Option<Self> {
        let graph = &registry().graph;
        match graph.inside(self.node()) {
            Inside::Fields(fields) => fields.get(name).copied(),
            Inside::Items(item) if self.shape() == Shape::Map => Some(*item),
            _ => None,
        }
    }

    /// The fields of an object, in order of name; empty for all else.
    pub fn fields(self) -> impl Iterator<Item = (&'static str, Self)> {
        let mut fields: Vec<_> = match registry().graph.inside(self.node()) {
            Inside::Fields(fields) => fields.iter().map(|(k, v)| (k.as_str(), *v)).collect(),
            _ => Vec::new(),
        };
        fields.sort_unstable_by_key(|(name, _)| *name);
        fields.into_iter()
    }

    /// The type of a list's elements, or of a map's values.
    #[must_use]
    pub fn items(self) -> Option<Self> {
        match registry().graph.inside(self.node()) {
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

    /// The fields of an object that are always there, with their zero values.
    #[must_use]
    pub fn always(self) -> &'static [(&'static str, Value)] {
        let graph = &registry().graph;
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

    pub(crate) fn build(definitions: &Map<String, Value>, facts: &Facts) -> Self {
        let zeros = zeros::read();
        let mut graph = Self::default();
        // All definitions get their node first: they refer to one another.
        for (name, schema) in definitions {
            let shape = special(name).unwrap_or_else(|| shape_of(schema));
            let fact = facts
                .get(name)
                .and_then(|facts| facts.get(""))
                .copied()
                .unwrap_or_default();
            let node = Node {
                shape,
                inside: Inside::Nothing,
                fact,
                definition: Some(name.clone()),
                omits_zero: false,
                always: zeros
                    .get(name)
                    .map_or_else(Vec::new, |zeros| zeros.always.clone()),
            };
            let reference = graph.push(node);
            graph.definitions.insert(name.clone(), reference);
        }
        for (name, schema) in definitions {
            let Some(&TypeRef(index)) = graph.definitions.get(name) else {
                continue;
            };
            if graph.nodes[index as usize].shape == Shape::Object {
                let inside = graph.fields(schema, facts.get(name));
                if let (Inside::Fields(fields), Some(zeros)) = (&inside, zeros.get(name)) {
                    for TypeRef(field) in zeros.omitted.iter().filter_map(|name| fields.get(*name))
                    {
                        graph.nodes[*field as usize].omits_zero = true;
                    }
                }
                graph.nodes[index as usize].inside = inside;
            }
        }
        graph
    }

    fn push(&mut self, node: Node) -> TypeRef {
        self.nodes.push(node);
        TypeRef(u32::try_from(self.nodes.len() - 1).expect("some thousand nodes"))
    }

    fn fields(&mut self, schema: &Value, facts: Option<&HashMap<&'static str, Fact>>) -> Inside {
        let Some(properties) = schema["properties"].as_object() else {
            return Inside::Nothing;
        };
        let mut fields = HashMap::with_capacity(properties.len());
        for (name, property) in properties {
            let fact = facts.and_then(|facts| facts.get(name.as_str())).copied();
            fields.insert(name.clone(), self.add(property, fact.unwrap_or_default()));
        }
        Inside::Fields(fields)
    }

    fn add(&mut self, schema: &Value, fact: Fact) -> TypeRef {
        if let Some(name) = reference(schema)
            && let Some(target) = self.definition(name)
        {
            let node = &self.nodes[target.0 as usize];
            let atomic = fact.atomic || node.fact.atomic;
            return self.push(Node {
                shape: node.shape,
                inside: Inside::SameAs(target),
                fact: Fact { atomic, ..fact },
                definition: Some(name.to_owned()),
                omits_zero: false,
                always: Vec::new(),
            });
        }
        let shape = shape_of(schema);
        let inside = match shape {
            Shape::List => Inside::Items(self.add(&schema["items"], Fact::default())),
            Shape::Map => Inside::Items(self.add(&schema["additionalProperties"], Fact::default())),
            Shape::Object => self.fields(schema, None),
            _ => Inside::Nothing,
        };
        self.push(Node {
            shape,
            inside,
            fact,
            definition: None,
            omits_zero: false,
            always: Vec::new(),
        })
    }
}

/// The definition that a schema refers to, plainly or through `allOf`.
pub(crate) fn reference(schema: &Value) -> Option<&str> {
    schema["$ref"]
        .as_str()
        .or_else(|| schema["allOf"][0]["$ref"].as_str())?
        .strip_prefix(DEFINITIONS)
}

/// Definitions whose JSON is not what their schema's type says.
fn special(definition: &str) -> Option<Shape> {
    Some(match definition.rsplit('.').next()? {
        "Quantity" => Shape::Quantity,
        "IntOrString" => Shape::IntOrString,
        "Time" => Shape::Time,
        "MicroTime" => Shape::MicroTime,
        "RawExtension" | "FieldsV1" | "JSON" | "Patch" => Shape::Any,
        "JSONSchemaPropsOrArray" | "JSONSchemaPropsOrBool" | "JSONSchemaPropsOrStringArray" => {
            Shape::Any
        }
        _ => return None,
    })
}

fn shape_of(schema: &Value) -> Shape {
    match schema["type"].as_str() {
        Some("object") if schema["properties"].is_object() => Shape::Object,
        Some("object") if schema["additionalProperties"].is_object() => Shape::Map,
        Some("array") => Shape::List,
        Some("string") => match schema["format"].as_str() {
            Some("byte") => Shape::Bytes,
            _ => Shape::String,
        },
        Some("integer") => Shape::Integer,
        Some("number") => Shape::Number,
        Some("boolean") => Shape::Boolean,
        _ => Shape::Any,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use longshore_model::Gvk;

    use super::*;

    fn at(api_version: &str, kind: &str, path: &str) -> TypeRef {
        let root = registry()
            .root(&Gvk::from_api_version(api_version, kind))
            .unwrap();
        path.split('.').fold(root, |at, name| match name {
            "*" => at.items().unwrap(),
            name => at.field(name).unwrap_or_else(|| panic!("{path}: {name}")),
        })
    }

    #[test]
    fn shapes() {
        let shapes = [
            ("metadata", Shape::Object),
            ("metadata.labels", Shape::Map),
            ("metadata.labels.any", Shape::String),
            ("metadata.creationTimestamp", Shape::Time),
            ("metadata.managedFields.*.fieldsV1", Shape::Any),
            ("spec.containers", Shape::List),
            ("spec.containers.*.resources.limits.cpu", Shape::Quantity),
            ("spec.containers.*.ports.*.containerPort", Shape::Integer),
            (
                "spec.containers.*.livenessProbe.httpGet.port",
                Shape::IntOrString,
            ),
            ("spec.hostNetwork", Shape::Boolean),
        ];
        for (path, shape) in shapes {
            assert_eq!(at("v1", "Pod", path).shape(), shape, "{path}");
        }
        assert_eq!(at("v1", "Secret", "data.key").shape(), Shape::Bytes);
        assert_eq!(
            at("coordination.k8s.io/v1", "Lease", "spec.renewTime").shape(),
            Shape::MicroTime
        );
        assert_eq!(at("v1", "Pod", "spec").field("nonsense"), None);
    }

    #[test]
    fn patch_rules() {
        let rules = [
            ("spec.containers", Some("name"), Strategy::Merge),
            ("spec.initContainers", Some("name"), Strategy::Merge),
            (
                "spec.ephemeralContainers.*.env",
                Some("name"),
                Strategy::Merge,
            ),
            ("spec.volumes", Some("name"), Strategy::MergeRetainKeys),
            ("spec.containers.*.env", Some("name"), Strategy::Merge),
            ("spec.containers.*.envFrom", None, Strategy::Replace),
            ("spec.containers.*.command", None, Strategy::Replace),
            (
                "spec.containers.*.ports",
                Some("containerPort"),
                Strategy::Merge,
            ),
            (
                "spec.containers.*.volumeMounts",
                Some("mountPath"),
                Strategy::Merge,
            ),
            (
                "spec.containers.*.volumeDevices",
                Some("devicePath"),
                Strategy::Merge,
            ),
            ("spec.hostAliases", Some("ip"), Strategy::Merge),
            ("spec.imagePullSecrets", Some("name"), Strategy::Merge),
            ("spec.tolerations", None, Strategy::Replace),
            (
                "spec.topologySpreadConstraints",
                Some("topologyKey"),
                Strategy::Merge,
            ),
            ("status.conditions", Some("type"), Strategy::Merge),
            ("status.podIPs", Some("ip"), Strategy::Merge),
            ("metadata.ownerReferences", Some("uid"), Strategy::Merge),
            ("metadata.finalizers", None, Strategy::Merge),
        ];
        for (path, merge_key, strategy) in rules {
            assert_eq!(
                at("v1", "Pod", path).patch(),
                PatchRule {
                    merge_key,
                    strategy
                },
                "{path}"
            );
        }
        assert_eq!(
            at("v1", "Service", "spec.ports").patch().merge_key,
            Some("port")
        );
        assert_eq!(
            at("v1", "Node", "status.addresses").patch().merge_key,
            Some("type")
        );
        assert_eq!(
            at("apps/v1", "Deployment", "spec.strategy")
                .patch()
                .strategy,
            Strategy::RetainKeys
        );
    }

    #[test]
    fn apply_keys() {
        let ports = at("v1", "Pod", "spec.containers.*.ports");
        assert_eq!(ports.list_map_keys(), ["containerPort", "protocol"]);
        assert_eq!(ports.list_type(), ListType::Map);
        assert_eq!(
            at("v1", "Service", "spec.ports").list_map_keys(),
            ["port", "protocol"]
        );
        assert_eq!(
            at("v1", "Pod", "spec.topologySpreadConstraints").list_map_keys(),
            ["topologyKey", "whenUnsatisfiable"]
        );
        assert_eq!(
            at("v1", "Pod", "metadata.finalizers").list_type(),
            ListType::Set
        );
        assert_eq!(
            at("v1", "Pod", "spec.tolerations").list_type(),
            ListType::Atomic
        );
        assert!(at("batch/v1", "Job", "spec.selector").is_atomic());
        assert!(!at("batch/v1", "Job", "spec").is_atomic());
    }
}
