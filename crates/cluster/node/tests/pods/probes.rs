//! Probes of pods' containers.

use super::*;

/// Returns a container with a probe: commands run in the container's working
/// directory, where the test's script creates files.
fn probed(script: &str, probes: Value) -> Value {
    let mut container = shell(script);
    for (name, value) in probes.as_object().unwrap() {
        container[name] = value.clone();
    }
    container
}

fn file_exists(name: &str) -> Value {
    json!({"exec": {"command": ["test", "-e", name]}, "periodSeconds": 1, "failureThreshold": 1})
}

fn status(pod: &Value) -> &Value {
    &pod["status"]["containerStatuses"][0]
}

fn condition<'p>(pod: &'p Value, kind: &str) -> &'p Value {
    let mut conditions = pod["status"]["conditions"].as_array().unwrap().iter();
    conditions.find(|one| one["type"] == kind).unwrap()
}

/// Runs a command in the container `main`.
async fn exec(stage: &Stage, pod: &Value, script: &str) {
    let command = ["sh", "-c", script].map(str::to_owned).to_vec();
    let sessions = stage.agent.as_ref().unwrap().sessions();
    let wanted = StreamsWanted::default();
    let session = sessions.exec(main_container(pod), command, wanted).await;
    assert_eq!(session.unwrap().end.await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn readiness_follows_the_probe() {
    let stage = Stage::new().await;
    let mut probe = file_exists("ready");
    probe["exec"]["command"] = json!(["sh", "-c", "test -e ready || { echo not yet; exit 1; }"]);
    let container = probed("sleep 1000", json!({"readinessProbe": probe}));
    stage.run("web", json!({"containers": [container]})).await;
    assert_eq!(
        stage.event("web", "Unhealthy").await,
        "Readiness probe failed: not yet\n"
    );
    let pod = stage
        .until("web", |pod| status(pod)["started"] == true)
        .await;
    assert_eq!(status(&pod)["ready"], false);
    for kind in ["ContainersReady", "Ready"] {
        let message = &condition(&pod, kind)["message"];
        assert_eq!(message, "containers with unready status: [main]");
    }
    exec(&stage, &pod, "touch ready").await;
    let ready = |pod: &Value| condition(pod, "Ready")["status"] == "True";
    let pod = stage.until("web", ready).await;
    assert_eq!(status(&pod)["ready"], true);
    assert_eq!(status(&pod)["restartCount"], 0);
    exec(&stage, &pod, "rm ready").await;
    stage.until("web", |pod| !ready(pod)).await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_fails_its_liveness_probe_restarts() {
    let stage = Stage::new().await;
    // The first probe is after one period, when the file exists.
    let container = probed(
        "trap 'exit 0' TERM; touch alive; while :; do sleep 0.01; done",
        json!({"livenessProbe": file_exists("alive")}),
    );
    stage
        .run(
            "web",
            json!({"containers": [container], "restartPolicy": "OnFailure"}),
        )
        .await;
    let pod = stage.until("web", |pod| status(pod)["ready"] == true).await;
    exec(&stage, &pod, "rm alive").await;
    // The container restarts although it ended with code 0.
    let pod = stage
        .until("web", |pod| {
            status(pod)["restartCount"] == 1 && status(pod)["ready"] == true
        })
        .await;
    assert_eq!(status(&pod)["lastState"]["terminated"]["exitCode"], 0);
    assert_eq!(
        stage.event("web", "Killing").await,
        "Container main failed liveness probe, will be restarted"
    );
    assert_eq!(
        stage.event("web", "Unhealthy").await,
        "Liveness probe failed: "
    );
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_grace_period_of_a_probe_and_a_pod_that_does_not_restart() {
    let stage = Stage::new().await;
    // The probe fails as soon as the trap is set.
    let mut probe = file_exists("trap");
    probe["exec"]["command"] = json!(["sh", "-c", "! test -e trap"]);
    probe["terminationGracePeriodSeconds"] = json!(1);
    let container = probed(
        "trap '' TERM; touch trap; while :; do sleep 0.01; done",
        json!({"livenessProbe": probe}),
    );
    let spec = json!({
        "restartPolicy": "Never", "terminationGracePeriodSeconds": 3600, "containers": [container],
    });
    stage.run("web", spec).await;
    let pod = stage.ended("web").await;
    assert_eq!(pod["status"]["phase"], "Failed");
    assert_eq!(terminated(&pod)["exitCode"], 137);
    assert_eq!(
        stage.event("web", "Killing").await,
        "Container main failed liveness probe"
    );
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_probes_wait_for_the_startup_probe() {
    let stage = Stage::new().await;
    let mut startup = file_exists("started");
    startup["failureThreshold"] = json!(1000);
    let container = probed(
        "sleep 1000",
        json!({"startupProbe": startup, "livenessProbe": file_exists("alive"),
               "readinessProbe": file_exists("ready")}),
    );
    stage.run("web", json!({"containers": [container]})).await;
    assert_eq!(
        stage.event("web", "Unhealthy").await,
        "Startup probe failed: "
    );
    let running = |pod: &Value| pod["status"]["phase"] == "Running";
    let pod = stage.until("web", running).await;
    assert_eq!(
        (&status(&pod)["started"], &status(&pod)["ready"]),
        (&json!(false), &json!(false))
    );
    exec(&stage, &pod, "touch alive ready started").await;
    let pod = stage.until("web", |pod| status(pod)["ready"] == true).await;
    assert_eq!(status(&pod)["started"], true);
    assert_eq!(status(&pod)["restartCount"], 0);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_startup_probe_restarts_the_container() {
    let stage = Stage::new().await;
    let container = probed("sleep 1000", json!({"startupProbe": file_exists("never")}));
    let spec = json!({"containers": [container], "terminationGracePeriodSeconds": 0});
    stage.run("web", spec).await;
    stage
        .until("web", |pod| status(pod)["restartCount"].as_i64() > Some(0))
        .await;
    assert_eq!(
        stage.event("web", "Killing").await,
        "Container main failed startup probe, will be restarted"
    );
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn main_containers_wait_for_the_startup_of_sidecars() {
    let stage = Stage::new().await;
    let mut startup = file_exists("/proc/self");
    startup["initialDelaySeconds"] = json!(1);
    let mut sidecar = probed(
        "sleep 1000",
        json!({"startupProbe": startup, "readinessProbe": file_exists("never")}),
    );
    sidecar["name"] = json!("side");
    sidecar["restartPolicy"] = json!("Always");
    stage
        .run(
            "web",
            json!({"initContainers": [sidecar], "containers": [shell("sleep 1000")]}),
        )
        .await;
    let pod = stage
        .until("web", |pod| {
            pod["status"]["initContainerStatuses"][0]["state"]["running"].is_object()
        })
        .await;
    assert_eq!(
        status(&pod)["state"]["waiting"]["reason"],
        "PodInitializing"
    );
    let message = &condition(&pod, "Initialized")["message"];
    assert_eq!(message, "containers with incomplete status: [side]");
    let pod = stage.until("web", |pod| status(pod)["ready"] == true).await;
    let message = &condition(&pod, "ContainersReady")["message"];
    assert_eq!(message, "containers with unready status: [side]");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_use_the_address_and_the_named_ports_of_the_pod() {
    let stage = Stage::new().await;
    let mut container = probed(
        "sleep 1000",
        json!({"readinessProbe": {"tcpSocket": {"port": "web"}, "periodSeconds": 1}}),
    );
    container["ports"] = json!([{"name": "web", "containerPort": 23_456}]);
    stage.run("web", json!({"containers": [container]})).await;
    let pod = stage
        .until("web", |pod| status(pod)["started"] == true)
        .await;
    let address = pod["status"]["podIP"].as_str().unwrap();
    assert_eq!(
        stage.event("web", "Unhealthy").await,
        format!("Readiness probe failed: dial tcp {address}:23456: connect: connection refused")
    );
    let _listener = std::net::TcpListener::bind((address, 23_456)).unwrap();
    stage.until("web", |pod| status(pod)["ready"] == true).await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_that_hangs_or_cannot_run() {
    let stage = Stage::new().await;
    let exec = |command: Value| json!({"exec": {"command": command}, "periodSeconds": 1});
    let hangs = probed(
        "sleep 1000",
        json!({"readinessProbe": exec(json!(["sleep", "1000"]))}),
    );
    stage.run("hangs", json!({"containers": [hangs]})).await;
    let missing = probed(
        "sleep 1000",
        json!({"livenessProbe": exec(json!(["nosuch"]))}),
    );
    stage.run("missing", json!({"containers": [missing]})).await;
    let much = exec(json!(["sh", "-c", "yes | head -c 100000; exit 1"]));
    let much = probed("sleep 1000", json!({"readinessProbe": much}));
    stage.run("much", json!({"containers": [much]})).await;
    assert_eq!(
        stage.event("hangs", "Unhealthy").await,
        "Readiness probe failed: command timed out: \"sleep 1000\" timed out after 1s"
    );
    assert_eq!(
        stage.event("missing", "Unhealthy").await,
        "Liveness probe errored and resulted in unknown state: exec: \"nosuch\": executable file \
         not found in $PATH"
    );
    let text = stage.event("much", "Unhealthy").await;
    assert_eq!(text.len(), "Readiness probe failed: ".len() + 10 * 1024);
    // The result of a probe that cannot be performed does not count.
    let pods = stage.cluster.pods().in_namespace("default").unwrap();
    let pod = pods.fetch("missing").await.unwrap().raw().unwrap();
    assert_eq!(status(&pod)["restartCount"], 0);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_with_readiness_gates() {
    let stage = Stage::new().await;
    let gate = json!([{"conditionType": "example.com/ready"}]);
    stage
        .run(
            "web",
            json!({"readinessGates": gate, "containers": [shell("sleep 1000")]}),
        )
        .await;
    let pod = stage.until("web", |pod| status(pod)["ready"] == true).await;
    assert_eq!(condition(&pod, "ContainersReady")["status"], "True");
    assert_eq!(condition(&pod, "Ready")["reason"], "ReadinessGatesNotReady");
    let gate = json!({"type": "example.com/ready", "status": "True"});
    let patch = json!({"status": {"conditions": [gate]}});
    let patch = longshore_client::Patch::strategic(patch);
    let pods = stage.cluster.pods().in_namespace("default").unwrap();
    pods.patch_status("web", &patch).await.unwrap();
    let ready = |pod: &Value| condition(pod, "Ready")["status"] == "True";
    stage.until("web", ready).await;
    stage.stop().await;
}
