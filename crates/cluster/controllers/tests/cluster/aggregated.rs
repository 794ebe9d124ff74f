//! Objects of an aggregated API server, which is another API server in the same process. It serves
//! the kind `Fish` over the network.

use longshore_apiserver::{Authority, AuthorizationMode};
use longshore_client::{Cluster, DeleteOptions, Propagation, View, kinds::Any};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::fixture::{Fixture, api_server, until};

const GROUP: &str = "fish.example.com";

/// A cluster with an aggregated API server, which ends with the runtime of its test.
struct Aggregating {
    fixture: Fixture,
    /// The aggregated API server, accessed directly instead of through the cluster.
    backend: Cluster,
    slice: Value,
}

impl Aggregating {
    async fn start() -> Self {
        let fixture = Fixture::start().await;
        tokio::spawn(fixture.server.aggregate());
        let server = api_server(AuthorizationMode::AlwaysAllow);
        let backend = Cluster::from_service(server.service(), "default");
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "fish.fish.example.com"},
            "spec": {"group": GROUP, "scope": "Namespaced",
                "names": {"plural": "fish", "kind": "Fish"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}}}]},
        });
        backend.create(&definition, None).await.unwrap();

        let folder = tempfile::tempdir().unwrap();
        let clients = folder.path().join("proxy.crt");
        let data = fixture.server.request_headers().unwrap();
        let proxy = data
            .iter()
            .find(|(name, _)| *name == "requestheader-client-ca-file");
        std::fs::write(&clients, &proxy.unwrap().1).unwrap();
        let authority = Authority::ephemeral().unwrap();
        let tls = authority
            .server_for_clients_of::<&str>(&[], &clients)
            .unwrap();
        let listener = TcpListener::bind("127.64.0.11:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { server.serve(listener, tls, std::future::pending()).await });

        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": "backend-a", "namespace": "default",
                "labels": {"kubernetes.io/service-name": "backend"}},
            "addressType": "IPv4",
            "ports": [{"name": "", "port": address.port()}],
            "endpoints": [{"addresses": [address.ip()], "conditions": {"ready": true}}],
        });
        let service = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "backend", "namespace": "default"},
            "spec": {"ports": [{"port": 443}]}});
        let api_service = json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": "v1.fish.example.com"},
            "spec": {"group": GROUP, "version": "v1",
                "groupPriorityMinimum": 2000, "versionPriority": 10,
                "service": {"namespace": "default", "name": "backend"},
                "insecureSkipTLSVerify": true},
        });
        for object in [&service, &slice, &api_service] {
            fixture.cluster.create(object, None).await.unwrap();
        }
        let started = Self {
            fixture,
            backend,
            slice,
        };
        started.until_available("Passed").await;
        started
    }

    /// Waits for a reason of the condition `Available`.
    async fn until_available(&self, reason: &str) {
        let services = self.fixture.cluster.kind("apiservices").await.unwrap();
        until(reason, async || {
            let service = services.fetch("v1.fish.example.com").await.unwrap();
            let service = service.raw().unwrap();
            let mut conditions = service["status"]["conditions"].as_array()?.iter();
            conditions
                .find(|found| found["reason"] == reason)
                .map(|_| ())
        })
        .await;
    }

    /// Makes the server unavailable.
    async fn fail(&self) {
        let slices = self.fixture.cluster.kind("endpointslices").await.unwrap();
        let slices = slices.in_namespace("default").unwrap();
        slices
            .delete("backend-a", &DeleteOptions::default())
            .await
            .unwrap();
        self.until_available("EndpointsNotFound").await;
    }

    async fn recover(&self) {
        self.fixture
            .cluster
            .create(&self.slice, None)
            .await
            .unwrap();
        self.until_available("Passed").await;
    }

    async fn fish(&self, namespace: &str) -> View<Any> {
        let fish = self.backend.kind("fish.fish.example.com").await.unwrap();
        fish.in_namespace(namespace).unwrap()
    }

    /// Creates a fish through the cluster; returns its UID.
    async fn create_fish(
        &self,
        namespace: &str,
        name: &str,
        owner: Option<(&str, &str)>,
    ) -> String {
        let mut fish = json!({
            "apiVersion": "fish.example.com/v1", "kind": "Fish",
            "metadata": {"name": name, "namespace": namespace},
        });
        if let Some((owner, uid)) = owner {
            fish["metadata"]["ownerReferences"] = json!([
                {"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": uid,
                 "blockOwnerDeletion": true}
            ]);
        }
        let made = self.fixture.cluster.create(&fish, None).await.unwrap();
        made.uid().to_owned()
    }

    /// Creates a ConfigMap; returns its UID.
    async fn create_map(&self, name: &str, owner: Option<(&str, &str)>) -> String {
        let mut map = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "default"}});
        if let Some((owner, uid)) = owner {
            map["metadata"]["ownerReferences"] = json!([
                {"apiVersion": "fish.example.com/v1", "kind": "Fish", "name": owner, "uid": uid}
            ]);
        }
        let made = self.fixture.cluster.create(&map, None).await.unwrap();
        made.uid().to_owned()
    }

    async fn delete_map(&self, name: &str, propagation: Propagation) {
        let options = DeleteOptions {
            propagation: Some(propagation),
            ..DeleteOptions::default()
        };
        let maps = self.fixture.cluster.configmaps();
        let maps = maps.in_namespace("default").unwrap();
        maps.delete(name, &options).await.unwrap();
    }

    async fn has_map(&self, name: &str) -> bool {
        let maps = self.fixture.cluster.configmaps();
        let maps = maps.in_namespace("default").unwrap();
        maps.find(name).await.unwrap().is_some()
    }
}

async fn until_gone(view: &View<Any>, name: &str) {
    until("the deletion of the fish", async || {
        view.find(name).await.unwrap().is_none().then_some(())
    })
    .await;
}

#[tokio::test]
async fn objects_are_deleted_with_owners_in_the_cluster() {
    let all = Aggregating::start().await;
    let fish = all.fish("default").await;
    let owner = all.create_map("o", None).await;
    all.create_fish("default", "a", Some(("o", &owner))).await;
    all.create_fish("default", "free", None).await;
    all.delete_map("o", Propagation::Background).await;
    until_gone(&fish, "a").await;

    // A foreground deletion waits for dependents, and orphans lose their owner.
    let owner = all.create_map("o", None).await;
    all.create_fish("default", "b", Some(("o", &owner))).await;
    all.delete_map("o", Propagation::Foreground).await;
    until("the deletion of the owner", async || {
        (!all.has_map("o").await).then_some(())
    })
    .await;
    assert!(fish.find("b").await.unwrap().is_none());
    let owner = all.create_map("o", None).await;
    all.create_fish("default", "c", Some(("o", &owner))).await;
    all.delete_map("o", Propagation::Orphan).await;
    until("the orphan", async || {
        let orphan = fish.find("c").await.unwrap()?;
        let is_orphan = orphan.meta().owner_references.is_empty();
        (is_orphan && !all.has_map("o").await).then_some(())
    })
    .await;
    assert!(fish.find("free").await.unwrap().is_some());
}

#[tokio::test]
async fn objects_can_own_objects_in_the_cluster() {
    let all = Aggregating::start().await;
    let fish = all.fish("default").await;
    let a = all.create_fish("default", "a", None).await;
    let b = all.create_fish("default", "b", None).await;
    all.create_map("of-a", Some(("a", &a))).await;
    all.create_map("of-b", Some(("b", &b))).await;
    fish.delete("a", &DeleteOptions::default()).await.unwrap();
    until("the deletion of the dependent", async || {
        (!all.has_map("of-a").await).then_some(())
    })
    .await;
    // While the server does not respond, it is unknown that an owner is gone.
    all.fail().await;
    fish.delete("b", &DeleteOptions::default()).await.unwrap();
    let services = all.fixture.cluster.kind("apiservices").await.unwrap();
    let options = DeleteOptions::default();
    services
        .delete("v1.fish.example.com", &options)
        .await
        .unwrap();
    all.create_map("late", Some(("b", &b))).await;
    let o = all.create_map("o", None).await;
    let marker = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": "marker", "namespace": "default", "ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": o}]}});
    all.fixture.cluster.create(&marker, None).await.unwrap();
    all.delete_map("o", Propagation::Background).await;
    until("the deletion of the marker", async || {
        (!all.has_map("marker").await).then_some(())
    })
    .await;
    assert!(all.has_map("of-b").await && all.has_map("late").await);
}

#[tokio::test]
async fn a_server_that_fails_holds_up_only_the_owners_of_its_objects() {
    let all = Aggregating::start().await;
    let fish = all.fish("default").await;
    all.create_map("free", None).await;
    let owner = all.create_map("owner", None).await;
    all.create_fish("default", "a", Some(("owner", &owner)))
        .await;
    // After the collector has deleted the second object, whose owner never existed, it has observed
    // both.
    all.create_fish("default", "b", Some(("none", "another-uid")))
        .await;
    until_gone(&fish, "b").await;
    all.fail().await;
    all.delete_map("owner", Propagation::Orphan).await;
    all.delete_map("free", Propagation::Orphan).await;
    until("the deletion of the free owner", async || {
        (!all.has_map("free").await).then_some(())
    })
    .await;
    assert!(all.has_map("owner").await);
    all.recover().await;
    until("the orphan", async || {
        let orphan = fish.find("a").await.unwrap()?;
        let is_orphan = orphan.meta().owner_references.is_empty();
        (is_orphan && !all.has_map("owner").await).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_namespace_is_deleted_with_its_objects_of_an_aggregated_server() {
    let all = Aggregating::start().await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}});
    all.backend.create(&namespace, None).await.unwrap();
    all.fixture.cluster.create(&namespace, None).await.unwrap();
    all.create_fish("a", "x", None).await;
    all.create_fish("default", "y", None).await;
    all.fail().await;
    let namespaces = all.fixture.cluster.namespaces();
    namespaces
        .delete("a", &DeleteOptions::default())
        .await
        .unwrap();
    let message = until("the condition", async || {
        let found = namespaces.fetch("a").await.unwrap().raw().unwrap();
        let mut conditions = found["status"]["conditions"].as_array()?.iter();
        let is_failure = |found: &&Value| {
            found["type"] == "NamespaceDeletionDiscoveryFailure"
                && found["status"] == "True"
                && found["reason"] == "DiscoveryFailed"
        };
        conditions
            .find(is_failure)
            .map(|found| found["message"].clone())
    })
    .await;
    assert_eq!(
        message,
        "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of \
         server APIs: fish.example.com/v1: stale GroupVersion discovery: fish.example.com/v1"
    );
    assert!(all.fish("a").await.find("x").await.unwrap().is_some());
    all.recover().await;
    until("the removal of the namespace", async || {
        namespaces.find("a").await.unwrap().is_none().then_some(())
    })
    .await;
    assert!(all.fish("a").await.find("x").await.unwrap().is_none());
    assert!(all.fish("default").await.find("y").await.unwrap().is_some());
}
