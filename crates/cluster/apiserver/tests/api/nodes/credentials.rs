//! Tokens and certificates that nodes request.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::{Value, json};

use super::{
    ACCOUNTS, CLAIMS, NODES, POD_REQUESTS, REQUESTS, VOLUMES, check, claim, named, pod, server,
    volume,
};
use crate::{common::PODS, users::As};

fn certificate_request(name: &str, common_name: &str, signer: &str) -> Value {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    let subject = &mut params.distinguished_name;
    subject.push(DnType::OrganizationName, "system:nodes");
    subject.push(DnType::CommonName, common_name);
    let key = KeyPair::generate().unwrap();
    let pem = params.serialize_request(&key).unwrap().pem().unwrap();
    json!({
        "metadata": {"name": name},
        "spec": {
            "request": STANDARD.encode(pem),
            "signerName": signer,
            "usages": ["digital signature", "client auth"],
        },
    })
}

#[tokio::test]
async fn nodes_get_tokens_for_their_pods() {
    let server = server().await;
    named(&server, ACCOUNTS, "other").await;
    server.made(CLAIMS, claim("k1", "v1")).await;
    server.made(VOLUMES, volume("v1", "k1", "s")).await;
    let driver = json!({
        "metadata": {"name": "driver.example"},
        "spec": {"tokenRequests": [{"audience": "of-driver"}]},
    });
    server
        .made("/apis/storage.k8s.io/v1/csidrivers", driver)
        .await;
    let token =
        |audience: &str| json!({"serviceAccountToken": {"path": audience, "audience": audience}});
    let spec = json!({
        "serviceAccountName": "default",
        "volumes": [
            {"name": "t", "projected": {"sources": [token("of-volume"), {"serviceAccountToken": {"path": "x"}}]}},
            {"name": "k", "persistentVolumeClaim": {"claimName": "k1"}},
        ],
    });
    let p1 = server.made(PODS, pod("p1", "n1", spec)).await;
    let spec = json!({"serviceAccountName": "default"});
    let p2 = server.made(PODS, pod("p2", "n2", spec.clone())).await;
    let p3 = server.made(PODS, pod("p3", "n1", spec)).await;
    let bound = |pod: &Value| {
        let metadata = &pod["metadata"];
        json!({"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]})
    };
    let (p1, p2, p3) = (bound(&p1), bound(&p2), bound(&p3));
    let changed = |field: &str, value: Value| {
        let mut bound = p1.clone();
        bound[field] = value;
        bound
    };
    let unbound = "node requested token not bound to a pod";
    let audience = "system:node:n1 is not authorized to request tokens for audience";
    let request = async |account: &str, bound: &Value, audiences: &[&str]| {
        let spec = json!({"boundObjectRef": bound, "audiences": audiences});
        let path = format!("{ACCOUNTS}/{account}/token");
        As::node(&server, "n1")
            .call("POST", &path, &json!({"spec": spec}))
            .await
    };
    for (account, bound, audiences, code, end) in [
        ("default", p1.clone(), &[][..], 201, String::new()),
        ("default", p1.clone(), &["of-volume"][..], 201, String::new()),
        ("default", p1.clone(), &["of-driver"][..], 201, String::new()),
        ("default", p1.clone(), &["x"][..], 403, format!("{audience} \"x\"")),
        ("default", p3.clone(), &["of-volume"][..], 403, format!("{audience} \"of-volume\"")),
        ("default", p1.clone(), &["of-volume", "x"][..], 403, "node may only request 0 or 1 audiences".into()),
        ("default", Value::Null, &[][..], 403, unbound.into()),
        ("default", changed("kind", "Node".into()), &[][..], 403, unbound.into()),
        ("default", changed("uid", Value::Null), &[][..], 403, "node requested token with a pod binding without a uid".into()),
        ("default", changed("uid", "x".into()), &[][..], 403,
         "the UID in the bound object reference (x) does not match the UID in record. The object might have been deleted and then recreated".into()),
        ("default", changed("name", "none".into()), &[][..], 404, "pod \"none\" not found".into()),
        ("default", p2.clone(), &[][..], 403, "node requested token bound to a pod scheduled on a different node".into()),
        ("other", p1.clone(), &[][..], 403, "no relationship found between node 'n1' and this object".into()),
    ] {
        let answer = request(account, &bound, audiences).await;
        check(&answer, (code, &end), &format_args!("{account} {bound} {audiences:?}"));
    }
    // A role can allow further audiences.
    let group = "rbac.authorization.k8s.io";
    let rule = json!({
        "apiGroups": [""], "resources": ["x"], "resourceNames": ["default"],
        "verbs": ["request-serviceaccounts-token-audience"],
    });
    let role = json!({"metadata": {"name": "x"}, "rules": [rule]});
    server
        .made(&format!("/apis/{group}/v1/clusterroles"), role)
        .await;
    let binding = json!({
        "metadata": {"name": "x"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "x"},
        "subjects": [{"apiGroup": group, "kind": "Group", "name": "system:nodes"}],
    });
    server
        .made(&format!("/apis/{group}/v1/clusterrolebindings"), binding)
        .await;
    assert_eq!(request("default", &p1, &["x"]).await.code, 201);
}

#[tokio::test]
async fn nodes_request_only_their_own_certificates() {
    let server = server().await;
    let n1 = As::node(&server, "n1");
    let (client, serving, user) = (
        "kubernetes.io/kube-apiserver-client-kubelet",
        "kubernetes.io/kubelet-serving",
        "kubernetes.io/kube-apiserver-client",
    );
    let end = "can only create a node CSR with CN=system:node:n1";
    for (name, common_name, signer, code) in [
        ("a", "system:node:n2", client, 403),
        ("b", "n1", client, 403),
        ("c", "system:node:n2", serving, 403),
        ("d", "system:node:n1", client, 201),
        ("e", "ana", user, 201),
    ] {
        let request = certificate_request(name, common_name, signer);
        let answer = n1.call("POST", REQUESTS, &request).await;
        check(
            &answer,
            (code, end),
            &format_args!("{common_name} {signer}"),
        );
    }
    assert_eq!(n1.get(&format!("{REQUESTS}/d")).await, 200);
    let approval = json!({"status": {"conditions": []}});
    let answer = n1.patch(&format!("{REQUESTS}/d/approval"), &approval).await;
    assert_eq!(answer.code, 403);
}

#[tokio::test]
async fn nodes_request_certificates_for_their_pods() {
    let server = server().await;
    let uid = |object: &Value| object["metadata"]["uid"].clone();
    let node = uid(&server.get(&format!("{NODES}/n1")).await.json());
    let account = uid(&server.get(&format!("{ACCOUNTS}/default")).await.json());
    let spec = json!({"volumes": [{"name": "v", "projected": {"sources": [{"podCertificate": {
        "signerName": "example.com/used", "keyType": "ED25519", "credentialBundlePath": "x",
    }}]}}]});
    let p1 = server.made(PODS, pod("p1", "n1", spec)).await;
    let p2 = server.made(PODS, pod("p2", "n2", json!({}))).await;
    let key = KeyPair::generate().unwrap();
    let request = CertificateParams::default()
        .serialize_request(&key)
        .unwrap();
    let stub = STANDARD.encode(request.der());
    let spec = json!({
        "signerName": "example.com/used",
        "podName": "p1", "podUID": uid(&p1),
        "serviceAccountName": "default", "serviceAccountUID": account,
        "nodeName": "n1", "nodeUID": node,
        "stubPKCS10Request": stub,
    });
    let n1 = As::node(&server, "n1");
    for (fields, code, part) in [
        (
            json!({"nodeName": "n2"}),
            403,
            "which is not the requesting node \"n1\"",
        ),
        (
            json!({"nodeUID": "x"}),
            500,
            "inconsistent with the running node",
        ),
        (
            json!({"podName": "none"}),
            500,
            "while retrieving pod \"default/none\" named in the PodCertificateRequest: pod \"none\" not found",
        ),
        (
            json!({"podUID": "x"}),
            500,
            "contains pod UID (\"x\") which differs from running pod",
        ),
        (
            json!({"podName": "p2", "podUID": uid(&p2)}),
            403,
            "pod \"default/p2\" is not running on node \"n1\"",
        ),
        (
            json!({"serviceAccountName": "other"}),
            403,
            "contains serviceAccountName (\"other\") that differs",
        ),
        (
            json!({"serviceAccountUID": "x"}),
            500,
            "names service account UID \"x\"",
        ),
        (
            json!({"signerName": "example.com/unused"}),
            403,
            "pod \"default/p1\" does not mount a podCertificate projected volume for signer \"example.com/unused\"",
        ),
        (json!({}), 201, ""),
    ] {
        let mut spec = spec.clone();
        for (field, value) in fields.as_object().unwrap() {
            spec[field] = value.clone();
        }
        let object = json!({"metadata": {"name": "r"}, "spec": spec});
        let answer = n1.call("POST", POD_REQUESTS, &object).await;
        assert_eq!(answer.code, code, "{fields}: {}", answer.text());
        assert!(
            answer.text().contains(&part.replace('"', "\\\"")),
            "{fields}: {}",
            answer.text()
        );
    }
    assert_eq!(n1.get(&format!("{POD_REQUESTS}/r")).await, 200);
    assert_eq!(
        As::node(&server, "n2")
            .get(&format!("{POD_REQUESTS}/r"))
            .await,
        403
    );
    assert_eq!(n1.get(POD_REQUESTS).await, 403);
    let own = format!("{POD_REQUESTS}?fieldSelector=spec.nodeName%3Dn1");
    assert_eq!(n1.get(&own).await, 200);
}
