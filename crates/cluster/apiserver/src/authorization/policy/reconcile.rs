//! Finds the changes that bring a stored role or binding up to date with its default. As in
//! Kubernetes, permissions and subjects that others added are kept.

use serde_json::{Map, Value};

use super::objects::AUTO_UPDATE;
use crate::authorization::{
    index::role_of,
    rule::{Rule, missing},
};

/// A change of a stored object.
#[derive(Debug, PartialEq)]
pub(super) enum Change {
    None,
    /// Store this object.
    Update(Value),
    /// Delete the object and create its default: the role of a binding cannot be changed.
    Recreate,
}

/// Compares a stored object with its default.
pub(super) fn reconcile(stored: &Value, default: &Value) -> Change {
    if stored["metadata"]["annotations"][AUTO_UPDATE] == "false" {
        return Change::None;
    }
    if default["roleRef"] != stored["roleRef"] {
        return Change::Recreate;
    }
    let mut object = stored.clone();
    for field in ["annotations", "labels"] {
        add_missing(&mut object["metadata"][field], &default["metadata"][field]);
    }
    if default["roleRef"].is_null() {
        add_rules(&mut object, stored, default);
        reconcile_aggregation(&mut object, default);
    } else {
        append_missing(&mut object, "subjects", &default["subjects"]);
    }
    if object == *stored {
        Change::None
    } else {
        Change::Update(object)
    }
}

/// Adds the entries of a map that another lacks.
fn add_missing(map: &mut Value, default: &Value) {
    let Some(default) = default.as_object() else {
        return;
    };
    if !map.is_object() {
        *map = Value::Object(Map::new());
    }
    if let Some(map) = map.as_object_mut() {
        for (key, value) in default {
            map.entry(key.as_str()).or_insert_with(|| value.clone());
        }
    }
}

/// Appends the elements of a list that a field of an object lacks.
fn append_missing(object: &mut Value, field: &str, default: &Value) {
    let own = object[field].as_array().cloned().unwrap_or_default();
    let default = default.as_array().into_iter().flatten();
    let new: Vec<Value> = default.filter(|one| !own.contains(one)).cloned().collect();
    if !new.is_empty() {
        object[field] = own.into_iter().chain(new).collect();
    }
}

fn add_rules(object: &mut Value, stored: &Value, default: &Value) {
    let (Ok(own), Ok(wanted)) = (role_of(stored), role_of(default)) else {
        return;
    };
    if !default["aggregationRule"].is_null() && !stored["aggregationRule"].is_null() {
        // The controller aggregates the rules.
        return;
    }
    let owned: Vec<&Rule> = own.rules.iter().collect();
    // The default roles are small.
    let missing = missing(&owned, wanted.rules.iter()).unwrap_or_default();
    let missing: Vec<Value> = missing
        .iter()
        .filter_map(|rule| serde_json::to_value(rule).ok())
        .collect();
    append_missing(object, "rules", &missing.into());
}

fn reconcile_aggregation(object: &mut Value, default: &Value) {
    let wanted = &default["aggregationRule"];
    if wanted.is_null() {
        if let Some(object) = object.as_object_mut() {
            object.remove("aggregationRule");
        }
        return;
    }
    if object["aggregationRule"].is_null() {
        object["aggregationRule"] = Value::Object(Map::new());
    }
    let selectors = "clusterRoleSelectors";
    append_missing(
        &mut object["aggregationRule"],
        selectors,
        &wanted[selectors],
    );
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn role(verbs: &[&str], auto_update: &str) -> Value {
        json!({
            "metadata": {"name": "r", "annotations": {AUTO_UPDATE: auto_update},
                         "labels": {"l": "default"}},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": verbs}],
        })
    }

    #[test]
    fn missing_permissions_are_added() {
        let default = role(&["get", "list"], "true");
        assert_eq!(reconcile(&default, &default), Change::None);
        let more = role(&["get", "list", "watch"], "true");
        assert_eq!(reconcile(&more, &default), Change::None);
        let mut less = role(&["get"], "true");
        less["metadata"]["labels"] = json!({"l": "own"});
        let Change::Update(object) = reconcile(&less, &default) else {
            panic!("no update");
        };
        assert_eq!(object["rules"][0], less["rules"][0]);
        let added = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]});
        assert_eq!(object["rules"][1], added);
        assert_eq!(object["metadata"]["labels"]["l"], "own");
        assert_eq!(reconcile(&role(&["get"], "false"), &default), Change::None);
    }

    #[test]
    fn aggregated_roles_keep_their_rules() {
        let mut default = role(&["get"], "true");
        let selector = json!({"matchLabels": {"a": "b"}});
        default["aggregationRule"] = json!({"clusterRoleSelectors": [selector]});
        let mut stored = default.clone();
        stored["rules"] = json!([]);
        assert_eq!(reconcile(&stored, &default), Change::None);
        stored["aggregationRule"]["clusterRoleSelectors"] = json!([{"matchLabels": {"c": "d"}}]);
        let Change::Update(object) = reconcile(&stored, &default) else {
            panic!("no update");
        };
        let selectors = &object["aggregationRule"]["clusterRoleSelectors"];
        assert_eq!(selectors[1], selector);
        assert_eq!(reconcile(&object, &default), Change::None);
    }

    #[test]
    fn bindings_get_missing_subjects_and_the_right_role() {
        let binding = |role: &str, subjects: Value| {
            json!({
                "metadata": {"name": "b", "annotations": {AUTO_UPDATE: "true"}},
                "roleRef": {"kind": "ClusterRole", "name": role},
                "subjects": subjects,
            })
        };
        let (a, b) = (json!({"name": "a"}), json!({"name": "b"}));
        let default = binding("r", json!([a]));
        assert_eq!(
            reconcile(&binding("q", json!([a])), &default),
            Change::Recreate
        );
        let stored = binding("r", json!([b]));
        let Change::Update(object) = reconcile(&stored, &default) else {
            panic!("no update");
        };
        assert_eq!(object["subjects"], json!([b, a]));
        assert_eq!(reconcile(&object, &default), Change::None);
    }
}
