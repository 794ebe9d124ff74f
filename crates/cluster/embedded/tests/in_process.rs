//! An embedded cluster in this process, with and without an endpoint.
#![allow(clippy::unwrap_used)]

use std::{
    net::{Ipv4Addr, SocketAddr},
    os::unix::fs::PermissionsExt,
    time::Duration,
};

use longshore_client::{Cluster, DeleteOptions, Patch, WatchEvent};
use longshore_embedded::{EmbeddedCluster, Error, FaultRule, Options};
use serde_json::json;

const TIMEOUT: Duration = Duration::from_secs(30);

fn durable(dir: &std::path::Path) -> Options {
    Options {
        ephemeral: false,
        data_dir: Some(dir.to_owned()),
        nodes: 0,
        ..Options::default()
    }
}

fn loopback() -> Option<SocketAddr> {
    Some((Ipv4Addr::LOCALHOST, 0).into())
}

#[tokio::test]
async fn an_ephemeral_cluster_leaves_nothing_behind() {
    let embedded = longshore_embedded::start().await.unwrap();
    let dir = embedded.layout().dir().to_owned();
    assert!(dir.exists());
    assert_eq!((embedded.url(), embedded.kubeconfig_path()), (None, None));
    let cluster = embedded.cluster();
    let maps = cluster.configmaps().in_namespace("default").unwrap();
    maps.create(&json!({"metadata": {"name": "a"}, "data": {"k": "v"}}))
        .await
        .unwrap();
    let patched = maps
        .patch("a", &Patch::merge(json!({"data": {"k": "w"}})))
        .await
        .unwrap();
    assert_eq!(patched.raw().unwrap()["data"]["k"], "w");
    embedded.stop().await;
    assert!(
        !dir.exists(),
        "the temporary folder is removed with the cluster"
    );
}

#[tokio::test]
async fn a_pod_runs_as_a_process_and_its_log_can_be_read() {
    let embedded = longshore_embedded::start().await.unwrap();
    let pods = embedded.cluster().pods().in_namespace("default").unwrap();
    let container = json!({
        "name": "main", "image": "any", "command": ["sh", "-c", "echo hello; exit 3"],
    });
    let spec = json!({"restartPolicy": "Never", "containers": [container]});
    let pod = pods
        .create(&json!({"metadata": {"name": "p"}, "spec": spec}))
        .await
        .unwrap();

    let mut watch = pod.watch().await.unwrap();
    let last = tokio::time::timeout(TIMEOUT, async {
        loop {
            let found = match watch.next(None).await.unwrap() {
                WatchEvent::Added(pod) | WatchEvent::Modified(pod) => pod,
                WatchEvent::Resync(list) => list.items.into_iter().next().unwrap(),
                WatchEvent::Deleted(_) => panic!("nothing deletes the pod"),
            };
            let status = found.raw().unwrap()["status"].clone();
            if status["phase"] == "Failed" || status["phase"] == "Succeeded" {
                return status;
            }
        }
    })
    .await
    .unwrap();
    assert_eq!(last["phase"], "Failed");
    assert_eq!(
        last["containerStatuses"][0]["state"]["terminated"]["exitCode"],
        3
    );

    use futures::TryStreamExt as _;
    let log = pods
        .logs("p", &longshore_client::LogOptions::default())
        .await
        .unwrap();
    let chunks: Vec<_> = log.try_collect().await.unwrap();
    assert_eq!(chunks.concat(), b"hello\n");
    embedded.stop().await;
}

#[tokio::test]
async fn requests_for_ephemeral_storage_are_counted() {
    let embedded = longshore_embedded::start().await.unwrap();
    let pods = embedded.cluster().pods().in_namespace("default").unwrap();
    let pod = |name: &str, storage: &str| {
        let container = json!({
            "name": "main", "image": "any", "command": ["true"],
            "resources": {"requests": {"ephemeral-storage": storage}},
        });
        let spec = json!({"restartPolicy": "Never", "containers": [container]});
        json!({"metadata": {"name": name}, "spec": spec})
    };
    pods.create(&pod("small", "1Mi")).await.unwrap();
    let succeeded =
        |pod: &longshore_client::Item<_>| pod.raw().unwrap()["status"]["phase"] == "Succeeded";
    pods.wait("small", succeeded, TIMEOUT).await.unwrap();
    // More than the file system of any test machine.
    pods.create(&pod("large", "1Ei")).await.unwrap();
    let refused = |pod: &longshore_client::Item<_>| {
        let message = &pod.raw().unwrap()["status"]["conditions"][0]["message"];
        message
            .as_str()
            .is_some_and(|text| text.contains("Insufficient ephemeral-storage"))
    };
    pods.wait("large", refused, TIMEOUT).await.unwrap();
    embedded.stop().await;
}

#[tokio::test]
async fn a_durable_cluster_keeps_objects_port_and_token() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        listen: loopback(),
        ..durable(dir.path())
    };

    let first = EmbeddedCluster::start(options.clone()).await.unwrap();
    let kubeconfig = first.kubeconfig_path().unwrap().to_owned();
    let url = first.url().unwrap().to_owned();
    let mode = std::fs::metadata(&kubeconfig).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let text = std::fs::read(&kubeconfig).unwrap();
    let remote = Cluster::from_kubeconfig(Some(&kubeconfig), None)
        .await
        .unwrap();
    let maps = remote.configmaps().in_namespace("default").unwrap();
    maps.create(&json!({"metadata": {"name": "kept"}}))
        .await
        .unwrap();
    first.stop().await;

    let second = EmbeddedCluster::start(options).await.unwrap();
    assert_eq!(second.url(), Some(url.as_str()));
    assert_eq!(
        std::fs::read(&kubeconfig).unwrap(),
        text,
        "a copy of the kubeconfig stays valid"
    );
    let remote = Cluster::from_kubeconfig(Some(&kubeconfig), None)
        .await
        .unwrap();
    let maps = remote.configmaps().in_namespace("default").unwrap();
    assert_eq!(maps.fetch("kept").await.unwrap().name(), "kept");
    second.stop().await;
}

#[tokio::test]
async fn the_endpoint_rejects_unauthenticated_clients() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        listen: loopback(),
        ..durable(dir.path())
    };
    let embedded = EmbeddedCluster::start(options).await.unwrap();
    let own = embedded.kubeconfig_path().unwrap();
    let text = std::fs::read_to_string(own).unwrap();
    let forged = dir.path().join("forged");
    // Remove the client certificate, which is sufficient by itself.
    let lines = text.lines().filter(|line| !line.contains("client-"));
    let lines = lines.map(|line| match line.contains("token:") {
        true => "    token: \"guess\"",
        false => line,
    });
    std::fs::write(&forged, lines.collect::<Vec<_>>().join("\n")).unwrap();
    let stranger = Cluster::from_kubeconfig(Some(&forged), None).await.unwrap();
    let error = stranger.namespaces().list().await.unwrap_err();
    assert!(error.is_unauthorized(), "{error}");
    embedded.stop().await;
}

#[tokio::test]
async fn a_folder_is_used_by_one_cluster_only() {
    let dir = tempfile::tempdir().unwrap();
    let first = EmbeddedCluster::start(durable(dir.path())).await.unwrap();
    let error = EmbeddedCluster::start(durable(dir.path()))
        .await
        .err()
        .unwrap();
    assert!(matches!(error, Error::Busy(_)), "{error}");
    first.stop().await;
    EmbeddedCluster::start(durable(dir.path()))
        .await
        .unwrap()
        .stop()
        .await;
}

#[tokio::test]
async fn invalid_options_are_rejected() {
    let open = Options {
        listen: Some("0.0.0.0:0".parse().unwrap()),
        ..Options::default()
    };
    let error = EmbeddedCluster::start(open).await.err().unwrap();
    assert!(matches!(error, Error::NotLoopback(_)), "{error}");

    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let error = EmbeddedCluster::start(durable(&file)).await.err().unwrap();
    assert!(matches!(error, Error::File { .. }), "{error}");

    let foreign = Options {
        listen: loopback(),
        kubeconfig: Some(file.clone()),
        ..durable(&dir.path().join("data"))
    };
    let error = EmbeddedCluster::start(foreign).await.err().unwrap();
    assert!(matches!(error, Error::ForeignKubeconfig(_)), "{error}");
    assert_eq!(
        std::fs::read(&file).unwrap(),
        b"x",
        "the folder is unchanged"
    );
}

/// The Python example is run as written in the documentation.
#[tokio::test(flavor = "multi_thread")]
async fn faults_from_python() {
    let document = include_str!("../../../../docs/faults.md");
    let begin = document.find("```python\n").unwrap() + 10;
    let program = &document[begin..begin + document[begin..].find("```").unwrap()];
    let embedded = EmbeddedCluster::start(Options {
        listen: loopback(),
        faults: true,
        ..Options::server()
    })
    .await
    .unwrap();
    let output = tokio::process::Command::new("python3")
        .args(["-c", program])
        .env("KUBECONFIG", embedded.kubeconfig_path().unwrap())
        .output()
        .await
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    embedded.stop().await;
}

#[tokio::test]
async fn internal_clients_are_not_affected_by_faults() {
    let embedded = longshore_embedded::start().await.unwrap();
    let rule = FaultRule::answer(500).verbs(["list", "watch", "update", "patch"]);
    embedded.faults().add(rule).unwrap();
    let spaces = embedded.cluster().namespaces();
    spaces
        .create(&json!({"metadata": {"name": "s"}}))
        .await
        .unwrap();
    // For this, the namespace controller lists, patches and finalizes.
    spaces.delete("s", &DeleteOptions::default()).await.unwrap();
    let gone = async {
        while spaces.find("s").await.unwrap().is_some() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, gone).await.unwrap();
    embedded.stop().await;
}

/// Hundreds of servers in one process at the same time, independent of each other, with one
/// thread and one descriptor each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hundreds_at_once() {
    const SERVERS: usize = 300;
    let mut starting = tokio::task::JoinSet::new();
    for number in 0..SERVERS {
        starting.spawn(async move {
            let embedded = longshore_embedded::start_server().await.unwrap();
            (number, embedded)
        });
    }
    let mut uses = tokio::task::JoinSet::new();
    for (number, embedded) in starting.join_all().await {
        uses.spawn(async move {
            let maps = embedded.cluster().configmaps();
            let maps = maps.in_namespace("default").unwrap();
            let mut watch = maps.watch().await.unwrap();
            let name = format!("of-{number}");
            let map = json!({"metadata": {"name": name}});
            maps.create(&map).await.unwrap();
            match watch.next(Some(TIMEOUT)).await.unwrap() {
                WatchEvent::Added(map) => assert_eq!(map.name(), name),
                other => panic!("{other:?}"),
            }
            assert_eq!(maps.list().await.unwrap().items.len(), 1);
            embedded
        });
    }
    for embedded in uses.join_all().await {
        embedded.stop().await;
    }
}

#[tokio::test]
async fn the_address_and_certificate_of_the_endpoint_are_available() {
    let options = Options {
        listen: loopback(),
        nodes: 0,
        ..Options::default()
    };
    let embedded = EmbeddedCluster::start(options).await.unwrap();
    let cluster = embedded.cluster();
    let raw = async |word: &str, name: &str| {
        let view = cluster.kind(word).await.unwrap();
        let view = view.in_namespace("default").unwrap();
        let item = view.wait(name, |_| true, TIMEOUT).await.unwrap();
        item.raw().unwrap()
    };
    let url = embedded.url().unwrap().to_owned();
    let listens = |address: &serde_json::Value, port: &serde_json::Value| {
        let address = address.as_str().unwrap();
        assert_eq!(format!("https://{address}:{port}"), url);
    };
    let endpoints = raw("endpoints", "kubernetes").await;
    let subset = &endpoints["subsets"][0];
    listens(&subset["addresses"][0]["ip"], &subset["ports"][0]["port"]);
    let slice = raw("endpointslices", "kubernetes").await;
    listens(
        &slice["endpoints"][0]["addresses"][0],
        &slice["ports"][0]["port"],
    );
    assert_eq!(
        slice["metadata"]["labels"]["kubernetes.io/service-name"],
        "kubernetes"
    );
    let map = raw("configmaps", "kube-root-ca.crt").await;
    let certificate = map["data"]["ca.crt"].as_str().unwrap();
    assert!(certificate.starts_with("-----BEGIN CERTIFICATE-----"));
    embedded.stop().await;
}

#[tokio::test]
async fn a_deleted_system_namespace_is_recreated() {
    let embedded = EmbeddedCluster::start(Options {
        nodes: 0,
        ..Options::default()
    });
    let embedded = embedded.await.unwrap();
    let namespaces = embedded.cluster().namespaces();
    let old = namespaces.fetch("kube-node-lease").await.unwrap();
    let old = old.uid().to_owned();
    namespaces
        .delete("kube-node-lease", &DeleteOptions::default())
        .await
        .unwrap();
    let is_new = |item: &longshore_client::Item<_>| item.uid() != old;
    tokio::time::timeout(2 * TIMEOUT, async {
        loop {
            match namespaces.find("kube-node-lease").await.unwrap() {
                Some(found) if is_new(&found) => return,
                _ => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    })
    .await
    .unwrap();
    embedded.stop().await;
}

/// A service account token that another program obtained remains valid after a restart of the
/// cluster, and so does the client certificate.
#[tokio::test]
async fn tokens_and_certificates_survive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        listen: loopback(),
        ..durable(dir.path())
    };
    let first = EmbeddedCluster::start(options.clone()).await.unwrap();
    let path = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let request = json!({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1"});
    let answer = first
        .cluster()
        .proxy()
        .post(path, &[], &request)
        .await
        .unwrap();
    let token = answer["status"]["token"].as_str().unwrap().to_owned();
    let text = std::fs::read_to_string(first.kubeconfig_path().unwrap()).unwrap();
    let key = dir.path().join("certificates/service-account.key");
    let mode = std::fs::metadata(key).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    first.stop().await;

    let second = EmbeddedCluster::start(options).await.unwrap();
    let lines = |keep: &dyn Fn(&str) -> bool| {
        let lines = text.lines().filter(|line| keep(line));
        lines.collect::<Vec<_>>().join("\n")
    };
    let with_certificate = lines(&|line| !line.contains("token:"));
    let with_token = lines(&|line| !line.contains("client-"));
    let own = text.lines().find(|line| line.contains("token:")).unwrap();
    let with_token = with_token.replace(own, &format!("    token: {token}"));
    let reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    for (text, expected) in [
        (with_certificate, "longshore-admin"),
        (with_token, "system:serviceaccount:default:default"),
    ] {
        let file = dir.path().join("other");
        std::fs::write(&file, text).unwrap();
        let client = Cluster::from_kubeconfig(Some(&file), None).await.unwrap();
        let review = client.proxy().post(reviews, &[], &json!({})).await.unwrap();
        assert_eq!(review["status"]["userInfo"]["username"], expected);
    }
    second.stop().await;
}

/// The warnings in the response to a create.
async fn warnings(
    embedded: &EmbeddedCluster,
    path: &str,
    object: serde_json::Value,
) -> Vec<String> {
    let request = http::Request::post(path).header("content-type", "application/json");
    let request = request
        .body(object.to_string().into_bytes().into())
        .unwrap();
    let client = embedded.cluster().kube_client();
    let response = client.send(request).await.unwrap();
    assert_eq!(response.status(), 201, "{path}");
    let all = response.headers().get_all("warning").iter();
    all.map(|text| text.to_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn unsupported_kinds_cause_warnings_unless_other_controllers_may_act() {
    const NODES: &str = "/apis/storage.k8s.io/v1/csinodes";
    const MAPS: &str = "/api/v1/namespaces/default/configmaps";
    let node = json!({"metadata": {"name": "n"}, "spec": {"drivers": []}});
    let map = json!({"metadata": {"name": "a"}});

    let whole = EmbeddedCluster::start(Options {
        nodes: 0,
        ..Options::default()
    });
    let whole = whole.await.unwrap();
    let received = warnings(&whole, NODES, node.clone()).await;
    let expected = "299 - \"csinodes.storage.k8s.io are stored, but this cluster does not act on \
                    them: no storage is managed; see docs/kinds.md\"";
    assert_eq!(received, [expected]);
    assert!(warnings(&whole, MAPS, map).await.is_empty());
    whole.stop().await;

    let alone = longshore_embedded::start_server().await.unwrap();
    assert!(warnings(&alone, NODES, node).await.is_empty());
    alone.stop().await;
}
