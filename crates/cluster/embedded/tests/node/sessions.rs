//! Sessions with containers in process, without a socket to upgrade.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube_client::{Api, api::AttachParams};
use longshore_embedded::EmbeddedCluster;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const TIMEOUT: Duration = Duration::from_secs(30);

/// A running pod, and the API through which other clients reach it.
async fn running(embedded: &EmbeddedCluster, command: &[&str], stdin: bool) -> Api<Pod> {
    let pods = embedded.cluster().pods().in_namespace("default").unwrap();
    let container = json!({"name": "main", "image": "any", "command": command, "stdin": stdin, "stdinOnce": stdin});
    let spec = json!({"terminationGracePeriodSeconds": 1, "containers": [container]});
    pods.create(&json!({"metadata": {"name": "box"}, "spec": spec}))
        .await
        .unwrap();
    let runs = |pod: &longshore_client::Item<_>| pod.raw().unwrap()["status"]["phase"] == "Running";
    pods.wait("box", runs, TIMEOUT).await.unwrap();
    Api::namespaced(embedded.cluster().kube_client(), "default")
}

#[tokio::test(flavor = "multi_thread")]
async fn exec_over_a_websocket_without_a_socket() {
    let embedded = longshore_embedded::start().await.unwrap();
    let pods = running(&embedded, &["sleep", "1000"], false).await;
    let asked = AttachParams::default().stdin(true).stderr(true);
    let script = ["sh", "-c", "tr a-z A-Z; echo bad >&2; exit 7"];
    let mut session = pods.exec("box", script, &asked).await.unwrap();
    let status = session.take_status().unwrap();
    let (mut input, mut output) = (session.stdin().unwrap(), session.stdout().unwrap());
    let mut errors = session.stderr().unwrap();
    let text = "hello in there\n".repeat(20_000);
    let sent = text.clone();
    let sending = tokio::spawn(async move {
        input.write_all(sent.as_bytes()).await.unwrap();
        input.shutdown().await.unwrap();
    });
    let (mut got, mut complaint) = (String::new(), String::new());
    output.read_to_string(&mut got).await.unwrap();
    errors.read_to_string(&mut complaint).await.unwrap();
    assert!(got == text.to_uppercase(), "{} bytes", got.len());
    assert_eq!(complaint, "bad\n");
    sending.await.unwrap();
    let status = status.await.unwrap();
    assert_eq!(status.reason.as_deref(), Some("NonZeroExitCode"));
    let causes = status.details.unwrap().causes.unwrap();
    assert_eq!(causes[0].message.as_deref(), Some("7"));
    session.join().await.unwrap();

    let missing = pods.exec("box", ["true"], &asked.container("none")).await;
    let refusal = missing.err().unwrap().to_string();
    assert!(
        refusal.contains("container none is not valid for pod box"),
        "{refusal}"
    );
    embedded.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn attach_ends_with_the_cluster() {
    let embedded = longshore_embedded::start().await.unwrap();
    let pods = running(&embedded, &["cat"], true).await;
    let asked = AttachParams::default().stdin(true).stderr(true);
    let mut session = pods.attach("box", &asked).await.unwrap();
    let (mut input, mut output) = (session.stdin().unwrap(), session.stdout().unwrap());
    input.write_all(b"to and fro\n").await.unwrap();
    let mut got = [0; 11];
    output.read_exact(&mut got).await.unwrap();
    assert_eq!(&got, b"to and fro\n");
    // The shutdown does not wait for sessions.
    tokio::time::timeout(TIMEOUT, embedded.stop())
        .await
        .unwrap();
    let mut rest = Vec::new();
    let _ = tokio::time::timeout(TIMEOUT, output.read_to_end(&mut rest))
        .await
        .unwrap();
    assert!(rest.is_empty());
}

/// Waits until a file has this content.
async fn has_text(path: &std::path::Path, text: &str) {
    let written = async {
        while std::fs::read_to_string(path).unwrap_or_default() != text {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let written = tokio::time::timeout(TIMEOUT, written).await;
    let found = std::fs::read_to_string(path).unwrap_or_default();
    assert!(written.is_ok(), "{} bytes", found.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_continues_without_its_client_and_gets_all_input() {
    let embedded = longshore_embedded::start().await.unwrap();
    let pods = running(&embedded, &["sleep", "1000"], false).await;
    let folder = tempfile::tempdir().unwrap();
    let asked = AttachParams::default().stdin(true).stderr(true);

    // The command has started when its client disconnects, and writes to it afterwards.
    let (file, go) = (folder.path().join("file"), folder.path().join("go"));
    let script = format!(
        "echo begin > {0}; echo ready; until test -e {1}; do sleep 0.01; done; \
         seq 1 100000; echo end >> {0}",
        file.display(),
        go.display()
    );
    let mut session = pods
        .exec("box", ["sh", "-c", &script], &asked)
        .await
        .unwrap();
    let mut output = [0; 6];
    session
        .stdout()
        .unwrap()
        .read_exact(&mut output)
        .await
        .unwrap();
    session.abort();
    drop(session);
    std::fs::write(&go, "").unwrap();
    has_text(&file, "begin\nend\n").await;

    // The command starts after its client has sent everything and disconnected.
    let sent = folder.path().join("sent");
    let script = format!("cat > {}", sent.display());
    let mut session = pods
        .exec("box", ["sh", "-c", &script], &asked)
        .await
        .unwrap();
    let text = "0123456789\n".repeat(50_000);
    // Dropping the client stops sending: it must have sent all but a last piece that is
    // smaller than this.
    let rest = "x".repeat(64 << 10);
    let mut input = session.stdin().unwrap();
    input
        .write_all((text.clone() + &rest).as_bytes())
        .await
        .unwrap();
    drop((input, session));
    let arrived = async {
        while !std::fs::read_to_string(&sent)
            .unwrap_or_default()
            .starts_with(&text)
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let arrived = tokio::time::timeout(TIMEOUT, arrived).await;
    assert!(arrived.is_ok(), "{:?}", sent.metadata());
    embedded.stop().await;
}
