//! `/scale`: an object as `Scale` of autoscaling/v1, for custom kinds by the
//! paths of their definition, for built-in kinds by those they always have.

use longshore_model::{KindInfo, StatusCause};
use serde_json::{Map, Value, json};

use crate::{Object, cause::Cause, json as js};

/// Where the parts of a `Scale` stand in an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScalePaths {
    spec: String,
    status: String,
    selector: Selector,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Selector {
    None,
    /// A text at a path.
    Text(String),
    /// `spec.selector`, as a label selector.
    Labels,
    /// `spec.selector`, as a map.
    Map,
}

/// The paths of a built-in kind.
pub(crate) fn builtin_scale(info: &KindInfo) -> Option<ScalePaths> {
    info.has_subresource("scale").then(|| ScalePaths {
        spec: ".spec.replicas".into(),
        status: ".status.replicas".into(),
        selector: if info.gvk.kind == "ReplicationController" {
            Selector::Map
        } else {
            Selector::Labels
        },
    })
}

fn plain(path: &str) -> &str {
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

    /// Where the wanted number of replicas stands.
    pub(crate) fn spec_path(&self) -> &str {
        &self.spec
    }

    /// The `Scale` of an object.
    ///
    /// # Errors
    /// In words, when the object has another type there.
    pub(crate) fn scale(&self, stored: &Object, object: &js::Object) -> Result<Value, String> {
        let number = |path: &str| match js::at(object, plain(path)) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value.as_i64().map(Some).ok_or_else(|| {
                format!("{path} accessor error: {value} is of another type, expected int64")
            }),
        };
        let mut status = json!({"replicas": number(&self.status)?.unwrap_or_default()});
        let selector = match &self.selector {
            Selector::None => String::new(),
            Selector::Text(path) => js::text(object, plain(path)).to_owned(),
            Selector::Labels => label_selector(js::at(object, "spec.selector")),
            Selector::Map => equalities(js::at(object, "spec.selector")).join(","),
        };
        if !selector.is_empty() {
            status["selector"] = selector.into();
        }
        let mut spec = json!({});
        // None of them is left out, as Kubernetes' own type does.
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

    /// Puts the wanted number of replicas into an object.
    pub(crate) fn set(&self, object: &mut js::Object, replicas: i64) {
        let mut parts: Vec<&str> = plain(&self.spec).split('.').collect();
        let last = parts.pop().unwrap_or_default();
        let mut at = object;
        for part in parts {
            at = js::child(at, part);
        }
        at.insert(last.to_owned(), replicas.into());
    }

    /// What is wrong with the numbers of a custom object.
    pub(super) fn check(&self, object: &js::Object, causes: &mut Vec<StatusCause>) {
        check_number(object, &self.spec, causes);
        self.check_status(object, causes);
    }

    pub(super) fn check_status(&self, object: &js::Object, causes: &mut Vec<StatusCause>) {
        check_number(object, &self.status, causes);
        if let Selector::Text(path) = &self.selector
            && let Some(value) = js::at(object, plain(path))
            && !value.is_string()
        {
            let why = format!("{path} accessor error: {value} is of another type, expected string");
            causes.push(Cause::invalid(path, "", &why));
        }
    }
}

fn check_number(object: &js::Object, path: &str, causes: &mut Vec<StatusCause>) {
    let Some(value) = js::at(object, plain(path)) else {
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

/// A label selector as text.
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
    fn label_selectors_have_their_usual_text() {
        let selector = json!({"matchLabels": {"b": "1", "a": "2"}, "matchExpressions": [
            {"key": "c", "operator": "In", "values": ["y", "x"]},
            {"key": "aa", "operator": "DoesNotExist"},
            {"key": "d", "operator": "Exists"}]});
        assert_eq!(label_selector(Some(&selector)), "a=2,!aa,b=1,c in (x,y),d");
        assert_eq!(label_selector(None), "");
    }
}
