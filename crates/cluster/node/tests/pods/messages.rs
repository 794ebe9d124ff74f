//! Termination messages.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_container_leaves_a_message() {
    let stage = Stage::new().await;
    if !helpers::has_namespaces(&stage).await {
        return;
    }
    let on_machine = || std::fs::read("/dev/termination-log").ok();
    let before = on_machine();
    stage
        .run(
            "good",
            run_once("printf done > /dev/termination-log; test -c /dev/null"),
        )
        .await;
    let pod = stage.ended("good").await;
    assert_eq!(terminated(&pod)["exitCode"], 0);
    assert_eq!(terminated(&pod)["message"], "done");
    assert_eq!(on_machine(), before);

    let mut own = shell("echo log; printf why > /opt/of-a-test/message; exit 1");
    own["terminationMessagePath"] = json!("/opt/of-a-test/message");
    own["terminationMessagePolicy"] = json!("FallbackToLogsOnError");
    if helpers::is_root() {
        own["securityContext"] = json!({"runAsUser": helpers::UNPRIVILEGED});
    }
    stage
        .run(
            "bad",
            json!({"restartPolicy": "Never", "containers": [own]}),
        )
        .await;
    let pod = stage.ended("bad").await;
    assert_eq!(terminated(&pod)["message"], "why");
    stage.stop().await;
}

/// The spec of an init container does not need to name the file, because its program may write to
/// it anyway.
#[tokio::test(flavor = "multi_thread")]
async fn an_init_container_leaves_a_message() {
    let stage = Stage::new().await;
    if !helpers::has_namespaces(&stage).await {
        return;
    }
    let mut init = shell("cd /dev && printf why > termination-log; test -c null && exit 3");
    init["name"] = json!("first");
    let pod = json!({
        "restartPolicy": "Never", "initContainers": [init], "containers": [shell("exit 0")],
    });
    stage.run("bad", pod).await;
    let pod = stage.ended("bad").await;
    let ended = &pod["status"]["initContainerStatuses"][0]["state"]["terminated"];
    assert_eq!(
        (&ended["exitCode"], &ended["message"]),
        (&json!(3), &json!("why"))
    );
    stage.stop().await;
}

/// The generation that the node has seen, and the conditions of a pod.
#[tokio::test(flavor = "multi_thread")]
async fn conditions_of_a_pod() {
    let stage = Stage::new().await;
    stage.run("web", run_once("sleep 1000")).await;
    let pod = stage
        .until("web", |pod| pod["status"]["phase"] == "Running")
        .await;
    let generation = &pod["metadata"]["generation"];
    assert_eq!(&pod["status"]["observedGeneration"], generation);
    let conditions = pod["status"]["conditions"].as_array().unwrap();
    for kind in [
        "PodReadyToStartContainers",
        "Initialized",
        "Ready",
        "ContainersReady",
        "PodScheduled",
    ] {
        let condition = conditions.iter().find(|one| one["type"] == kind).unwrap();
        assert_eq!(condition["status"], "True", "{kind}");
        assert_eq!(&condition["observedGeneration"], generation, "{kind}");
    }
    stage.stop().await;
}
