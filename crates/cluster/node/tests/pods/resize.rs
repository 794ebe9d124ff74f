//! Resizes of running pods.
#![allow(clippy::print_stdout, reason = "says what is not tested")]

use longshore_client::Patch;
use serde_json::{Value, json};

use super::{Stage, query, run_once, shell};

/// A pod that prints the CPU quota of its cgroup when it starts and when it gets a line.
fn resizable(resources: &Value) -> Value {
    let mut spec = json!({"restartPolicy": "Always", "terminationGracePeriodSeconds": 0});
    let mut container = shell(
        "cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us /sys/fs/cgroup/cpu.max \
        2>/dev/null; exec sleep 1000",
    );
    container["resources"] = resources.clone();
    spec["containers"] = json!([container]);
    spec
}

fn container(pod: &Value) -> &Value {
    &pod["status"]["containerStatuses"][0]
}

async fn resize(stage: &Stage, name: &str, resources: Value) -> Result<(), String> {
    let path = format!("/api/v1/namespaces/default/pods/{name}/resize");
    let patch = Patch::strategic(json!({
        "spec": {"containers": [{"name": "main", "resources": resources}]}}));
    let sent = stage.cluster.proxy().patch(&path, &[], &patch).await;
    sent.map(|_: Value| ()).map_err(|error| error.to_string())
}

/// Waits until the container runs with these resources and no resize is under way.
async fn resized(stage: &Stage, name: &str, resources: &Value) -> Value {
    let is_resized = |pod: &Value| {
        let conditions = pod["status"]["conditions"].as_array();
        let resizes = conditions.into_iter().flatten().any(|condition| {
            condition["type"]
                .as_str()
                .is_some_and(|kind| kind.contains("Resize"))
        });
        container(pod)["state"]["running"].is_object()
            && container(pod)["resources"] == *resources
            && pod["status"]["observedGeneration"] == pod["metadata"]["generation"]
            && !resizes
    };
    stage.until(name, is_resized).await
}

/// Returns the quota of the container's cgroup as a command inside reads it, or `None` without
/// cgroups.
async fn quota(stage: &Stage, pod: &Value) -> Option<String> {
    use longshore_node_api::{NodeStreams as _, StreamsWanted};
    let sessions = stage.agent.as_ref().unwrap().sessions();
    let script = "cd /sys/fs/cgroup; cat cpu/cpu.cfs_quota_us cpu.max 2>/dev/null; \
                  grep -c longshore- /proc/self/cgroup >/dev/null || echo none";
    let words = ["sh", "-c", script].map(str::to_owned).to_vec();
    let wanted = StreamsWanted {
        output: true,
        ..StreamsWanted::default()
    };
    let session = sessions
        .exec(super::main_container(pod), words, wanted)
        .await
        .unwrap();
    let mut text = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut session.output.unwrap(), &mut text)
        .await
        .unwrap();
    let quota = text.split_whitespace().next()?.to_owned();
    (!text.contains("none")).then_some(quota)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_container_is_resized_in_place() {
    let stage = Stage::new().await;
    let before = json!({"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"cpu": "100m", "memory": "64Mi"}});
    stage.run("p", resizable(&before)).await;
    let pod = resized(&stage, "p", &before).await;
    assert_eq!(container(&pod)["allocatedResources"], before["requests"]);
    let enforced = quota(&stage, &pod).await;
    let after = json!({"requests": {"cpu": "60m", "memory": "96Mi"}, "limits": {"cpu": "200m", "memory": "96Mi"}});
    resize(&stage, "p", after.clone()).await.unwrap();
    let pod = resized(&stage, "p", &after).await;
    assert_eq!(container(&pod)["allocatedResources"], after["requests"]);
    assert_eq!(container(&pod)["restartCount"], 0);
    match enforced {
        Some(quota_before) => {
            assert_eq!(quota_before, "10000");
            assert_eq!(quota(&stage, &pod).await.as_deref(), Some("20000"));
        }
        None => println!("the limits in the kernel are not tested: there are no cgroups"),
    }
    let message = stage.event("p", "ResizeCompleted").await;
    assert!(
        message.starts_with("Pod resize completed: {\"containers\""),
        "{message}"
    );

    // A resize in the other direction.
    resize(&stage, "p", before.clone()).await.unwrap();
    let pod = resized(&stage, "p", &before).await;
    assert_eq!(container(&pod)["restartCount"], 0);

    // Other fields and classes are rejected.
    let error = resize(&stage, "p", json!({"requests": {"cpu": "100m"}}))
        .await
        .unwrap_err();
    assert!(error.contains("QOS Class may not change"), "{error}");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_restarts_the_container() {
    let stage = Stage::new().await;
    let before = json!({"requests": {"cpu": "50m"}});
    let mut spec = resizable(&before);
    spec["containers"][0]["resizePolicy"] =
        json!([{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]);
    stage.run("p", spec).await;
    resized(&stage, "p", &before).await;
    for (restarts, cpu) in [(1, "60m"), (2, "70m")] {
        let after = json!({"requests": {"cpu": cpu}});
        resize(&stage, "p", after.clone()).await.unwrap();
        let pod = resized(&stage, "p", &after).await;
        assert_eq!(container(&pod)["restartCount"], restarts, "{pod:#}");
    }
    let message = stage.event("p", "Killing").await;
    assert_eq!(message, "Container main resize requires restart");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resize_waits_for_room_on_the_node() {
    let stage = Stage::new().await;
    let node = stage
        .cluster
        .nodes()
        .fetch("here")
        .await
        .unwrap()
        .raw()
        .unwrap();
    let cores: u64 = node["status"]["allocatable"]["cpu"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let small = json!({"requests": {"cpu": "100m"}});
    let most = json!({"requests": {"cpu": format!("{}m", cores * 1000 - 200)}});
    stage.run("large", resizable(&most)).await;
    resized(&stage, "large", &most).await;
    stage.run("p", resizable(&small)).await;
    resized(&stage, "p", &small).await;
    let larger = json!({"requests": {"cpu": "500m"}});
    resize(&stage, "p", larger.clone()).await.unwrap();
    let pending = |pod: &Value| {
        let conditions = pod["status"]["conditions"].as_array().unwrap();
        let found = conditions
            .iter()
            .find(|one| one["type"] == "PodResizePending")
            .cloned();
        found.unwrap_or_default()
    };
    let pod = stage.until("p", |pod| pending(pod).is_object()).await;
    assert_eq!(pending(&pod)["reason"], "Deferred");
    assert_eq!(pending(&pod)["observedGeneration"], 2);
    let message = pending(&pod)["message"].as_str().unwrap().to_owned();
    assert!(
        message.starts_with("Node didn't have enough resource: cpu, requested: 500"),
        "{message}"
    );
    assert_eq!(container(&pod)["allocatedResources"], small["requests"]);
    let pods = stage.cluster.pods().in_namespace("default").unwrap();
    pods.delete("large", &super::DeleteOptions::default())
        .await
        .unwrap();
    let pod = resized(&stage, "p", &larger).await;
    assert_eq!(container(&pod)["restartCount"], 0);
    stage.stop().await;
}

/// Memory that is in use cannot be taken away: the resize fails until it is freed.
#[tokio::test(flavor = "multi_thread")]
async fn a_memory_limit_below_the_usage_is_an_error() {
    let stage = Stage::new().await;
    let before = json!({"requests": {"memory": "32Mi"}, "limits": {"memory": "128Mi"}});
    let mut spec = run_once(
        "head -c 60000000 /dev/zero | tail -c 60000000 | sleep 1000 & \
         cat /proc/self/cgroup; wait",
    );
    spec["containers"][0]["resources"] = before.clone();
    stage.run("p", spec).await;
    let pod = resized(&stage, "p", &before).await;
    if quota(&stage, &pod).await.is_none() {
        println!("not tested: there are no cgroups");
        return;
    }
    // The command has filled its memory when it has used the CPU; the node measures it.
    use longshore_node_api::NodeStreams as _;
    let sessions = stage.agent.as_ref().unwrap().sessions();
    let filled = async {
        loop {
            let measured = sessions.measure().unwrap().await.unwrap();
            if measured
                .containers
                .iter()
                .any(|one| one.usage.memory > 60_000_000)
            {
                return;
            }
        }
    };
    tokio::time::timeout(super::TIMEOUT, filled).await.unwrap();
    let smaller = json!({"requests": {"memory": "32Mi"}, "limits": {"memory": "40Mi"}});
    resize(&stage, "p", smaller.clone()).await.unwrap();
    let in_progress = |pod: &Value| {
        let conditions = pod["status"]["conditions"].as_array().unwrap();
        let found = conditions
            .iter()
            .find(|one| one["type"] == "PodResizeInProgress")
            .cloned();
        found.unwrap_or_default()
    };
    let pod = stage
        .until("p", |pod| in_progress(pod)["reason"] == "Error")
        .await;
    let message = in_progress(&pod)["message"].as_str().unwrap().to_owned();
    assert!(
        message.contains("container \"main\" memory limit (41943040) below"),
        "{message}"
    );
    assert_eq!(container(&pod)["resources"], before, "{pod:#}");
    let again = json!({"requests": {"memory": "32Mi"}, "limits": {"memory": "160Mi"}});
    resize(&stage, "p", again.clone()).await.unwrap();
    let pod = resized(&stage, "p", &again).await;
    assert!(stage.read(query(&pod)).await.unwrap().contains("/pod"));
    stage.stop().await;
}
