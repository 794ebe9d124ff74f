//! Ephemeral containers.

use super::*;
use longshore_client::Patch;

async fn add(stage: &Stage, pod: &str, container: Value) -> Result<Value, longshore_client::Error> {
    let path = format!("/api/v1/namespaces/default/pods/{pod}/ephemeralcontainers");
    let patch = Patch::strategic(json!({"spec": {"ephemeralContainers": [container]}}));
    stage.cluster.proxy().patch(&path, &[], &patch).await
}

fn status(pod: &Value) -> &Value {
    &pod["status"]["ephemeralContainerStatuses"][0]
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ephemeral_container_runs_once_in_a_running_pod() {
    let stage = Stage::new().await;
    stage
        .run("web", json!({"containers": [shell("sleep 1000")]}))
        .await;
    let running = |pod: &Value| pod["status"]["phase"] == "Running";
    let before = stage.until("web", running).await;
    let container = json!({"name": "debug", "image": "none", "command": ["sh", "-c",
        "echo from $HOSTNAME; exit 3"]});
    let pod = add(&stage, "web", container).await.unwrap();
    let generation = |pod: &Value| pod["metadata"]["generation"].as_i64().unwrap();
    assert_eq!(generation(&pod), generation(&before) + 1);
    let pod = stage
        .until("web", |pod| status(pod)["state"]["terminated"].is_object())
        .await;
    assert_eq!(status(&pod)["state"]["terminated"]["exitCode"], 3);
    assert_eq!(status(&pod)["restartCount"], 0);
    assert_eq!(pod["status"]["phase"], "Running");
    let ready = pod["status"]["conditions"].as_array().unwrap().iter();
    let ready = ready.filter(|one| one["type"] == "Ready" && one["status"] == "True");
    assert_eq!(ready.count(), 1);
    let query = LogRequest {
        container: "debug".to_owned(),
        ..query(&pod)
    };
    assert_eq!(stage.read(query).await.unwrap(), "from web\n");

    // Containers can only be added.
    let changed = json!({"name": "debug", "image": "other"});
    let error = add(&stage, "web", changed).await.unwrap_err().to_string();
    assert!(
        error.contains("existing ephemeral containers \"debug\" may not be changed"),
        "{error}"
    );
    // Other changes of the pod are still possible.
    let pods = stage.cluster.pods().in_namespace("default").unwrap();
    let labels = Patch::merge(json!({"metadata": {"labels": {"a": "b"}}}));
    pods.patch("web", &labels).await.unwrap();
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ephemeral_container_sees_the_processes_of_its_target() {
    let stage = Stage::new().await;
    if !helpers::has_namespaces(&stage).await {
        return;
    }
    stage
        .run("web", json!({"containers": [shell("exec sleep 1234")]}))
        .await;
    stage
        .until("web", |pod| pod["status"]["phase"] == "Running")
        .await;
    let container = json!({"name": "debug", "image": "none", "targetContainerName": "main",
        "stdin": true, "command": ["sh", "-c", "cat; cat /proc/*/cmdline | tr '\\0' ' '"]});
    add(&stage, "web", container).await.unwrap();
    let pod = stage
        .until("web", |pod| status(pod)["state"]["running"].is_object())
        .await;
    // A client attaches to the container.
    let sessions = stage.agent.as_ref().unwrap().sessions();
    let debug = ContainerRef {
        container: "debug".to_owned(),
        ..main_container(&pod)
    };
    let wanted = StreamsWanted {
        input: true,
        output: true,
        ..StreamsWanted::default()
    };
    let mut session = sessions.attach(debug, wanted).await.unwrap();
    let mut input = session.input.take().unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut input, b"hello\n")
        .await
        .unwrap();
    let mut output = tokio::io::BufReader::new(session.output.take().unwrap());
    let mut line = String::new();
    tokio::io::AsyncBufReadExt::read_line(&mut output, &mut line)
        .await
        .unwrap();
    assert_eq!(line, "hello\n");

    let container = json!({"name": "second", "image": "none", "targetContainerName": "main",
        "command": ["sh", "-c", "cat /proc/*/cmdline | tr '\\0' ' '"]});
    add(&stage, "web", container).await.unwrap();
    let pod = stage
        .until("web", |pod| {
            pod["status"]["ephemeralContainerStatuses"][1]["state"]["terminated"].is_object()
        })
        .await;
    let query = LogRequest {
        container: "second".to_owned(),
        ..query(&pod)
    };
    let processes = stage.read(query).await.unwrap();
    assert!(processes.contains("sleep 1234"), "{processes}");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ephemeral_containers_end_with_the_pod() {
    let stage = Stage::new().await;
    let go = stage.folder.path().join("go");
    let script = format!("until test -e {}; do sleep 0.01; done", go.display());
    stage.run("web", run_once(&script)).await;
    stage
        .until("web", |pod| pod["status"]["phase"] == "Running")
        .await;
    let container = json!({"name": "debug", "image": "none", "command": ["sleep", "1000"]});
    add(&stage, "web", container).await.unwrap();
    stage
        .until("web", |pod| status(pod)["state"]["running"].is_object())
        .await;
    std::fs::write(go, "").unwrap();
    let pod = stage.ended("web").await;
    assert_eq!(pod["status"]["phase"], "Succeeded");
    assert_eq!(status(&pod)["state"]["terminated"]["exitCode"], 143);
    stage.stop().await;
}
