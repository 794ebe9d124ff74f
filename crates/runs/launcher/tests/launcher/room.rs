//! Checks that the tasks of a plan fit the nodes, given the pods of the cluster.

use super::fake::{Answer, Fake, list, status};
use longshore_launcher::{
    Flags, Plan, RunName, Settings, config,
    plan::plan,
    preflight::{Room, room},
};
use serde_json::{Value, json};

/// A task that requests a CPU.
fn one_cpu() -> Plan {
    let flags = Flags {
        command: vec!["true".into()],
        cpu: Some("1".into()),
        ..Flags::default()
    };
    let spec = config::resolve(&Settings::default(), &flags, "demo").unwrap();
    plan(&spec, &RunName::new("demo", "ab2cd"), "team", None).unwrap()
}

fn node() -> Value {
    json!({
        "metadata": {"name": "n", "uid": "n"},
        "status": {
            "allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}

/// A pod on the node that requests two CPUs.
fn two_cpus(name: String) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "other", "uid": name},
        "spec": {"nodeName": "n", "containers": [
            {"name": "main", "resources": {"requests": {"cpu": "2"}}},
        ]},
        "status": {"phase": "Running"},
    })
}

/// A cluster whose pods fill this number of pages, one pod each.
fn with_pages(pages: usize) -> Fake {
    Fake::new(move |asked| match asked.path.as_str() {
        "/api/v1/namespaces/team/limitranges" => list("LimitRange", "v1", vec![]),
        "/api/v1/nodes" => list("Node", "v1", vec![node()]),
        "/api/v1/pods" => {
            let mut parameters = asked.query.split('&');
            let token = parameters.find_map(|one| one.strip_prefix("continue="));
            let page: usize = token.map_or(1, |token| token.parse().unwrap());
            let more = (page < pages).then(|| (page + 1).to_string());
            let metadata = json!({"resourceVersion": "1", "continue": more.unwrap_or_default()});
            let items = [two_cpus(format!("pod-{page}"))];
            Answer::Json(200, json!({"metadata": metadata, "items": items}))
        }
        path => panic!("unexpected request for {path}"),
    })
}

async fn room_beside(pages: usize) -> Room {
    let fake = with_pages(pages);
    room(&fake.cluster(), &one_cpu()).await.unwrap()
}

#[tokio::test]
async fn the_pods_of_all_pages_count() {
    assert_eq!(room_beside(1).await, Room::Free);
    let Room::Later(finding) = room_beside(2).await else {
        panic!("two pods request all CPUs of the node");
    };
    insta::assert_snapshot!(finding, @"main: it has no room now: a task requests 1 of cpu, and the most that a node has free is 0 (n); its tasks stay pending until other pods end");
}

#[tokio::test]
async fn more_pods_than_are_read_leave_the_room_unknown() {
    let Room::Unknown(why) = room_beside(41).await else {
        panic!("not all pods were read");
    };
    assert_eq!(why, "pods of all namespaces: more than 20000");
}

#[tokio::test]
async fn without_permission_the_room_is_unknown() {
    let fake = Fake::new(|_| status(403, "Forbidden", "cannot list"));
    let Room::Unknown(why) = room(&fake.cluster(), &one_cpu()).await.unwrap() else {
        panic!("nothing was read");
    };
    assert!(why.starts_with("nodes: "), "{why}");
}
