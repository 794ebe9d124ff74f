//! kube-rs and its runtime for controllers.

mod api;
mod apply;
mod controller;
mod custom;
mod discovery;
mod events;
mod watches;

use std::{fmt::Debug, time::Duration};

use k8s_openapi::{NamespaceResourceScope, api::core::v1::ConfigMap};
use kube_client::{
    Api, Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use kube_core::Resource;
use longshore_conformance::Server;
use serde::de::DeserializeOwned;
use serde_json::json;

/// Longer than any single step of the tests takes on a busy machine.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);

/// A client for the kubeconfig of a server.
async fn client(server: &Server) -> Client {
    let kubeconfig = Kubeconfig::read_from(server.kubeconfig()).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    Client::try_from(config).unwrap()
}

/// An API for the namespace `default`.
fn api<K>(client: &Client) -> Api<K>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    K: Clone + DeserializeOwned + Debug,
{
    Api::namespaced(client.clone(), "default")
}

fn config_map(name: &str, value: &str) -> ConfigMap {
    serde_json::from_value(json!({
        "metadata": {"name": name, "labels": {"of": "the-test"}},
        "data": {"value": value},
    }))
    .unwrap()
}

async fn in_time<T>(step: impl Future<Output = T>) -> T {
    tokio::time::timeout(STEP_TIMEOUT, step)
        .await
        .expect("the step ends in time")
}
