//! The end of a pod. As with the kubelet, each container of a finished pod has a final state. Pure.

use super::record::{Ended, Policy, Record, Role, State, UNKNOWN};

/// The exit code of containers whose end is unknown.
const UNKNOWN_CODE: i32 = 137;

/// Ends the records of a finished pod that wait for their first run or for a restart. Containers
/// that could not start yet are unchanged: init containers after the first one that has not
/// started, and the main containers of a pod that was never initialized.
pub(crate) fn end_waiting(records: &mut [Record], policy: Policy) {
    let is_init = |record: &Record| matches!(record.role, Role::Init | Role::Sidecar);
    let was_initialized = was_initialized(records, policy);
    let last_begun = records
        .iter()
        .rposition(|record| is_init(record) && record.has_run())
        .unwrap_or(0);
    for (position, record) in records.iter_mut().enumerate() {
        let is_ended = match record.role {
            Role::Init | Role::Sidecar => position <= last_begun,
            Role::Main => was_initialized,
            Role::Ephemeral => false,
        };
        if is_ended && matches!(record.state, State::Waiting { .. }) {
            record.state = State::Ended(Ended {
                code: UNKNOWN_CODE,
                reason: UNKNOWN.to_owned(),
                message: Some(
                    "The container could not be located when the pod was terminated".to_owned(),
                ),
                started: None,
                finished: None,
                id: None,
            });
        }
    }
}

/// Returns true if the main containers could start.
fn was_initialized(records: &[Record], policy: Policy) -> bool {
    let mut mains = records.iter().filter(|record| record.role == Role::Main);
    let mut inits = records
        .iter()
        .filter(|record| matches!(record.role, Role::Init | Role::Sidecar));
    mains.any(Record::has_run)
        || inits.next_back().is_none_or(|last| match last.role {
            Role::Sidecar => last.is_started(),
            _ => last.final_code(policy) == Some(0),
        })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use jiff::Timestamp;
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    use super::*;
    use crate::pod::record;

    fn records(inits: &[(&str, bool)]) -> Vec<Record> {
        let init = |(name, is_sidecar): &(&str, bool)| match is_sidecar {
            true => json!({"name": name, "restartPolicy": "Always"}),
            false => json!({"name": name}),
        };
        let inits: Vec<_> = inits.iter().map(init).collect();
        let pod: Pod = serde_json::from_value(json!({"spec": {
            "restartPolicy": "Never", "initContainers": inits,
            "containers": [{"name": "a"}, {"name": "b"}],
        }}))
        .unwrap();
        record::records(&pod, None, Timestamp::UNIX_EPOCH)
    }

    fn run(record: &mut Record, code: i32) {
        record.started("id".to_owned(), Timestamp::UNIX_EPOCH);
        record.ended(code, None, Timestamp::UNIX_EPOCH);
    }

    /// The exit code of each container, `None` if it waits.
    fn codes(records: &[Record]) -> Vec<Option<i32>> {
        let code = |record: &Record| match &record.state {
            State::Ended(ended) => Some(ended.code),
            _ => None,
        };
        records.iter().map(code).collect()
    }

    #[test]
    fn a_sidecar_that_waits_for_its_restart_ends_with_the_pod() {
        let mut all = records(&[("side", true)]);
        run(&mut all[0], 1);
        all[0].wait("CrashLoopBackOff", None);
        run(&mut all[1], 0);
        run(&mut all[2], 0);
        end_waiting(&mut all, Policy::Never);
        assert_eq!(codes(&all), [Some(137), Some(0), Some(0)]);
        assert_eq!(all[0].last.as_ref().unwrap().code, 1, "the last run stays");
    }

    #[test]
    fn containers_that_had_no_turn_still_wait() {
        let mut all = records(&[("first", false), ("side", true), ("last", false)]);
        run(&mut all[0], 3);
        end_waiting(&mut all, Policy::Never);
        assert_eq!(codes(&all), [Some(3), None, None, None, None]);
        let mut all = records(&[("first", false), ("second", false)]);
        end_waiting(&mut all, Policy::Never);
        assert_eq!(codes(&all), [Some(137), None, None, None]);
    }

    #[test]
    fn a_main_container_that_never_started_ends_in_an_initialized_pod() {
        let mut all = records(&[]);
        run(&mut all[0], 0);
        end_waiting(&mut all, Policy::Never);
        assert_eq!(codes(&all), [Some(0), Some(137)]);
        let mut all = records(&[("first", false)]);
        run(&mut all[0], 0);
        end_waiting(&mut all, Policy::Never);
        assert_eq!(codes(&all), [Some(0), Some(137), Some(137)]);
    }
}
