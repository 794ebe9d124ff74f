//! The resolver with minimal permissions.

use longshore::{
    Cluster,
    client::Patch,
    resolver::{Error, Resolver},
};
use serde_json::{Value, json};

use crate::common::{Fixture, TIMEOUT};

/// A client that impersonates a user without permissions.
pub(crate) async fn as_user(fixture: &Fixture, user: &str) -> Cluster {
    let text = std::fs::read_to_string(fixture.test.kubeconfig()).unwrap();
    let mut config: Value = serde_yaml_ng::from_str(&text).unwrap();
    config["users"][0]["user"]["as"] = json!(user);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    std::fs::write(&path, config.to_string()).unwrap();
    Cluster::from_kubeconfig(Some(&path), None).await.unwrap()
}

async fn worker(fixture: &Fixture, name: &str, ip: &str) {
    let pods = fixture
        .cluster
        .pods()
        .in_namespace(fixture.namespace())
        .unwrap();
    let pod = json!({
        "metadata": {"name": name, "labels": {"app": "train"}},
        "spec": {"containers": [{"name": "main", "image": "image"}]},
    });
    pods.create(&pod).await.unwrap();
    let runs = Patch::merge(json!({"status": {"phase": "Running", "podIP": ip}}));
    pods.patch_status(name, &runs).await.unwrap();
}

#[tokio::test]
async fn permission_to_list_pods_suffices_to_follow_a_job() {
    let fixture = Fixture::start().await;
    let (namespace, group) = (fixture.namespace(), "rbac.authorization.k8s.io");
    for object in [
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "Role",
            "metadata": {"name": "lister", "namespace": namespace},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}],
        }),
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "RoleBinding",
            "metadata": {"name": "lister", "namespace": namespace},
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "lister"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": format!("lister-{namespace}")}],
        }),
    ] {
        fixture.cluster.create(&object, None).await.unwrap();
    }
    worker(&fixture, "w-0", "10.0.0.1").await;
    let resolver = |cluster| {
        Resolver::new(cluster)
            .with_namespace(Some(namespace))
            .with_mapping([("worker", vec!["app=train".parse().unwrap()])])
    };
    let lister = as_user(&fixture, &format!("lister-{namespace}")).await;
    let lister = resolver(lister);
    assert_eq!(lister.tasks().await.unwrap().len(), 1);
    assert_eq!(lister.accelerators().await.unwrap().len(), 1);
    let mut generations = lister.watch().await.unwrap();
    assert_eq!(generations.next().await.unwrap().tasks.len(), 1);
    worker(&fixture, "w-1", "10.0.0.2").await;
    let next = tokio::time::timeout(TIMEOUT, generations.next()).await;
    assert_eq!(next.unwrap().unwrap().tasks.len(), 2);

    let unprivileged = resolver(as_user(&fixture, "unprivileged").await);
    let error = unprivileged.tasks().await.unwrap_err();
    assert!(
        matches!(error, Error::Forbidden { verb: "list", .. }),
        "{error:?}"
    );
    let text = error.to_string();
    assert!(
        text.contains(&format!(
            "list pods in namespace \"{namespace}\" is missing"
        )),
        "{text}"
    );
    let everywhere = lister.with_namespace(None).tasks().await.unwrap_err();
    assert!(
        everywhere
            .to_string()
            .contains("in all namespaces is missing"),
        "{everywhere}"
    );
}
