//! The controllers as clients of an API server that runs without them.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use longshore_client::Cluster;
use longshore_embedded::{
    EmbeddedCluster, Options,
    controllers::{self, Files},
};
use serde_json::json;
use tokio::sync::oneshot;

const TIMEOUT: Duration = Duration::from_secs(30);

#[tokio::test]
async fn the_controllers_run_on_another_api_server() {
    let options = Options {
        listen: Some(([127, 0, 0, 1], 0).into()),
        ..Options::server()
    };
    let server = EmbeddedCluster::start(options).await.unwrap();
    let kubeconfig = server.kubeconfig_path().unwrap().to_owned();
    let cluster = Cluster::from_kubeconfig(Some(&kubeconfig), None).await;
    let certificates = server.layout().dir().join("certificates");
    let files = Files {
        root_ca: None,
        service_account_key: Some(certificates.join("service-account.key")),
    };
    let (ready, is_ready) = oneshot::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let end = async {
        let _ = stopped.await;
    };
    let ready = move || ready.send(()).unwrap();
    let running = tokio::spawn(controllers::run(cluster.unwrap(), files, ready, end));
    tokio::time::timeout(TIMEOUT, is_ready)
        .await
        .unwrap()
        .unwrap();
    let secrets = server.cluster().secrets().in_namespace("default").unwrap();
    let secret = json!({
        "metadata": {
            "name": "t", "annotations": {"kubernetes.io/service-account.name": "default"},
        },
        "type": "kubernetes.io/service-account-token",
    });
    secrets.create(&secret).await.unwrap();
    let has_token =
        |item: &longshore_client::Item<_>| item.raw().unwrap()["data"]["token"].as_str().is_some();
    secrets.wait("t", has_token, TIMEOUT).await.unwrap();
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
    server.stop().await;
}
