//! Init containers that keep a task from starting. This is not always an error, but a sidecar may
//! never start.

use longshore_model::facts::PodFacts;

use crate::{evidence::RunPod as _, names};

/// The init container that keeps one of the pods of a run from starting, as a text: `the init
/// container "puller" has not ended`.
#[must_use]
pub fn initializing<'a>(pods: impl IntoIterator<Item = &'a PodFacts>) -> Option<String> {
    pods.into_iter().find_map(of_pod)
}

/// Like [`initializing`], for a pod. Ignores the containers that fetch code and data.
fn of_pod(pod: &PodFacts) -> Option<String> {
    if pod.is_over() || pod.has_started() {
        return None;
    }
    let running = pod.status.init_container_statuses.iter();
    let mut running = running.filter(|status| status.state.running.is_some());
    let blocking =
        running.find(|status| !pod.is_sidecar(&status.name) || status.started != Some(true))?;
    let name = blocking.name.as_str();
    if matches!(name, names::FETCH | names::FETCH_DATA) {
        return None;
    }
    Some(match pod.is_sidecar(name) {
        true => {
            format!("the sidecar {name:?} has not started: its startup probe has not succeeded yet")
        }
        false => format!("the init container {name:?} has not ended"),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    /// A pod whose init containers have these policies and statuses.
    fn shown(init: &[(&str, &str, Value)], main: Value) -> String {
        let spec = init
            .iter()
            .map(|(name, policy, _)| json!({"name": name, "restartPolicy": policy}));
        let statuses = init.iter().map(|(name, _, status)| {
            let mut status = status.clone();
            status["name"] = json!(name);
            status
        });
        let pod = json!({
            "spec": {"initContainers": spec.collect::<Vec<_>>(), "containers": [{"name": "main"}]},
            "status": {
                "phase": "Pending",
                "initContainerStatuses": statuses.collect::<Vec<_>>(),
                "containerStatuses": [{"name": "main", "state": main}],
            },
        });
        let pod: PodFacts = serde_json::from_value(pod).unwrap();
        initializing([&pod]).unwrap_or_default()
    }

    #[test]
    fn the_container_that_is_waited_for_is_named() {
        let waiting = || json!({"waiting": {"reason": "PodInitializing"}});
        let running = |started: bool| json!({"state": {"running": {}}, "started": started});
        let ended = || json!({"state": {"terminated": {"exitCode": 0}}});
        let fetch = |status: Value| (names::FETCH, "", status);
        let proxy = |started| ("proxy", "Always", running(started));

        let unready =
            "the sidecar \"proxy\" has not started: its startup probe has not succeeded yet";
        assert_eq!(
            shown(
                &[proxy(false), fetch(json!({"state": waiting()}))],
                waiting()
            ),
            unready
        );
        assert_eq!(shown(&[proxy(true), fetch(running(false))], waiting()), "");
        let puller = ("puller", "", running(false));
        let expected = "the init container \"puller\" has not ended";
        assert_eq!(
            shown(&[proxy(true), fetch(ended()), puller.clone()], waiting()),
            expected
        );
        assert_eq!(shown(&[puller], json!({"running": {}})), "");
        assert_eq!(shown(&[], waiting()), "");
    }
}
