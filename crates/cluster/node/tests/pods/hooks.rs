//! Hooks of containers, and the order in which containers end.

use super::*;

fn hooked(script: &str, lifecycle: Value) -> Value {
    let mut container = shell(script);
    container["lifecycle"] = lifecycle;
    container
}

fn exec(script: &str) -> Value {
    json!({"exec": {"command": ["sh", "-c", script]}})
}

fn state(pod: &Value) -> &Value {
    &pod["status"]["containerStatuses"][0]["state"]
}

async fn delete(stage: &Stage, name: &str) {
    let pods = stage.cluster.pods().in_namespace("default").unwrap();
    pods.delete(name, &DeleteOptions::default()).await.unwrap();
    stage.until(name, Value::is_null).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_waits_for_its_post_start_hook() {
    let stage = Stage::new().await;
    let folder = stage.folder.path().display();
    let lifecycle = json!({"postStart": exec(&format!(
        "touch {folder}/hook; until test -e {folder}/go; do sleep 0.01; done"
    ))});
    let mut second = shell("sleep 1000");
    second["name"] = json!("second");
    stage
        .run(
            "web",
            json!({"containers": [hooked("sleep 1000", lifecycle), second]}),
        )
        .await;
    let hook = stage.folder.path().join("hook");
    let begun = async {
        while !hook.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, begun).await.unwrap();
    // The process runs, but its container and the next one do not.
    assert_eq!(
        stage.event("web", "Started").await,
        "Started container main"
    );
    let pod = stage
        .until("web", |pod| state(pod)["waiting"].is_object())
        .await;
    assert_eq!(state(&pod)["waiting"]["reason"], "ContainerCreating");
    assert_eq!(pod["status"]["phase"], "Pending");
    let started = stage.events("web").await;
    assert!(
        !started
            .iter()
            .any(|(_, text)| text == "Started container second")
    );
    std::fs::write(stage.folder.path().join("go"), "").unwrap();
    let running = |pod: &Value| pod["status"]["phase"] == "Running";
    let pod = stage.until("web", running).await;
    assert!(state(&pod)["running"].is_object());
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_whose_post_start_hook_fails_ends() {
    let stage = Stage::new().await;
    let container = hooked("sleep 1000", json!({"postStart": exec("exit 1")}));
    stage
        .run(
            "web",
            json!({"restartPolicy": "Never", "containers": [container]}),
        )
        .await;
    let pod = stage.ended("web").await;
    assert_eq!(terminated(&pod)["exitCode"], 143);
    assert_eq!(
        stage.event("web", "FailedPostStartHook").await,
        "PostStartHook failed"
    );
    assert_eq!(stage.event("web", "Killing").await, "FailedPostStartHook");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pre_stop_hook_runs_before_the_container_is_terminated() {
    let stage = Stage::new().await;
    let notes = stage.folder.path().join("notes");
    let path = notes.display();
    let script = format!(
        "trap 'echo terminated >> {path}; exit 0' TERM; echo run >> {path}; \
                          while :; do sleep 0.01; done"
    );
    let container = hooked(
        &script,
        json!({"preStop": exec(&format!("echo hook >> {path}"))}),
    );
    stage.run("web", json!({"containers": [container]})).await;
    let begun = async {
        while !notes.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, begun).await.unwrap();
    stage
        .until("web", |pod| state(pod)["running"].is_object())
        .await;
    delete(&stage, "web").await;
    let text = std::fs::read_to_string(&notes).unwrap();
    assert_eq!(text, "run\nhook\nterminated\n");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pre_stop_hooks_are_limited_by_the_grace_period() {
    let stage = Stage::new().await;
    let running = |pod: &Value| pod["status"]["phase"] == "Running";
    let sleeps = hooked(
        "sleep 1000",
        json!({"preStop": {"sleep": {"seconds": 3600}}}),
    );
    let spec = json!({"terminationGracePeriodSeconds": 1, "containers": [sleeps]});
    stage.run("sleeps", spec).await;
    let fails = hooked("sleep 1000", json!({"preStop": exec("exit 1")}));
    stage.run("fails", json!({"containers": [fails]})).await;
    stage.until("sleeps", running).await;
    stage.until("fails", running).await;
    delete(&stage, "sleeps").await;
    delete(&stage, "fails").await;
    assert_eq!(
        stage.event("fails", "FailedPreStopHook").await,
        "PreStopHook failed"
    );
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn http_hooks_without_tls_are_sent_again() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let stage = Stage::new().await;
    let server = tokio::net::TcpListener::bind(("127.0.0.1", 0))
        .await
        .unwrap();
    let port = server.local_addr().unwrap().port();
    let requests = tokio::spawn(async move {
        let mut requests = Vec::new();
        while requests.len() < 2 {
            let (mut stream, _) = server.accept().await.unwrap();
            let mut buffer = [0; 4096];
            let count = stream.read(&mut buffer).await.unwrap();
            requests.push(String::from_utf8_lossy(&buffer[..count]).into_owned());
            let response = "HTTP/1.1 500 Error\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(response.as_bytes()).await.unwrap();
        }
        requests
    });
    let get = json!({"host": "127.0.0.1", "port": port, "path": "/begin", "scheme": "HTTPS"});
    let container = hooked("sleep 1000", json!({"postStart": {"httpGet": get}}));
    stage.run("web", json!({"containers": [container]})).await;
    // The status of the response does not matter.
    stage
        .until("web", |pod| state(pod)["running"].is_object())
        .await;
    let requests = requests.await.unwrap();
    assert!(
        requests[1].starts_with("GET /begin HTTP/1.1\r\n"),
        "{requests:?}"
    );
    assert!(requests[1].contains("kube-lifecycle/1.37"), "{requests:?}");
    assert_eq!(
        stage.event("web", "LifecycleHTTPFallback").await,
        format!(
            "request to HTTPS lifecycle hook 127.0.0.1:{port} got HTTP response, retry with \
                 HTTP succeeded"
        )
    );
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sidecars_end_in_reverse_order_after_the_main_containers() {
    let stage = Stage::new().await;
    let notes = stage.folder.path().join("notes");
    let path = notes.display();
    let container = |name: &str| {
        let script = format!(
            "trap 'sleep 0.1; echo {name} >> {path}; exit 0' TERM; echo ready; \
                              while :; do sleep 0.01; done"
        );
        let mut container = shell(&script);
        container["name"] = json!(name);
        container
    };
    let sidecar = |name: &str| {
        let mut sidecar = container(name);
        sidecar["restartPolicy"] = json!("Always");
        sidecar
    };
    let spec = json!({
        "initContainers": [sidecar("first"), sidecar("second")], "containers": [container("main")],
    });
    stage.run("web", spec).await;
    let pod = stage
        .until("web", |pod| pod["status"]["phase"] == "Running")
        .await;
    // The traps are set.
    for name in ["first", "second", "main"] {
        let ready = async {
            loop {
                let query = LogRequest {
                    container: name.to_owned(),
                    ..query(&pod)
                };
                if stage
                    .read(query)
                    .await
                    .is_ok_and(|log| log.contains("ready"))
                {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(TIMEOUT, ready).await.unwrap();
    }
    delete(&stage, "web").await;
    let text = std::fs::read_to_string(&notes).unwrap();
    assert_eq!(text, "main\nsecond\nfirst\n");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn containers_restart_by_their_own_policy() {
    let stage = Stage::new().await;
    let folder = stage.folder.path().display();
    let mut container = shell(&format!(
        "test -e {folder}/once || {{ touch {folder}/once; exit 42; }}"
    ));
    container["restartPolicy"] = json!("Never");
    let codes = json!({"operator": "In", "values": [42]});
    container["restartPolicyRules"] = json!([{"action": "Restart", "exitCodes": codes}]);
    stage
        .run(
            "web",
            json!({"restartPolicy": "Always", "containers": [container]}),
        )
        .await;
    let pod = stage.ended("web").await;
    assert_eq!(pod["status"]["phase"], "Succeeded");
    assert_eq!(pod["status"]["containerStatuses"][0]["restartCount"], 1);
    stage.stop().await;
}
