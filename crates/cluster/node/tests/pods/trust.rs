//! Volumes with certificates of ClusterTrustBundles.

use longshore_client::Patch;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use serde_json::{Value, json};

use super::{Stage, helpers::has_namespaces, run_once};

fn authority() -> String {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let pem = params.self_signed(&key).unwrap().pem();
    pem.replace("\r\n", "\n")
}

fn mounting(script: &str, projection: Value) -> Value {
    let mut spec = run_once(script);
    spec["containers"][0]["volumeMounts"] =
        json!([{"name": "v", "mountPath": "/longshore-test/v"}]);
    spec["volumes"] = json!([
        {"name": "v", "projected": {"sources": [{"clusterTrustBundle": projection}]}},
    ]);
    spec
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_of_a_bundle_follow_it() {
    let stage = Stage::new().await;
    if !has_namespaces(&stage).await {
        return;
    }
    let (old, new) = (authority(), authority());
    let bundles = stage.cluster.clustertrustbundles();
    let by_name = json!({"name": "a.example:signer:roots", "path": "ca.pem"});
    let script = "cat /longshore-test/v/ca.pem;\
                  first=$(cat /longshore-test/v/ca.pem); \
                  while test \"$first\" = \"$(cat /longshore-test/v/ca.pem)\"; do sleep 0.01; done; \
                  cat /longshore-test/v/ca.pem";
    // The pod waits for the bundle.
    stage.run("reader", mounting(script, by_name)).await;
    let message = stage.event("reader", "FailedMount").await;
    let expected = "clustertrustbundle \"a.example:signer:roots\" not found";
    assert!(message.ends_with(expected), "{message}");
    let bundle = json!({"metadata": {"name": "a.example:signer:roots", "labels": {"app": "x"}},
        "spec": {"signerName": "a.example/signer", "trustBundle": old}});
    bundles.create(&bundle).await.unwrap();
    stage
        .until("reader", |pod| pod["status"]["phase"] == "Running")
        .await;
    let patch = Patch::merge(json!({"spec": {"trustBundle": new}}));
    bundles
        .patch("a.example:signer:roots", &patch)
        .await
        .unwrap();
    let pod = stage.ended("reader").await;
    assert_eq!(stage.log(&pod).await, format!("{old}{new}"));

    let by_signer = json!({"signerName": "a.example/signer", "path": "ca.pem",
        "labelSelector": {"matchLabels": {"app": "x"}}});
    let script = "cat /longshore-test/v/ca.pem";
    stage.run("signer", mounting(script, by_signer)).await;
    let pod = stage.ended("signer").await;
    assert_eq!(stage.log(&pod).await, new);
    let optional = json!({"name": "missing", "path": "ca.pem", "optional": true});
    stage.run("optional", mounting(script, optional)).await;
    let pod = stage.ended("optional").await;
    assert_eq!(stage.log(&pod).await, "");
    stage.stop().await;
}
