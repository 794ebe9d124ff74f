//! The `/scale` subresource: converts objects to and from `Scale` of
//! autoscaling/v1. Custom kinds define the paths in their
//! CustomResourceDefinition; built-in kinds have fixed paths.

use longshore_builtin::{KindRules, PodSelector, cause::Cause, json as js};
use longshore_model::{CauseList, KindInfo};
use serde_json::{Map, Value, json};

use crate::Object;

/// Paths of the fields of a `Scale` within an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScalePaths {
    spec: String,
    status: String,
    selector: Selector,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Selector {
    None,
    /// A string at a path.
    Text(String),
    /// `spec.selector` is a label selector.
    Labels,
    /// `spec.selector` is a map of labels.
    Map,
}

/// The paths of a built-in kind.
pub(crate) fn builtin_scale(info: &KindInfo, rules: &KindRules) -> Option<ScalePaths> {
    info.has_subresource("scale").then(|| ScalePaths {
        spec: ".spec.replicas".into(),
        status: ".status.replicas".into(),
        selector: match rules.pod_selector {
            PodSelector::Map => Selector::Map,
            PodSelector::Labels => Selector::Labels,
        },
    })
}

fn without_leading_dot(path: &str) -> &str {
    path.trim_start_matches('.')
}

impl ScalePaths {
    pub(super) fn parse(scale: &Value) -> Self {
        let text = |name: &str| scale[name].as_str().unwrap_or_default().to_owned();
        Self {
            spec: text("specReplicasPath"),
            status: text("statusReplicasPath"),
            selector: match text("labelSelectorPath") {
                path if path.is_empty() => Selector::None,
                path => Selector::Text(path),
            },
        }
    }

    /// Path of the desired number of replicas.
    pub(crate) fn spec_path(&self) -> &str {
        &self.spec
    }

    /// Returns the `Scale` of an object.
    ///
    /// # Errors
    /// Returns a message if the value at a path has the wrong type.
    pub(crate) fn scale(&self, stored: &Object, object: &js::Object) -> Result<Value, String> {
        let number = |path: &str| match js::at(object, without_leading_dot(path)) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value.as_i64().map(Some).ok_or_else(|| {
                format!("{path} accessor error: {value} is of another type, expected int64")
            }),
        };
        let mut status = json!({"replicas": number(&self.status)?.unwrap_or_default()});
        let selector = match &self.selector {
            Selector::None => String::new(),
            Selector::Text(path) => js::text(object, without_leading_dot(path)).to_owned(),
            Selector::Labels => label_selector(js::at(object, "spec.selector")),
            Selector::Map => equalities(js::at(object, "spec.selector")).join(","),
        };
        if !selector.is_empty() {
            status["selector"] = selector.into();
        }
        let mut spec = json!({});
        // Omit a zero, as Kubernetes does.
        if let Some(replicas) = number(&self.spec)?.filter(|replicas| *replicas != 0) {
            spec["replicas"] = replicas.into();
        }
        let mut metadata = Map::new();
        for field in ["name", "namespace", "uid", "creationTimestamp"] {
            if let Some(value) = js::at(object, &format!("metadata.{field}")) {
                metadata.insert(field.into(), value.clone());
            }
        }
        metadata.insert(
            "resourceVersion".into(),
            stored.revision().to_string().into(),
        );
        Ok(json!({
            "apiVersion": "autoscaling/v1", "kind": "Scale",
            "metadata": metadata, "spec": spec, "status": status,
        }))
    }

    /// Sets the desired number of replicas of an object.
    pub(crate) fn set(&self, object: &mut js::Object, replicas: i64) {
        let mut parts: Vec<&str> = without_leading_dot(&self.spec).split('.').collect();
        let last = parts.pop().unwrap_or_default();
        let mut at = object;
        for part in parts {
            at = js::child(at, part);
        }
        at.insert(last.to_owned(), replicas.into());
    }

    /// Validates the replica counts of a custom object.
    pub(super) fn check(&self, object: &js::Object, causes: &mut CauseList) {
        check_number(object, &self.spec, causes);
        self.check_status(object, causes);
    }

    pub(super) fn check_status(&self, object: &js::Object, causes: &mut CauseList) {
        check_number(object, &self.status, causes);
        if let Selector::Text(path) = &self.selector
            && let Some(value) = js::at(object, without_leading_dot(path))
            && !value.is_string()
        {
            let why = format!("{path} accessor error: {value} is of another type, expected string");
            causes.push(Cause::invalid(path, "", &why));
        }
    }
}

fn check_number(object: &js::Object, path: &str, causes: &mut CauseList) {
    let Some(value) = js::at(object, without_leading_dot(path)) else {
        return;
    };
    let why = match value.as_i64() {
        None => format!("{path} accessor error: {value} is of another type, expected int64"),
        Some(number) if number < 0 => "should be a non-negative integer".to_owned(),
        Some(number) if number > i64::from(i32::MAX) => {
            format!("should be less than or equal to {}", i32::MAX)
        }
        Some(_) => return,
    };
    causes.push(Cause::invalid(
        path,
        value.as_i64().unwrap_or_default(),
        &why,
    ));
}

fn equalities(map: Option<&Value>) -> Vec<String> {
    let pairs = map.and_then(Value::as_object).into_iter().flatten();
    pairs
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect()
}

/// Formats a label selector.
fn label_selector(selector: Option<&Value>) -> String {
    let Some(selector) = selector else {
        return String::new();
    };
    let mut parts = equalities(selector.get("matchLabels"));
    for rule in selector["matchExpressions"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let key = rule["key"].as_str().unwrap_or_default();
        let mut values: Vec<&str> = rule["values"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        values.sort_unstable();
        let values = values.join(",");
        parts.push(match rule["operator"].as_str() {
            Some("In") => format!("{key} in ({values})"),
            Some("NotIn") => format!("{key} notin ({values})"),
            Some("DoesNotExist") => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    parts.sort_by(|a, b| a.trim_start_matches('!').cmp(b.trim_start_matches('!')));
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_selectors_are_formatted_as_by_kubernetes() {
        let selector = json!({"matchLabels": {"b": "1", "a": "2"}, "matchExpressions": [
            {"key": "c", "operator": "In", "values": ["y", "x"]},
            {"key": "aa", "operator": "DoesNotExist"},
            {"key": "d", "operator": "Exists"}]});
        assert_eq!(label_selector(Some(&selector)), "a=2,!aa,b=1,c in (x,y),d");
        assert_eq!(label_selector(None), "");
    }
}
