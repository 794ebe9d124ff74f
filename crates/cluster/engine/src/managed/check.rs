//! Checks an applied configuration against its schema: only declared fields, values of the declared
//! types, and unique keys in lists. The messages equal Kubernetes'.

use longshore_builtin::json::as_go_shows;
use longshore_schema::{OwnedType, Ownership, Shape};
use serde_json::{Map, Value};

use super::{collect, element};

/// Returns the first problem of a configuration.
pub(super) fn configuration(at: OwnedType<'_>, config: &Map<String, Value>) -> Option<String> {
    let mut check = Check {
        path: String::new(),
        problems: Vec::new(),
    };
    check.fields(at, config);
    match check.problems.as_slice() {
        [] => None,
        [problem] => Some(problem.clone()),
        problems => Some(format!("errors:\n  {}", problems.join("\n  "))),
    }
}

struct Check {
    path: String,
    problems: Vec<String>,
}

impl Check {
    fn fail(&mut self, problem: &str) {
        let path = &self.path;
        self.problems.push(if path.is_empty() {
            problem.to_owned()
        } else {
            format!("{path}: {problem}")
        });
    }

    fn below(&mut self, element: &str, visit: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        element::format_into(element, &mut self.path);
        visit(self);
        self.path.truncate(length);
    }

    fn fields(&mut self, at: OwnedType<'_>, fields: &Map<String, Value>) {
        for (name, value) in fields {
            self.below(&element::field(name), |check| match at.field(name) {
                Some(below) => check.value(below, value),
                None => check.fail("field not declared in schema"),
            });
        }
    }

    fn value(&mut self, at: OwnedType<'_>, value: &Value) {
        match (at.shape(), value) {
            (_, Value::Null) | (Shape::Any, _) => {}
            (Shape::Object | Shape::Map, Value::Object(fields)) => self.fields(at, fields),
            (Shape::Object | Shape::Map, other) => {
                self.fail(&format!("expected map, got &{{{}}}", as_go_shows(other)));
            }
            (Shape::List, Value::Array(list)) => self.items(at, value, list),
            (Shape::List, other) => {
                self.fail(&format!("expected list, got &{{{}}}", as_go_shows(other)));
            }
            (Shape::Integer | Shape::Number, Value::Number(_)) => {}
            (Shape::Integer | Shape::Number, other) => {
                self.fail(&format!(
                    "expected numeric (int or float), got {}",
                    json_type_name(other)
                ));
            }
            (Shape::Boolean, Value::Bool(_)) => {}
            (Shape::Boolean, other) => {
                self.fail(&format!(
                    "expected boolean, got &{{{}}}",
                    as_go_shows(other)
                ));
            }
            (Shape::IntOrString | Shape::Quantity, other) => {
                if matches!(other, Value::Object(_) | Value::Array(_)) {
                    self.fail(&format!(
                        "expected any scalar, got &{{{}}}",
                        as_go_shows(other)
                    ));
                }
            }
            (_, Value::String(_)) => {}
            (_, other) => self.fail(&format!(
                "expected string, got &value.valueUnstructured{{Value:{}}}",
                as_go_shows(other)
            )),
        }
    }

    fn items(&mut self, at: OwnedType<'_>, value: &Value, list: &[Value]) {
        let ownership = at.ownership(value);
        if ownership == Ownership::Whole {
            for (index, item) in list.iter().enumerate() {
                self.below(&format!("i:{index}"), |check| {
                    check.value(at.items(), item);
                });
            }
            return;
        }
        let mut seen = std::collections::BTreeSet::new();
        for (index, item) in list.iter().enumerate() {
            let element = match collect::elements(at, ownership, std::slice::from_ref(item)) {
                Ok(mut elements) => elements.pop().map(|(element, _)| element),
                Err(problem) => {
                    self.fail(&format!("element {index}: {problem}"));
                    return;
                }
            };
            let Some(element) = element else { continue };
            if !seen.insert(element.clone()) {
                let mut key = String::new();
                element::format_into(&element, &mut key);
                self.fail(&format!("duplicate entries for key {key}"));
            }
            self.below(&element, |check| check.value(at.items(), item));
        }
    }
}

fn json_type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use longshore_model::Gvk;
    use longshore_schema::registry;
    use serde_json::json;

    use super::*;

    fn problem(config: Value) -> Option<String> {
        let root = registry().root(&Gvk::from_api_version("v1", "Pod"));
        let root = OwnedType::Builtin(root.unwrap());
        configuration(root, config.as_object().unwrap())
    }

    #[test]
    fn rule_18_a_configuration_must_match_its_schema() {
        let container = |container: Value| json!({"spec": {"containers": [container]}});
        for (config, expected) in [
            (json!({"foo": []}), ".foo: field not declared in schema"),
            (
                json!({"metadata": {"labels": {"x": 1}}}),
                ".metadata.labels.x: expected string, got &value.valueUnstructured{Value:1}",
            ),
            (
                json!({"metadata": {"labels": []}}),
                ".metadata.labels: expected map, got &{[]}",
            ),
            (
                json!({"spec": {"priority": "1"}}),
                ".spec.priority: expected numeric (int or float), got string",
            ),
            (
                container(json!({"image": "a", "name": "b", "ports": 5})),
                ".spec.containers[name=\"b\"].ports: expected list, got &{5}",
            ),
            (
                json!({"spec": {"containers": [{"name": "a"}, {"name": "a"}]}}),
                ".spec.containers: duplicate entries for key [name=\"a\"]",
            ),
            (
                json!({"metadata": {"finalizers": ["a", {}]}}),
                ".metadata.finalizers: element 1: associative list without keys has an element that's a map type",
            ),
            (
                json!({"a": 1, "b": 1}),
                "errors:\n  .a: field not declared in schema\n  .b: field not declared in schema",
            ),
        ] {
            assert_eq!(problem(config).as_deref(), Some(expected));
        }
        assert_eq!(
            problem(container(
                json!({"name": "a", "ports": [{"containerPort": 1}],
                "resources": {"limits": {"cpu": 1, "memory": "1Gi"}}, "args": null})
            )),
            None
        );
    }
}
