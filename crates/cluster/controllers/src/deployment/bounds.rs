//! The maximum numbers of surplus and missing pods during a rollout.

use serde::Deserialize;
use serde_json::Value;

use crate::percent::scaled;

/// The strategy of a Deployment.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Strategy {
    /// `RollingUpdate` or `Recreate`.
    #[serde(rename = "type")]
    kind: String,
    rolling_update: Option<Rolling>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Rolling {
    max_surge: Value,
    max_unavailable: Value,
}

impl Strategy {
    /// Returns true if all old pods must end before new ones are created.
    pub(crate) fn is_recreate(&self) -> bool {
        self.kind == "Recreate"
    }

    /// Returns the maximum number of pods above the desired number.
    pub(crate) fn max_surge(&self, replicas: i64) -> i64 {
        self.resolve(replicas).0
    }

    /// Returns the maximum number of unavailable pods.
    pub(crate) fn max_unavailable(&self, replicas: i64) -> i64 {
        if replicas == 0 {
            return 0;
        }
        self.resolve(replicas).1.min(replicas)
    }

    /// Resolves both. The surge is rounded up, unavailability is rounded down. If
    /// both are zero, one pod may be unavailable, so that a rollout can progress.
    fn resolve(&self, replicas: i64) -> (i64, i64) {
        if self.is_recreate() {
            return (0, 0);
        }
        let rolling = self.rolling_update.clone().unwrap_or_default();
        let surge = scaled(&rolling.max_surge, replicas, true);
        let unavailable = scaled(&rolling.max_unavailable, replicas, false);
        (
            surge,
            if surge == 0 {
                unavailable.max(1)
            } else {
                unavailable
            },
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn percentages_are_rounded_so_that_a_rollout_can_progress() {
        for (surge, unavailable, replicas, expected) in [
            (json!("25%"), json!("25%"), 3, (1, 0)),
            (json!("25%"), json!("25%"), 10, (3, 2)),
            (json!("0%"), json!("1%"), 2, (0, 1)),
            (json!(0), json!(0), 2, (0, 1)),
            (json!(1), json!(0), 2, (1, 0)),
            (json!("100%"), json!(20), 4, (4, 4)),
            (json!(2), json!(2), 0, (2, 0)),
        ] {
            let strategy: Strategy = serde_json::from_value(json!({
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable},
            }))
            .unwrap();
            let found = (
                strategy.max_surge(replicas),
                strategy.max_unavailable(replicas),
            );
            assert_eq!(found, expected, "{strategy:?} of {replicas}");
        }
    }
}
