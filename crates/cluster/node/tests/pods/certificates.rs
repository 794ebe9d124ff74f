//! Volumes with certificates of the pod.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use longshore_client::Patch;
use rcgen::{
    CertificateParams, Issuer, KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData, SignatureAlgorithm,
};
use serde_json::{Value, json};
use x509_cert::{der::Decode as _, request::CertReq};

use super::{Duration, Stage, TIMEOUT, helpers::has_namespaces, run_once};

fn mounting(script: &str, projection: Value) -> Value {
    let mut spec = run_once(script);
    spec["containers"][0]["volumeMounts"] =
        json!([{"name": "v", "mountPath": "/longshore-test/v"}]);
    spec["volumes"] = json!([
        {"name": "v", "projected": {"sources": [{"podCertificate": projection}]}},
    ]);
    spec
}

/// Waits for the request of a pod.
async fn request(stage: &Stage, pod: &str) -> Value {
    let requests = stage.cluster.podcertificaterequests();
    let of_pod = longshore_client::FieldSelector::everything().with("spec.podName", pod);
    let requests = requests.in_namespace("default").unwrap().fields(of_pod);
    let mut watch = requests.watch().await.unwrap();
    loop {
        if let Some(item) = requests.list().await.unwrap().items.first() {
            return item.raw().unwrap();
        }
        let event = tokio::time::timeout(TIMEOUT, watch.next(None)).await;
        event.expect("the node requests no certificate").unwrap();
    }
}

async fn decide(stage: &Stage, request: &Value, mut status: Value, kind: &str) {
    status["conditions"] = json!([{"type": kind, "status": "True", "reason": "Why",
        "message": "because", "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    let requests = stage.cluster.podcertificaterequests();
    let requests = requests.in_namespace("default").unwrap();
    let name = request["metadata"]["name"].as_str().unwrap();
    let patch = Patch::merge(json!({"status": status}));
    requests.patch_status(name, &patch).await.unwrap();
}

/// The public key of a request for ECDSA.
struct RequestedKey(Vec<u8>, &'static SignatureAlgorithm);

impl PublicKeyData for RequestedKey {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        self.1
    }
}

fn key_of(request: &Value, algorithm: &'static SignatureAlgorithm) -> RequestedKey {
    let der = request["spec"]["stubPKCS10Request"].as_str().unwrap();
    let request = CertReq::from_der(&BASE64_STANDARD.decode(der).unwrap()).unwrap();
    let key = request.info.public_key.subject_public_key;
    RequestedKey(key.raw_bytes().to_vec(), algorithm)
}

/// Issues a certificate that is valid for a day.
async fn sign(stage: &Stage, request: &Value) -> String {
    let mut params = CertificateParams::default();
    let now = jiff::Timestamp::now().as_second();
    let at = |hours: i64| {
        let seconds = now + hours * 3600;
        let since = Duration::from_secs(seconds.unsigned_abs());
        let text = jiff::Timestamp::from_second(seconds).unwrap().to_string();
        (rcgen::date_time_ymd(1970, 1, 1) + since, text)
    };
    params.not_before = at(0).0;
    params.not_after = at(24).0;
    let issuer = Issuer::new(CertificateParams::default(), KeyPair::generate().unwrap());
    let chain = params
        .signed_by(&key_of(request, &PKCS_ECDSA_P256_SHA256), &issuer)
        .unwrap()
        .pem();
    let status = json!({
        "certificateChain": chain,
        "notBefore": at(0).1, "beginRefreshAt": at(12).1, "notAfter": at(24).1,
    });
    decide(stage, request, status, "Issued").await;
    chain.replace("\r\n", "\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_starts_when_its_certificate_is_issued() {
    let stage = Stage::new().await;
    if !has_namespaces(&stage).await {
        return;
    }
    let paths = json!({"signerName": "a.example/signer", "keyType": "ECDSAP256",
        "credentialBundlePath": "both.pem", "keyPath": "key.pem",
        "certificateChainPath": "chain.pem"});
    let script = "cd /longshore-test/v; cat key.pem chain.pem | cmp - both.pem && cat both.pem";
    stage.run("reader", mounting(script, paths)).await;
    let request = request(&stage, "reader").await;
    let message = stage.event("reader", "FailedMount").await;
    let expected =
        "MountVolume.SetUp failed for volume \"v\" : credential bundle is not issued yet";
    assert_eq!(message, expected);
    let chain = sign(&stage, &request).await;
    let pod = stage.ended("reader").await;
    let log = stage.log(&pod).await;
    let (key, certificates) = log.split_at(log.find("-----BEGIN CERTIFICATE").unwrap());
    assert_eq!(certificates, chain);
    KeyPair::from_pem(key).unwrap();
    // The key is only in the pod.
    let requests = stage.cluster.podcertificaterequests().list().await.unwrap();
    let text = requests.items[0].raw().unwrap().to_string();
    assert!(!text.contains("PRIVATE"), "{text}");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_whose_certificate_is_denied_waits() {
    let stage = Stage::new().await;
    if !has_namespaces(&stage).await {
        return;
    }
    let source = json!({"signerName": "a.example/signer", "keyType": "ED25519",
        "keyPath": "key.pem"});
    stage.run("waiting", mounting("true", source)).await;
    let request = request(&stage, "waiting").await;
    decide(&stage, &request, json!({}), "Denied").await;
    let name = request["metadata"]["name"].as_str().unwrap();
    let message = stage.event("waiting", "Denied").await;
    let expected = format!("default/{name} was denied, reason=\"Why\", message=\"because\"");
    assert!(message.contains(&expected), "{message}");
    let pods = stage.cluster.pods().in_namespace("default").unwrap();
    let pod = pods.find("waiting").await.unwrap().unwrap().raw().unwrap();
    assert_eq!(pod["status"]["phase"], "Pending");
    stage.stop().await;
}
