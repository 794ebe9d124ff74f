//! Decides how to change a stored object by its default. Pure.

use longshore_model::flow_control::{AUTO_UPDATE, DefaultObject, EXEMPT};
use serde_json::{Value, json};

/// The change of an object.
#[derive(Debug, PartialEq)]
pub(super) enum Change {
    None,
    Create(Value),
    /// Replace the stored object by this object.
    Replace(Value),
    /// Delete a default object of another release.
    Delete,
}

/// Compares the stored object with the default of the same name. As in Kubernetes, the annotation
/// of a suggested object decides whether its spec is kept up to date.
pub(super) fn change(default: Option<&DefaultObject>, stored: Option<Value>) -> Change {
    let (default, mut object) = match (default, stored) {
        (None, None) => return Change::None,
        (Some(default), None) => return Change::Create(default.object()),
        (None, Some(object)) => {
            return match auto_update(&object) {
                Some(true) => Change::Delete,
                _ => Change::None,
            };
        }
        (Some(default), Some(object)) => (default, object),
    };
    let annotated = auto_update(&object);
    let is_new = object["metadata"]["generation"] == 1;
    let updates = default.is_mandatory || annotated.unwrap_or(is_new);
    let wanted = wanted_spec(default, &object);
    let spec_differs = updates && wanted != object["spec"];
    if !spec_differs && annotated == Some(updates) {
        return Change::None;
    }
    if spec_differs {
        object["spec"] = default.spec();
    }
    if annotated != Some(updates) {
        let annotations = &mut object["metadata"]["annotations"];
        if annotations.is_null() {
            *annotations = json!({});
        }
        annotations[AUTO_UPDATE] = updates.to_string().into();
    }
    Change::Replace(object)
}

/// The spec of a default. The shares of the level `exempt` may be changed.
fn wanted_spec(default: &DefaultObject, stored: &Value) -> Value {
    let mut wanted = default.spec();
    let shares = &stored["spec"]["exempt"];
    if default.name == EXEMPT && wanted["exempt"].is_object() && shares.is_object() {
        wanted["exempt"] = shares.clone();
    }
    wanted
}

/// Returns the value of the annotation, parsed like a boolean in Go.
fn auto_update(object: &Value) -> Option<bool> {
    match object["metadata"]["annotations"][AUTO_UPDATE].as_str()? {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use longshore_model::flow_control::{LEVELS, SCHEMAS};

    use super::*;

    fn find(all: &'static [DefaultObject], name: &str) -> &'static DefaultObject {
        all.iter().find(|default| default.name == name).unwrap()
    }

    #[test]
    fn missing_defaults_are_created_and_others_are_left_alone() {
        let probes = find(SCHEMAS, "probes");
        assert_eq!(change(Some(probes), None), Change::Create(probes.object()));
        assert_eq!(change(None, None), Change::None);
        let with =
            |annotation: &str| json!({"metadata": {"annotations": {AUTO_UPDATE: annotation}}});
        assert_eq!(change(None, Some(json!({}))), Change::None);
        assert_eq!(change(None, Some(with("false"))), Change::None);
        assert_eq!(change(None, Some(with("what"))), Change::None);
        assert_eq!(change(None, Some(with("True"))), Change::Delete);
        for default in LEVELS.iter().chain(SCHEMAS) {
            assert_eq!(change(Some(default), Some(default.object())), Change::None);
        }
    }

    #[test]
    fn mandatory_specs_are_restored() {
        let catch_all = find(SCHEMAS, "catch-all");
        let mut changed = catch_all.object();
        changed["metadata"]["resourceVersion"] = "7".into();
        changed["metadata"]["annotations"][AUTO_UPDATE] = "false".into();
        changed["spec"]["matchingPrecedence"] = 5.into();
        let mut expected = catch_all.object();
        expected["metadata"]["resourceVersion"] = "7".into();
        assert_eq!(
            change(Some(catch_all), Some(changed)),
            Change::Replace(expected)
        );
    }

    #[test]
    fn the_annotation_decides_about_suggested_specs() {
        let system = find(LEVELS, "system");
        let changed = |annotation: Value, generation: u32| {
            let mut object = system.object();
            object["metadata"]["generation"] = generation.into();
            object["metadata"]["annotations"] = match annotation {
                Value::Null => Value::Null,
                text => json!({AUTO_UPDATE: text}),
            };
            object["spec"]["limited"]["nominalConcurrencyShares"] = 7.into();
            object
        };
        let own = changed("false".into(), 2);
        assert_eq!(change(Some(system), Some(own)), Change::None);
        let Change::Replace(restored) = change(Some(system), Some(changed("true".into(), 2)))
        else {
            panic!("not restored");
        };
        assert_eq!(restored["spec"], system.spec());
        // Without the annotation, a changed object keeps its spec and gets the annotation.
        let Change::Replace(kept) = change(Some(system), Some(changed(Value::Null, 2))) else {
            panic!("not annotated");
        };
        assert_eq!(kept, changed("false".into(), 2));
        let Change::Replace(restored) = change(Some(system), Some(changed(Value::Null, 1))) else {
            panic!("not restored");
        };
        assert_eq!(restored["spec"], system.spec());
        assert_eq!(restored["metadata"]["annotations"][AUTO_UPDATE], "true");
    }

    #[test]
    fn the_shares_of_exempt_may_be_changed() {
        let exempt = find(LEVELS, EXEMPT);
        let mut object = exempt.object();
        object["spec"]["exempt"]["nominalConcurrencyShares"] = 9.into();
        assert_eq!(change(Some(exempt), Some(object.clone())), Change::None);
        object["spec"] = json!({"type": "Limited", "limited": {}});
        let Change::Replace(restored) = change(Some(exempt), Some(object)) else {
            panic!("not restored");
        };
        assert_eq!(restored["spec"], exempt.spec());
    }
}
