//! CertificateSigningRequests: approved requests are signed, and the certificates authenticate
//! their users. PodCertificateRequests: permissions to decide about them.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use longshore_client::{Cluster, FieldSelector, Item, Patch, kinds::CertificateSigningRequest};
use longshore_embedded::{EmbeddedCluster, Options};
use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, KeyPair};
use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_secs(30);
const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
const KUBELET: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const PATH: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

async fn start() -> EmbeddedCluster {
    let options = Options {
        listen: Some(([127, 0, 0, 1], 0).into()),
        nodes: 0,
        ..Options::default()
    };
    EmbeddedCluster::start(options).await.unwrap()
}

/// A request object, and the key of the request.
fn request(signer: &str, name: &str, group: &str, usages: &[&str]) -> (Value, KeyPair) {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    let subject = &mut params.distinguished_name;
    subject.push(DnType::OrganizationName, group);
    subject.push(DnType::CommonName, name);
    let key = KeyPair::generate().unwrap();
    let pem = params.serialize_request(&key).unwrap().pem().unwrap();
    let object = json!({
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": "r"},
        "spec": {
            "request": STANDARD.encode(pem), "signerName": signer, "usages": usages,
            "expirationSeconds": 3600,
        },
    });
    (object, key)
}

/// Approves or denies the request `r`, like kubectl.
async fn decide(cluster: &Cluster, decision: &str) -> longshore_client::Result<Value> {
    let path = format!("{PATH}/r");
    let mut object = cluster.proxy().get(path.as_str(), &[]).await?;
    object["status"]["conditions"] = json!([{
        "type": decision, "status": "True", "reason": "KubectlApprove",
        "message": "This CSR was approved by kubectl certificate approve.",
    }]);
    let path = format!("{path}/approval");
    cluster.proxy().put(path, &[], &object).await
}

/// Waits until the status of the request `r` is as expected, and returns it.
async fn status(cluster: &Cluster, is_expected: impl Fn(&Value) -> bool + Send + 'static) -> Value {
    let view = cluster.certificatesigningrequests();
    let expected =
        move |item: &Item<CertificateSigningRequest>| is_expected(&item.raw().unwrap()["status"]);
    let item = view.wait("r", expected, TIMEOUT).await.unwrap();
    item.raw().unwrap()["status"].take()
}

fn is_issued(status: &Value) -> bool {
    status["certificate"].is_string()
}

/// A client with the certificate of the request `r`.
async fn client(embedded: &EmbeddedCluster, certificate: &Value, key: &KeyPair) -> Cluster {
    let text = std::fs::read_to_string(embedded.kubeconfig_path().unwrap()).unwrap();
    let certificate = certificate.as_str().unwrap();
    let key = STANDARD.encode(key.serialize_pem());
    let lines = text.lines().filter_map(|line| match line.trim_start() {
        word if word.starts_with("token:") => None,
        word if word.starts_with("client-certificate-data:") => {
            Some(format!("    client-certificate-data: {certificate}"))
        }
        word if word.starts_with("client-key-data:") => Some(format!("    client-key-data: {key}")),
        _ => Some(line.to_owned()),
    });
    let lines: Vec<String> = lines.collect();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("kubeconfig");
    std::fs::write(&file, lines.join("\n")).unwrap();
    Cluster::from_kubeconfig(Some(&file), None).await.unwrap()
}

#[tokio::test]
async fn an_approved_client_certificate_authenticates_its_user() {
    let embedded = start().await;
    let cluster = embedded.cluster();
    let (object, key) = request(CLIENT, "ana", "team", &["client auth"]);
    let made = cluster.proxy().post(PATH, &[], &object).await.unwrap();
    assert_eq!(made["spec"]["username"], "longshore-admin");
    decide(&cluster, "Approved").await.unwrap();
    let status = status(&cluster, is_issued).await;
    let ana = client(&embedded, &status["certificate"], &key).await;
    let reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let review = ana.proxy().post(reviews, &[], &json!({})).await.unwrap();
    let user = &review["status"]["userInfo"];
    assert_eq!(user["username"], "ana");
    assert_eq!(user["groups"], json!(["team", "system:authenticated"]));
    let refused = ana.pods().in_namespace("default").unwrap().list().await;
    assert_eq!(refused.unwrap_err().code(), Some(403));
    embedded.stop().await;
}

#[tokio::test]
async fn requests_that_break_the_rules_of_their_signer_fail() {
    let embedded = start().await;
    let cluster = embedded.cluster();
    let (object, _) = request(CLIENT, "ana", "team", &["server auth"]);
    cluster.proxy().post(PATH, &[], &object).await.unwrap();
    decide(&cluster, "Approved").await.unwrap();
    let failed = |status: &Value| status["conditions"][1]["type"] == "Failed";
    let status = status(&cluster, failed).await;
    let condition = &status["conditions"][1];
    assert_eq!(condition["reason"], "SignerValidationFailure");
    assert_eq!(
        condition["message"],
        "invalid usage for client certificate: server auth"
    );
    assert_eq!(status["certificate"], Value::Null);
    embedded.stop().await;
}

#[tokio::test]
async fn client_certificates_of_kubelets_are_approved_if_roles_permit_it() {
    let embedded = start().await;
    let cluster = embedded.cluster();
    let binding = json!({
        "metadata": {"name": "nodes"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
            "name": "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
        },
        "subjects": [{"kind": "Group", "name": "system:masters",
                      "apiGroup": "rbac.authorization.k8s.io"}],
    });
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    cluster.proxy().post(bindings, &[], &binding).await.unwrap();
    let usages = ["client auth", "digital signature"];
    let (object, key) = request(KUBELET, "system:node:a", "system:nodes", &usages);
    cluster.proxy().post(PATH, &[], &object).await.unwrap();
    let status = status(&cluster, is_issued).await;
    assert_eq!(status["conditions"][0]["reason"], "AutoApproved");
    assert_eq!(
        status["conditions"][0]["message"],
        "Auto approving kubelet client certificate after SubjectAccessReview."
    );
    let node = client(&embedded, &status["certificate"], &key).await;
    let version = node.proxy().get("/version", &[]).await.unwrap();
    assert_eq!(version["major"], "1");
    // The client is the node, but no role is bound to it.
    let reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let review = node.proxy().post(reviews, &[], &json!({})).await.unwrap();
    assert_eq!(review["status"]["userInfo"]["username"], "system:node:a");
    let object = json!({"metadata": {"name": "a"}});
    let error = node
        .proxy()
        .post("/api/v1/nodes", &[], &object)
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some(403), "{error}");
    embedded.stop().await;
}

#[tokio::test]
async fn the_group_of_administrators_and_forged_requests_are_refused() {
    let embedded = start().await;
    let cluster = embedded.cluster();
    let (object, _) = request(CLIENT, "ana", "system:masters", &["client auth"]);
    let error = cluster.proxy().post(PATH, &[], &object).await.unwrap_err();
    assert_eq!(error.code(), Some(403));
    let text = error.to_string();
    let expected = "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed";
    assert!(text.contains(expected), "{text}");

    let (mut object, _) = request(CLIENT, "ana", "team", &["client auth"]);
    let pem = object["spec"]["request"].as_str().unwrap();
    let pem = String::from_utf8(STANDARD.decode(pem).unwrap()).unwrap();
    let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    let mut der = STANDARD.decode(body).unwrap();
    let at = der.windows(3).position(|part| part == b"ana").unwrap();
    der[at] = b'b';
    let forged = format!(
        "-----BEGIN CERTIFICATE REQUEST-----\n{}\n-----END CERTIFICATE REQUEST-----\n",
        STANDARD.encode(der)
    );
    object["spec"]["request"] = STANDARD.encode(forged).into();
    let error = cluster.proxy().post(PATH, &[], &object).await.unwrap_err();
    assert_eq!(error.code(), Some(422), "{error}");
    assert!(error.to_string().contains("signature"), "{error}");
    embedded.stop().await;
}

#[tokio::test]
async fn deciding_and_signing_require_the_permission_for_the_signer() {
    let embedded = start().await;
    let cluster = embedded.cluster();
    let create = async |path: &str, object: Value| {
        let path = format!("/apis/rbac.authorization.k8s.io/v1/{path}");
        cluster.proxy().post(path, &[], &object).await.unwrap();
    };
    let rule = |resources: &[&str], verbs: &[&str]| json!({"apiGroups": ["certificates.k8s.io"], "resources": resources, "verbs": verbs});
    let requests = "certificatesigningrequests";
    let all = [
        requests,
        "certificatesigningrequests/approval",
        "certificatesigningrequests/status",
        "clustertrustbundles",
    ];
    let mut rules = vec![rule(&all, &["create", "get", "update", "patch"])];
    create(
        "clusterroles",
        json!({"metadata": {"name": "x"}, "rules": rules}),
    )
    .await;
    let binding = json!({
        "metadata": {"name": "x"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "x"},
        "subjects": [{"kind": "Group", "name": "team",
                      "apiGroup": "rbac.authorization.k8s.io"}],
    });
    create("clusterrolebindings", binding).await;
    // The user has a certificate, so that the requests are sent as the user.
    let (object, key) = request(CLIENT, "ana", "team", &["client auth"]);
    cluster.proxy().post(PATH, &[], &object).await.unwrap();
    decide(&cluster, "Approved").await.unwrap();
    let issued = status(&cluster, is_issued).await;
    let ana = client(&embedded, &issued["certificate"], &key).await;
    cluster
        .proxy()
        .delete(format!("{PATH}/r"), &[], None)
        .await
        .unwrap();

    let (mut object, _) = request("example.com/own", "bob", "team", &["client auth"]);
    ana.proxy().post(PATH, &[], &object).await.unwrap();
    let error = decide(&ana, "Approved").await.unwrap_err();
    let text = error.to_string();
    let expected = "user not permitted to approve requests with signerName \"example.com/own\"";
    assert!(text.contains(expected), "{text}");
    object["status"] = json!({"certificate": issued["certificate"]});
    let sign = async || {
        let path = format!("{PATH}/r/status");
        ana.proxy().put(path, &[], &object).await
    };
    let text = sign().await.unwrap_err().to_string();
    let expected = "user not permitted to sign requests with signerName \"example.com/own\"";
    assert!(text.contains(expected), "{text}");

    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
    let bundle = json!({
        "metadata": {"name": "example.com:own:a"},
        "spec": {"signerName": "example.com/own", "trustBundle": authority.pem()},
    });
    let bundles = ana.clustertrustbundles();
    let text = bundles.create(&bundle).await.unwrap_err().to_string();
    let expected = "user not permitted to attest for signerName \"example.com/own\"";
    assert!(text.contains(expected), "{text}");

    let mut signers = rule(&["signers"], &["approve", "attest", "sign"]);
    signers["resourceNames"] = json!(["example.com/*"]);
    rules.push(signers);
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "x"}, "rules": rules,
    });
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/x";
    cluster.proxy().put(path, &[], &role).await.unwrap();
    decide(&ana, "Approved").await.unwrap();
    let signed = sign().await;
    // The update without conditions would remove the decision.
    assert_eq!(signed.unwrap_err().code(), Some(422));
    bundles.create(&bundle).await.unwrap();
    let patch = Patch::merge(json!({"metadata": {"labels": {"a": "b"}}}));
    bundles.patch("example.com:own:a", &patch).await.unwrap();
    embedded.stop().await;
}

/// A user in the group `team`, who has a certificate, and whose role `x` has rules.
async fn member(embedded: &EmbeddedCluster, rules: &Value) -> Cluster {
    let cluster = embedded.cluster();
    let role = json!({"metadata": {"name": "x"}, "rules": rules});
    let binding = json!({
        "metadata": {"name": "x"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "x"},
        "subjects": [{"kind": "Group", "name": "team",
                      "apiGroup": "rbac.authorization.k8s.io"}],
    });
    for (plural, object) in [("clusterroles", role), ("clusterrolebindings", binding)] {
        let path = format!("/apis/rbac.authorization.k8s.io/v1/{plural}");
        cluster.proxy().post(path, &[], &object).await.unwrap();
    }
    let (object, key) = request(CLIENT, "ana", "team", &["client auth"]);
    cluster.proxy().post(PATH, &[], &object).await.unwrap();
    decide(&cluster, "Approved").await.unwrap();
    let issued = status(&cluster, is_issued).await;
    client(embedded, &issued["certificate"], &key).await
}

#[tokio::test]
async fn only_signers_decide_about_requests_of_pods() {
    let embedded = start().await;
    let cluster = embedded.cluster();
    let all = ["podcertificaterequests", "podcertificaterequests/status"];
    let rule = |resources: &[&str], verbs: &[&str]| json!({"apiGroups": ["certificates.k8s.io"], "resources": resources, "verbs": verbs});
    let mut rules = vec![rule(&all, &["create", "get", "update", "patch"])];
    let ana = member(&embedded, &json!(rules)).await;

    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    let request = params.serialize_request(&KeyPair::generate().unwrap());
    let request = json!({
        "metadata": {"name": "r"},
        "spec": {
            "signerName": "a.example/signer", "podName": "p", "podUID": "1",
            "serviceAccountName": "default", "serviceAccountUID": "2",
            "nodeName": "n", "nodeUID": "3",
            "stubPKCS10Request": STANDARD.encode(request.unwrap().der()),
        },
    });
    let requests = ana
        .podcertificaterequests()
        .in_namespace("default")
        .unwrap();
    // A status in the request is dropped.
    let mut decided = request.clone();
    decided["status"] = json!({"certificateChain": "x"});
    let made = requests.create(&decided).await.unwrap().raw().unwrap();
    assert_eq!(made["status"], json!({}));
    assert_eq!(made["spec"]["maxExpirationSeconds"], 86_400);
    // The spec is fixed.
    let patch = Patch::merge(json!({"spec": {"podName": "other"}}));
    let fixed = requests.patch("r", &patch).await.unwrap_err().to_string();
    assert!(fixed.contains("field is immutable"), "{fixed}");

    let denied = json!({"type": "Denied", "status": "True", "reason": "Unknown", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let patch = json!({"status": {"conditions": [denied]}});
    let path = "/apis/certificates.k8s.io/v1/namespaces/default/podcertificaterequests/r";
    let mut update = made.clone();
    update["status"] = patch["status"].clone();
    let put = async |object: &Value| ana.proxy().put(format!("{path}/status"), &[], object).await;
    let message = "spec.signerName: Forbidden: User \"ana\" is not permitted to \"sign\" for signer \"a.example/signer\"";
    let refused = [
        put(&update).await.unwrap_err(),
        requests
            .patch_status("r", &Patch::merge(patch.clone()))
            .await
            .unwrap_err(),
    ];
    for error in refused {
        assert_eq!(error.code(), Some(422));
        assert!(error.to_string().contains(message), "{error}");
    }
    // Invalid values are reported first, and a write without a change is permitted.
    let invalid = Patch::merge(json!({"status": {"certificateChain": "x"}}));
    let invalid = requests.patch_status("r", &invalid).await.unwrap_err();
    assert!(invalid.to_string().contains("status is immutable unless"));
    put(&made).await.unwrap();

    let mut signers = rule(&["signers"], &["sign"]);
    signers["resourceNames"] = json!(["a.example/*"]);
    rules.push(signers);
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles/x";
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "x"}, "rules": rules});
    cluster.proxy().put(roles, &[], &role).await.unwrap();
    put(&update).await.unwrap();
    let own = FieldSelector::everything()
        .with("spec.nodeName", "n")
        .with("spec.podName", "p")
        .with("spec.signerName", "a.example/signer");
    let found = cluster.podcertificaterequests().fields(own).list().await;
    assert_eq!(found.unwrap().items.len(), 1);
    embedded.stop().await;
}
