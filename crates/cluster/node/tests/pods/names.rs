//! Pods that resolve each other's names.

use serde_json::{Value, json};

use super::{Stage, run_once, terminated};

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

/// A pod that is restarted after the agent waits for its peers. One of them may have ended since.
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

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_finds_services_by_name_and_by_variables() {
    let stage = Stage::new().await;
    let services = stage.cluster.services().in_namespace("default").unwrap();
    let service = json!({"metadata": {"name": "my-web"}, "spec": {"ports": [{"port": 8080}]}});
    let service = services.create(&service).await.unwrap().raw().unwrap();
    let own = service["spec"]["clusterIP"].as_str().unwrap();
    let script = "until getent hosts my-web && getent hosts my-web.default.svc.cluster.local; do \
                  sleep 0.01; done; echo $MY_WEB_SERVICE_HOST:$MY_WEB_SERVICE_PORT";
    // The pod starts right after the Service is created.
    stage.run("wants", run_once(script)).await;
    let pod = stage.ended("wants").await;
    let log = stage.log(&pod).await;
    assert!(log.starts_with(own), "{log}");
    assert!(log.ends_with(&format!("{own}:8080\n")), "{log}");
    let mut spec = run_once("echo \"[$MY_WEB_SERVICE_HOST]\"");
    spec["enableServiceLinks"] = json!(false);
    stage.run("does-not", spec).await;
    let pod = stage.ended("does-not").await;
    assert_eq!(stage.log(&pod).await, "[]\n");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_of_too_many_services_are_reported_with_the_remedy() {
    let stage = Stage::new().await;
    let services = stage.cluster.services().in_namespace("default").unwrap();
    for number in 0..90 {
        let ports: Vec<Value> = (0..100)
            .map(|port| {
                let name = format!("{}{port}", "p".repeat(50));
                json!({"name": name, "port": 8000 + port})
            })
            .collect();
        let name = format!("{}{number}", "s".repeat(60));
        let service = json!({"metadata": {"name": name}, "spec": {"ports": ports}});
        services.create(&service).await.unwrap();
    }
    stage.run("all", run_once("true")).await;
    let pod = stage.ended("all").await;
    let message = terminated(&pod)["message"].as_str().unwrap();
    assert!(
        message.starts_with("the environment is too large for this system ("),
        "{message}"
    );
    let mut spec = run_once("true");
    spec["enableServiceLinks"] = json!(false);
    stage.run("none", spec).await;
    let pod = stage.ended("none").await;
    assert_eq!(pod["status"]["phase"], "Succeeded", "{pod:#}");
    stage.stop().await;
}
