//! Service accounts.

use serde_json::json;

use crate::{
    objects::{list, text},
    plane::Plane,
};

#[tokio::test]
async fn each_namespace_has_a_service_account_and_the_root_certificate() {
    let plane = Plane::start().await;
    let path = format!("{}/default", plane.path("v1", "serviceaccounts"));
    let uid = text(&plane.get(&path).await.ok(), "/metadata/uid").to_owned();
    plane.delete(&path).await.ok();
    plane
        .until(&path, |account| {
            account["kind"] == "ServiceAccount" && text(account, "/metadata/uid") != uid
        })
        .await;
    let map = format!("{}/kube-root-ca.crt", plane.path("v1", "configmaps"));
    plane
        .until(&map, |map| {
            text(map, "/data/ca.crt").contains("BEGIN CERTIFICATE")
        })
        .await;
}

#[tokio::test]
async fn a_secret_gets_a_token_of_its_service_account() {
    let plane = Plane::start().await;
    let accounts = plane.path("v1", "serviceaccounts");
    plane
        .create(&accounts, &json!({"metadata": {"name": "robot"}}))
        .await;
    let secrets = plane.path("v1", "secrets");
    let secret = json!({
        "metadata": {
            "name": "robot-token",
            "annotations": {"kubernetes.io/service-account.name": "robot"},
        },
        "type": "kubernetes.io/service-account-token",
    });
    plane.create(&secrets, &secret).await;
    let path = format!("{secrets}/robot-token");
    let secret = plane
        .until(&path, |secret| !text(secret, "/data/token").is_empty())
        .await;
    assert!(!text(&secret, "/data/ca.crt").is_empty());
    assert!(!text(&secret, "/data/namespace").is_empty());
    let uid = "/metadata/annotations/kubernetes.io~1service-account.uid";
    let account = plane.get(&format!("{accounts}/robot")).await.ok();
    assert_eq!(text(&secret, uid), text(&account, "/metadata/uid"));
    let token = decoded(text(&secret, "/data/token"));
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let ask = async || {
        let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        let request = plane.request("POST", path).json(&review);
        request
            .header("authorization", &format!("Bearer {token}"))
            .send()
            .await
    };
    let user = ask().await.is(201);
    let name = format!("system:serviceaccount:{}:robot", plane.namespace());
    assert_eq!(text(&user, "/status/userInfo/username"), name);
    assert!(list(&user, "/status/userInfo/groups").contains(&json!("system:serviceaccounts")));
    plane.delete(&format!("{accounts}/robot")).await.ok();
    plane.until_gone(&path).await;
    // The server may remember for some seconds that the token was valid.
    let begin = std::time::Instant::now();
    while ask().await.code != 401 {
        assert!(begin.elapsed().as_secs() < 60, "the token is still valid");
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
}

fn decoded(text: &str) -> String {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(text)
        .unwrap();
    String::from_utf8(bytes).unwrap()
}
