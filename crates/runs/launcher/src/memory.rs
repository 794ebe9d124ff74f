//! Notes about the memory of a run that its result does not show: processes that were killed
//! although the command continued, and limits that the cluster does not enforce.

use std::collections::BTreeSet;

use longshore_client::{Cluster, Error, FieldSelector, Item};
use longshore_diagnosis::evidence::RunPod as _;
use longshore_model::facts::PodFacts;

use crate::{run::Run, runs::if_allowed};

/// The reason of an event of a node of the embedded cluster.
const NOT_ENFORCED: &str = "LimitsNotEnforced";
/// The maximum number of tasks to name.
const NAMED: usize = 3;

/// The notes about a run.
///
/// # Errors
/// The pods cannot be listed.
pub async fn notes(cluster: &Cluster, run: &Run) -> Result<Vec<String>, Error> {
    let pods = run.list_pods(cluster).await?;
    let pods: Result<Vec<PodFacts>, _> = pods.iter().map(Item::typed).collect();
    let pods = pods?;
    let mut notes: Vec<String> = killed(&pods).into_iter().collect();
    let limited = pods.iter().filter(|pod| limit(pod).is_some());
    let nodes: BTreeSet<&str> = limited.map(|pod| pod.spec.node_name.as_str()).collect();
    if nodes.is_empty() {
        return Ok(notes);
    }
    let reason = FieldSelector::everything().with("reason", NOT_ENFORCED);
    let events = cluster.events().fields(reason).list().await;
    let of_nodes = if_allowed(events)?.into_iter().filter(|event| {
        let node = event.field::<String>(&["involvedObject", "name"]);
        node.is_ok_and(|node| node.is_some_and(|node| nodes.contains(node.as_str())))
    });
    let messages = of_nodes.filter_map(|event| event.field::<String>(&["message"]).ok()?);
    notes.extend(messages.last());
    Ok(notes)
}

fn limit(pod: &PodFacts) -> Option<&str> {
    let mut containers = pod.spec.containers.iter();
    let main = containers.find(|container| container.name == pod.main_name())?;
    main.resources.limits.get("memory").map(|limit| &**limit)
}

/// Tasks that have succeeded although one of their processes was killed.
fn killed(pods: &[PodFacts]) -> Option<String> {
    let is_killed = |pod: &&PodFacts| {
        let mut ended = pod.ended().into_iter();
        ended.any(|ended| ended.reason == "OOMKilled" && ended.exit_code == 0)
    };
    let found: Vec<&PodFacts> = pods.iter().filter(is_killed).collect();
    let of_limit = found.first().and_then(|pod| limit(pod));
    let of_limit = of_limit.map_or(String::new(), |limit| format!(" (memory limit {limit})"));
    let tasks = found.iter().filter_map(|pod| pod.task());
    let tasks: Vec<String> = tasks.take(NAMED).map(|task| task.to_string()).collect();
    let more = match found.len().saturating_sub(tasks.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!found.is_empty()).then(|| {
        format!(
            "{}{more}: a process was killed: out of memory{of_limit}, and the command went on; raise `memory`, or check what it did without this process",
            tasks.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn pod(index: u32, reason: &str, code: i32) -> PodFacts {
        let pod = json!({
            "metadata": {
                "labels": {"longshore.dev/role": "main"},
                "annotations": {"batch.kubernetes.io/job-completion-index": index.to_string()},
            },
            "spec": {"containers": [{"name": "main", "resources": {"limits": {"memory": "64Mi"}}}]},
            "status": {"containerStatuses": [
                {"name": "main", "state": {"terminated": {"exitCode": code, "reason": reason}}},
            ]},
        });
        serde_json::from_value(pod).unwrap()
    }

    #[test]
    fn tasks_that_succeeded_without_a_killed_process_are_named() {
        assert_eq!(
            killed(&[pod(0, "Completed", 0), pod(1, "OOMKilled", 137)]),
            None
        );
        let found = killed(&[pod(0, "Completed", 0), pod(1, "OOMKilled", 0)]).unwrap();
        let expected = "main/1: a process was killed: out of memory (memory limit 64Mi), and the command went on; ";
        assert!(found.starts_with(expected), "{found}");
        let many: Vec<PodFacts> = (0..9).map(|index| pod(index, "OOMKilled", 0)).collect();
        let found = killed(&many).unwrap();
        assert!(
            found.starts_with("main/0, main/1, main/2 and 6 more: "),
            "{found}"
        );
    }
}
