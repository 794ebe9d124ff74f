//! Builds the type graph from the definitions and the properties of their
//! fields.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{Contents, Graph, Node, Shape, TypeRef};
use crate::{
    definitions::reference,
    facts::{Fact, Facts},
    zeros,
};

impl Graph {
    pub(super) fn build(definitions: &Map<String, Value>, facts: &Facts) -> Self {
        let zeros = zeros::read();
        let mut graph = Self::default();
        // Create the nodes of all definitions first because they refer to one
        // another.
        for (name, schema) in definitions {
            let shape = special(name).unwrap_or_else(|| shape_of(schema));
            let fact = facts
                .get(name)
                .and_then(|facts| facts.get(""))
                .copied()
                .unwrap_or_default();
            let node = Node {
                shape,
                contents: Contents::Nothing,
                fact,
                definition: Some(name.clone()),
                omits_zero: false,
                narrow: false,
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
                let contents = graph.fields(schema, facts.get(name));
                if let (Contents::Fields(fields), Some(zeros)) = (&contents, zeros.get(name)) {
                    for TypeRef(field) in zeros.omitted.iter().filter_map(|name| fields.get(*name))
                    {
                        graph.nodes[*field as usize].omits_zero = true;
                    }
                }
                graph.nodes[index as usize].contents = contents;
            }
        }
        graph
    }

    fn push(&mut self, node: Node) -> TypeRef {
        self.nodes.push(node);
        TypeRef(u32::try_from(self.nodes.len() - 1).expect("the graph has a few thousand nodes"))
    }

    fn fields(&mut self, schema: &Value, facts: Option<&HashMap<&'static str, Fact>>) -> Contents {
        let Some(properties) = schema["properties"].as_object() else {
            return Contents::Nothing;
        };
        let mut fields = HashMap::with_capacity(properties.len());
        for (name, property) in properties {
            let fact = facts.and_then(|facts| facts.get(name.as_str())).copied();
            fields.insert(name.clone(), self.add(property, fact.unwrap_or_default()));
        }
        Contents::Fields(fields)
    }

    fn add(&mut self, schema: &Value, fact: Fact) -> TypeRef {
        if let Some(name) = reference(schema)
            && let Some(target) = self.definition(name)
        {
            let node = &self.nodes[target.0 as usize];
            let atomic = fact.atomic || node.fact.atomic;
            return self.push(Node {
                shape: node.shape,
                contents: Contents::SameAs(target),
                fact: Fact { atomic, ..fact },
                definition: Some(name.to_owned()),
                omits_zero: false,
                narrow: false,
                always: Vec::new(),
            });
        }
        let shape = shape_of(schema);
        let contents = match shape {
            Shape::List => Contents::Items(self.add(&schema["items"], Fact::default())),
            Shape::Map => {
                Contents::Items(self.add(&schema["additionalProperties"], Fact::default()))
            }
            Shape::Object => self.fields(schema, None),
            _ => Contents::Nothing,
        };
        self.push(Node {
            shape,
            contents,
            fact,
            definition: None,
            omits_zero: false,
            narrow: schema["format"] == "int32",
            always: Vec::new(),
        })
    }
}

/// Definitions whose JSON does not have the type in their schema.
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
        // The schema is empty.
        "CustomResourceSubresourceStatus" => Shape::Object,
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
