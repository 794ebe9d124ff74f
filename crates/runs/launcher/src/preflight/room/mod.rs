//! Checks that the tasks of a plan can start now, given the pods of the cluster. The result helps
//! to select a cluster. Tasks that wait for capacity are not a problem of the plan.

mod queue;

use std::time::Duration;

use futures::future::BoxFuture;
use longshore_client::{Cluster, Error};
use longshore_diagnosis::{
    evidence::LimitRangeEvidence,
    explain::Cause,
    fit::{Need, Tasks, Used, place},
};
use longshore_model::facts::PodFacts;

use super::{Finding, needs::Needs};
use crate::{
    plan::Plan,
    queries::{self, items},
};

/// The timeout for all pods of the cluster.
const PODS_TIMEOUT: Duration = Duration::from_secs(10);
/// The timeout for every other query.
const LIMIT: Duration = Duration::from_secs(3);
/// The page size, and the maximum number of pages.
const PAGE: usize = 500;
const PAGES: usize = 40;
/// The field selector of pods that use a node's resources.
const ACTIVE: &str = "status.phase!=Succeeded,status.phase!=Failed";

/// The result of checking that the tasks of a plan can start now.
#[derive(Debug, Clone, PartialEq)]
pub enum Room {
    /// All tasks can start.
    Free,
    /// Some tasks have to wait.
    Later(Finding),
    /// The capacity cannot be determined, for this reason.
    Unknown(String),
}

impl Room {
    /// The result for tasks that need both.
    fn and(self, other: Self) -> Self {
        match (&self, &other) {
            (Self::Later(_), _) | (_, Self::Free) => self,
            (Self::Free, _) | (_, Self::Later(_)) => other,
            (Self::Unknown(_), Self::Unknown(_)) => self,
        }
    }
}

/// Checks that all tasks of the plan could start now, without creating anything: that the nodes
/// have capacity for their requests, and that the queue has the quota. The answer may be outdated
/// when the run is submitted.
///
/// # Errors
/// A pod of the plan cannot be read.
pub fn room<'a>(cluster: &'a Cluster, plan: &'a Plan) -> BoxFuture<'a, Result<Room, Error>> {
    // Boxed, so that this crate compiles the future, not each crate that awaits it.
    Box::pin(ask(cluster, plan))
}

async fn ask(cluster: &Cluster, plan: &Plan) -> Result<Room, Error> {
    let needs = Needs::of(plan)?;
    let namespace = needs.namespace.as_str();
    let ranges = format!("/api/v1/namespaces/{namespace}/limitranges");
    let ranges = async {
        let list = cluster.proxy().get(&ranges, &[]).await?;
        Ok(items::<LimitRangeEvidence>(list))
    };
    let (ranges, nodes, pods, queue) = futures::join!(
        queries::seen("limitranges", LIMIT, ranges),
        queries::seen("nodes", LIMIT, queries::nodes(cluster)),
        queries::seen("pods of all namespaces", PODS_TIMEOUT, used(cluster)),
        async {
            match &plan.queue {
                Some(name) => Some(queue::state(cluster, namespace, name).await),
                None => None,
            }
        },
    );
    let needs = needs.with_defaults(&ranges.0.unwrap_or_default());
    let queue = match (&plan.queue, queue) {
        (Some(name), Some(state)) => queue::room(name, &state, &needs),
        _ => Room::Free,
    };
    let unknown = |why: Option<String>| Room::Unknown(why.unwrap_or_default());
    let on_nodes = match (nodes, pods) {
        ((Some(nodes), _), (Some(Some(used)), _)) => match fits(&needs, &nodes.seen, &used) {
            Room::Later(_) if nodes.more => Room::Unknown(format!(
                "nodes: only the first {} were read",
                nodes.seen.len()
            )),
            known => known,
        },
        ((Some(_), _), (Some(None), _)) => Room::Unknown(format!(
            "pods of all namespaces: more than {}",
            PAGE * PAGES
        )),
        ((None, why), _) | (_, (None, why)) => unknown(why),
    };
    Ok(queue.and(on_nodes))
}

/// Checks that the nodes have capacity for the requests of all tasks.
fn fits(needs: &Needs, nodes: &[longshore_model::facts::NodeFacts], used: &Used) -> Room {
    let each: Vec<Need> = needs
        .roles
        .iter()
        .map(|role| Need::of(&role.spec))
        .collect();
    let tasks = needs.roles.iter().zip(&each);
    let tasks: Vec<Tasks<'_>> = tasks
        .map(|(role, need)| Tasks {
            role: &role.name,
            count: role.tasks,
            need,
        })
        .collect();
    match place(&tasks, nodes, used) {
        Ok(()) => Room::Free,
        Err(shortage) => {
            let (problem, then) = shortage.tell();
            Room::Later(Finding::new(Cause::InsufficientResource, problem, then))
        }
    }
}

/// The resources that the pods of the cluster use. `None` if there are too many pods.
async fn used(cluster: &Cluster) -> Result<Option<Used>, Error> {
    let (size, mut next) = (PAGE.to_string(), String::new());
    let mut used = Used::default();
    for _ in 0..PAGES {
        let mut query = vec![("limit", size.as_str()), ("fieldSelector", ACTIVE)];
        if !next.is_empty() {
            query.push(("continue", &next));
        }
        let list = cluster.proxy().get("/api/v1/pods", &query).await?;
        let after = list["metadata"]["continue"].as_str();
        let after = after.unwrap_or_default().to_owned();
        items::<PodFacts>(list).iter().for_each(|pod| used.add(pod));
        if after.is_empty() {
            return Ok(Some(used));
        }
        next = after;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_for_both_is_that_of_the_scarcer() {
        let later = || Room::Later(Finding::new(Cause::InsufficientResource, "full", "wait"));
        let unknown = |why: &str| Room::Unknown(why.to_owned());
        for (one, other, both) in [
            (Room::Free, Room::Free, Room::Free),
            (Room::Free, unknown("a"), unknown("a")),
            (unknown("a"), Room::Free, unknown("a")),
            (unknown("a"), unknown("b"), unknown("a")),
            (unknown("a"), later(), later()),
            (later(), unknown("a"), later()),
            (later(), Room::Free, later()),
            (Room::Free, later(), later()),
        ] {
            let found = one.clone().and(other.clone());
            assert_eq!(found, both, "{one:?} and {other:?}");
        }
    }
}
