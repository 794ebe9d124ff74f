//! Builds the type graph from the definitions and the properties of their
//! fields.

use std::collections::HashMap;

use super::{Contents, Graph, Node, Shape, TypeRef};
use crate::{
    definitions::Outline,
    facts::{Fact, Facts},
    zeros,
};

impl Graph {
    pub(super) fn build(
        definitions: impl Iterator<Item = (&'static str, Outline<'static>)>,
        facts: &Facts,
    ) -> Self {
        let zeros = zeros::read();
        let mut graph = Self::default();
        // Create the nodes of all definitions first because they refer to one
        // another.
        let definitions: Vec<_> = definitions.collect();
        for (name, schema) in &definitions {
            let shape = special(name).unwrap_or_else(|| shape_of(schema));
            let fact = facts
                .get(*name)
                .and_then(|facts| facts.get(""))
                .copied()
                .unwrap_or_default();
            let node = Node {
                shape,
                contents: Contents::Nothing,
                fact,
                definition: Some(name),
                omits_zero: false,
                narrow: false,
                always: zeros
                    .get(*name)
                    .map_or_else(Vec::new, |zeros| zeros.always.clone()),
            };
            let reference = graph.push(node);
            graph.definitions.insert(*name, reference);
        }
        for (name, schema) in &definitions {
            let Some(&TypeRef(index)) = graph.definitions.get(name) else {
                continue;
            };
            if graph.nodes[index as usize].shape == Shape::Object {
                let contents = graph.fields(schema, facts.get(*name));
                if let (Contents::Fields(fields), Some(zeros)) = (&contents, zeros.get(*name)) {
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

    fn fields(
        &mut self,
        schema: &Outline<'static>,
        facts: Option<&HashMap<&'static str, Fact>>,
    ) -> Contents {
        let Some(properties) = &schema.properties else {
            return Contents::Nothing;
        };
        let mut fields = HashMap::with_capacity(properties.len());
        for (name, property) in properties {
            let fact = facts.and_then(|facts| facts.get(name)).copied();
            fields.insert(*name, self.add(property, fact.unwrap_or_default()));
        }
        Contents::Fields(fields)
    }

    fn add(&mut self, schema: &Outline<'static>, fact: Fact) -> TypeRef {
        if let Some(name) = schema.reference()
            && let Some(target) = self.definition(name)
        {
            let node = &self.nodes[target.0 as usize];
            let atomic = fact.atomic || node.fact.atomic;
            return self.push(Node {
                shape: node.shape,
                contents: Contents::SameAs(target),
                fact: Fact { atomic, ..fact },
                definition: Some(name),
                omits_zero: false,
                narrow: false,
                always: Vec::new(),
            });
        }
        let shape = shape_of(schema);
        let contents = match shape {
            Shape::List => self.items(schema.items.as_deref()),
            Shape::Map => self.items(schema.additional_properties.as_deref()),
            Shape::Object => self.fields(schema, None),
            _ => Contents::Nothing,
        };
        self.push(Node {
            shape,
            contents,
            fact,
            definition: None,
            omits_zero: false,
            narrow: schema.format == Some("int32"),
            always: Vec::new(),
        })
    }

    fn items(&mut self, schema: Option<&Outline<'static>>) -> Contents {
        let any = Outline::default();
        Contents::Items(self.add(schema.unwrap_or(&any), Fact::default()))
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

fn shape_of(schema: &Outline<'_>) -> Shape {
    match schema.kind {
        Some("object") if schema.properties.is_some() => Shape::Object,
        Some("object") if schema.additional_properties.is_some() => Shape::Map,
        Some("array") => Shape::List,
        Some("string") => match schema.format {
            Some("byte") => Shape::Bytes,
            _ => Shape::String,
        },
        Some("integer") => Shape::Integer,
        Some("number") => Shape::Number,
        Some("boolean") => Shape::Boolean,
        _ => Shape::Any,
    }
}
