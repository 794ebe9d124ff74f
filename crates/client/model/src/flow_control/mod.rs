//! API priority and fairness: the FlowSchemas and PriorityLevelConfigurations that every
//! cluster has, and the condition of FlowSchemas, as in Kubernetes.

mod defaults;

use serde_json::{Value, json};

pub use defaults::{DefaultObject, LEVELS, SCHEMAS};

/// The API group.
pub const GROUP: &str = "flowcontrol.apiserver.k8s.io";
/// The field manager of the default objects.
pub const PRODUCER: &str = "api-priority-and-fairness-config-producer-v1";
/// The field manager of the condition.
pub const CONSUMER: &str = "api-priority-and-fairness-config-consumer-v1";
/// The annotation that lets the server keep the spec of an object up to date.
pub const AUTO_UPDATE: &str = "apf.kubernetes.io/autoupdate-spec";
/// The type of the condition.
pub const DANGLING: &str = "Dangling";
/// The name of the FlowSchema and of the level of requests that are never limited.
pub const EXEMPT: &str = "exempt";

/// The condition of a FlowSchema that refers to a level, which exists or not.
#[must_use]
pub fn dangling(level: &str, exists: bool, now: &str) -> Value {
    let (status, reason, end) = match exists {
        true => ("False", "Found", "and it exists"),
        false => ("True", "NotFound", "but there is no such object"),
    };
    json!({
        "type": DANGLING,
        "status": status,
        "lastTransitionTime": now,
        "reason": reason,
        "message": format!(
            "This FlowSchema references the PriorityLevelConfiguration object named {level:?} {end}"
        ),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_default_schema_refers_to_a_default_level() {
        let levels: BTreeSet<&str> = LEVELS.iter().map(|level| level.name).collect();
        assert_eq!((levels.len(), SCHEMAS.len()), (8, 11));
        for schema in SCHEMAS {
            let object = schema.object();
            let level = object["spec"]["priorityLevelConfiguration"]["name"].as_str();
            assert!(
                level.is_some_and(|level| levels.contains(level)),
                "{object}"
            );
        }
        let mandatory = |all: &[DefaultObject]| {
            let mandatory = all.iter().filter(|default| default.is_mandatory);
            mandatory.map(|default| default.name).collect::<Vec<_>>()
        };
        assert_eq!(mandatory(LEVELS), ["catch-all", "exempt"]);
        assert_eq!(mandatory(SCHEMAS), ["exempt", "catch-all"]);
    }

    #[test]
    fn the_condition_names_the_level() {
        let found = dangling("a", true, "t");
        assert_eq!(
            found["message"],
            "This FlowSchema references the PriorityLevelConfiguration object named \"a\" and it exists"
        );
        assert_eq!(
            (&found["status"], &found["reason"]),
            (&json!("False"), &json!("Found"))
        );
        let missing = dangling("a", false, "t");
        assert_eq!(
            missing["message"],
            "This FlowSchema references the PriorityLevelConfiguration object named \"a\" but there is no such object"
        );
        assert_eq!(
            (&missing["status"], &missing["reason"]),
            (&json!("True"), &json!("NotFound"))
        );
    }
}
