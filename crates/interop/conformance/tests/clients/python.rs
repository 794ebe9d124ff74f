//! Python clients: each script in the folder `python` tests a client, on its own server.

use std::{env, path::Path, process::Stdio, time::Duration};

use longshore_conformance::Server;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    process::Command,
    time::timeout,
};

/// Longer than the deadline in the scripts.
const SCRIPT_TIMEOUT: Duration = Duration::from_secs(300);

macro_rules! scripts {
    ($($name:ident,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                run(stringify!($name), Server::bare().await).await;
            }
        )*
    };
}

scripts! {
    kr8s_async,
    kr8s_sync,
    kubernetes_custom,
    kubernetes_dynamic,
    kubernetes_every_kind,
    kubernetes_leader,
    kubernetes_typed,
    lightkube_all,
}

/// On a server with a node that runs pods.
#[tokio::test(flavor = "multi_thread")]
async fn kubernetes_streams() {
    run("kubernetes_streams", Server::start().await).await;
}

async fn run(name: &str, server: Server) {
    let python = env::var_os("LONGSHORE_TEST_PYTHON")
        .expect("LONGSHORE_TEST_PYTHON names the Python with the clients: run `cargo xtask test`");
    // Empty if the clients could not be installed, which `cargo xtask test` reports.
    if python.is_empty() {
        return server.stop().await;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("python/{name}.py"));
    let mut child = Command::new(&python)
        .args(["-B", "-W", "ignore"])
        .arg(script)
        .env("KUBECONFIG", server.kubeconfig())
        .env("HOME", server.folder())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap_or_else(|error| panic!("{}: {error}", python.display()));
    let mut errors = child.stderr.take().unwrap();
    let errors = tokio::spawn(async move {
        let mut text = Vec::new();
        errors.read_to_end(&mut text).await.unwrap();
        String::from_utf8_lossy(&text).into_owned()
    });
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut printed = String::new();
    let finished = timeout(SCRIPT_TIMEOUT, async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line == "expire" {
                server.expire_history().await;
                stdin.write_all(b"done\n").await.unwrap();
            } else {
                printed += &line;
                printed.push('\n');
            }
        }
        child.wait().await.unwrap()
    });
    let status = finished
        .await
        .unwrap_or_else(|_| panic!("{name} did not end"));
    let errors = errors.await.unwrap();
    assert!(status.success(), "{name}: {status}\n{printed}{errors}");
    server.stop().await;
}
