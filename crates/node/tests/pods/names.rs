//! Pods that resolve each other's names.

use serde_json::{Value, json};

use super::{Stage, run_once};

#[tokio::test(flavor = "multi_thread")]
async fn peers_resolve_each_others_names() {
    let stage = Stage::new().await;
    let peer = |index: usize| {
        let other = 1 - index;
        let script = format!("until getent hosts w-{other}.w; do sleep 0.01; done");
        let mut spec = run_once(&script);
        spec["hostname"] = json!(format!("w-{index}"));
        spec["subdomain"] = json!("w");
        spec
    };
    stage.run("first", peer(0)).await;
    let first = stage
        .until("first", |pod| pod["status"]["phase"] == "Running")
        .await;
    let mut second = peer(1);
    // Each must run until the other has resolved its name.
    second["containers"][0]["command"][2] = json!(
        "until getent hosts w-0.w.default.svc.cluster.local; do sleep 0.01; done; sleep 1000"
    );
    stage.run("second", second).await;
    let ended = stage.ended("first").await;
    let second = stage
        .until("second", |pod| pod["status"]["phase"] == "Running")
        .await;
    let log = stage.log(&ended).await;
    assert!(
        log.starts_with(second["status"]["podIP"].as_str().unwrap()),
        "{log}"
    );
    assert_ne!(first["status"]["podIP"], second["status"]["podIP"]);
    stage.stop().await;
}

/// A pod that is restarted after the agent waits for its peers, one of which may have ended
/// since.
#[tokio::test(flavor = "multi_thread")]
async fn a_finished_pod_keeps_its_name_across_a_restart_of_the_agent() {
    let mut stage = Stage::new().await;
    let named = |name: &str, script: &str| {
        let mut spec = run_once(script);
        spec["hostname"] = json!(name);
        spec["subdomain"] = json!("w");
        spec
    };
    stage.run("over", named("w-0", "true")).await;
    let over = stage.ended("over").await;
    stage.agent.take().unwrap().stop().await;
    stage.start().await;
    let script = "until getent hosts w-0.w; do sleep 0.01; done";
    stage.run("again", named("w-1", script)).await;
    let again = stage.ended("again").await;
    let address = |pod: &Value| pod["status"]["podIP"].as_str().unwrap().to_owned();
    let log = stage.log(&again).await;
    assert!(log.starts_with(&address(&over)), "{log}");
    assert_ne!(address(&over), address(&again));
    stage.stop().await;
}
