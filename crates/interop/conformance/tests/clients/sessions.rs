//! Sessions of kubectl commands. Each runs with all pinned kubectl versions, and the
//! output is compared with recordings.
//!
//! The recordings were made with the same kubectl versions on a real kube-apiserver. They
//! differ only where a newer kube-apiserver responds differently. To record on another
//! cluster, set `LONGSHORE_TEST_KUBECONFIG` to its kubeconfig.

use std::{
    env,
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use longshore_conformance::{Kubectl, Server};

use crate::transcript::{commands, normalize};

macro_rules! sessions {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        $(
            $(#[$doc])*
            #[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                let text = include_str!(concat!("sessions/", stringify!($name), ".md"));
                run(stringify!($name), text).await;
            }
        )*
    };
}

sessions! {
    apply,
    apply_server_side,
    cluster,
    create,
    create_files,
    create_more,
    custom,
    delete,
    describe,
    describe_cluster,
    discovery,
    edit_replace,
    events,
    explain,
    get,
    metadata,
    patch,
    priority,
    rollout,
    scale_set,
    wait,
    watch,
}

/// Runs a session with all pinned kubectl versions, each on its own cluster.
async fn run(name: &'static str, text: &'static str) {
    let mut running = Vec::new();
    for binary in Kubectl::binaries() {
        let kubectl = binary.file_name().unwrap().to_string_lossy().into_owned();
        if !kubectl.starts_with("kubectl-v") {
            continue;
        }
        let transcript = match env::var_os("LONGSHORE_TEST_KUBECONFIG") {
            Some(other) => {
                let kubectl = Kubectl::new(binary, other.as_ref());
                let transcript = transcript(&kubectl, name, text).await;
                clear(&kubectl).await;
                tokio::spawn(async { transcript })
            }
            None => tokio::spawn(async move {
                let server = Server::bare().await;
                let kubectl = Kubectl::new(binary, &server.kubeconfig());
                let transcript = transcript(&kubectl, name, text).await;
                server.stop().await;
                transcript
            }),
        };
        running.push((kubectl, transcript));
    }
    for (kubectl, transcript) in running {
        let transcript = transcript.await.unwrap();
        insta::with_settings!({
            prepend_module_to_snapshot => false,
            omit_expression => true,
        }, {
            insta::assert_snapshot!(format!("{name}@{kubectl}"), transcript);
        });
    }
}

async fn transcript(kubectl: &Kubectl, name: &str, text: &str) -> String {
    let suffix = unique();
    let namespace = format!("{}-{suffix}", name.replace('_', "-"));
    kubectl.ok(&["create", "namespace", &namespace]).await;
    let set = ["config", "set-context", "--current", "--namespace"];
    kubectl.ok(&[&set[..], &[&namespace]].concat()).await;
    let mut transcript = String::new();
    for command in commands(text) {
        let ran = kubectl.shell(&command).await;
        transcript += &format!("$ {command}\n{}", normalize(&ran.stdout, &suffix));
        if ran.code != Some(0) {
            transcript += &format!("[exit {}]\n", ran.code.unwrap_or(-1));
        }
        transcript += "\n";
    }
    transcript
}

/// Deletes the objects of a session on a persistent cluster.
async fn clear(kubectl: &Kubectl) {
    let kinds = "pods,jobs,deploy,rs,sts,ds,cm,svc,secrets";
    let force = ["--force", "--grace-period=0", "--wait=false"];
    kubectl
        .ok(&[&["delete", kinds, "--all"][..], &force].concat())
        .await;
}

/// A suffix that no other namespace has, including namespaces of earlier runs. Its length is
/// constant, so that columns have the same width.
fn unique() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let start = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let mut number = start.as_millis() as u64 + NEXT.fetch_add(1, Ordering::Relaxed);
    let letter = |_| {
        let letter = b"bcdfghjkmnpqrstvwxyz"[(number % 20) as usize];
        number /= 20;
        char::from(letter)
    };
    (0..5).map(letter).collect()
}
