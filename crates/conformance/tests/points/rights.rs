//! What the resolver may do with little: on a real server by its own rules of
//! access, which the embedded one stores and does not enforce.

use longshore::{
    Cluster,
    client::Patch,
    resolver::{Error, Resolver},
};
use serde_json::{Value, json};

use crate::common::{Here, SOON};

/// A connection as somebody who is nobody in particular.
pub(crate) async fn as_user(here: &Here, user: &str) -> Cluster {
    let text = std::fs::read_to_string(here.test.kubeconfig()).unwrap();
    let mut config: Value = serde_yaml_ng::from_str(&text).unwrap();
    config["users"][0]["user"]["as"] = json!(user);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    std::fs::write(&path, config.to_string()).unwrap();
    Cluster::from_kubeconfig(Some(&path), None).await.unwrap()
}

async fn worker(here: &Here, name: &str, ip: &str) {
    let pods = here.cluster.pods().in_namespace(here.namespace()).unwrap();
    let pod = json!({
        "metadata": {"name": name, "labels": {"app": "train"}},
        "spec": {"containers": [{"name": "main", "image": "image"}]},
    });
    pods.create(&pod).await.unwrap();
    let runs = Patch::merge(json!({"status": {"phase": "Running", "podIP": ip}}));
    pods.patch_status(name, &runs).await.unwrap();
}

#[tokio::test]
async fn a_token_that_may_list_pods_of_its_namespace_is_enough_to_follow_a_job() {
    let here = Here::start().await;
    let (namespace, group) = (here.namespace(), "rbac.authorization.k8s.io");
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
        here.cluster.create(&object, None).await.unwrap();
    }
    worker(&here, "w-0", "10.0.0.1").await;
    let resolver = |cluster| {
        Resolver::new(cluster)
            .with_namespace(Some(namespace))
            .with_mapping([("worker", vec!["app=train".parse().unwrap()])])
    };
    let lister = as_user(&here, &format!("lister-{namespace}")).await;
    let lister = resolver(lister);
    assert_eq!(lister.tasks().await.unwrap().len(), 1);
    assert_eq!(lister.accelerators().await.unwrap().len(), 1);
    let mut generations = lister.watch().await.unwrap();
    assert_eq!(generations.next().await.unwrap().tasks.len(), 1);
    worker(&here, "w-1", "10.0.0.2").await;
    let next = tokio::time::timeout(SOON, generations.next()).await;
    assert_eq!(next.unwrap().unwrap().tasks.len(), 2);

    let nobody = resolver(as_user(&here, "nobody").await);
    let outcome = nobody.tasks().await;
    if !here.test.is_real() {
        assert_eq!(outcome.unwrap().len(), 2);
        return;
    }
    let error = outcome.unwrap_err();
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
