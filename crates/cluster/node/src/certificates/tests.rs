//! Tests with an API server and a signer.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use longshore_client::Patch;
use rcgen::{
    CertificateParams, Issuer, KeyPair, PKCS_ECDSA_P384_SHA384, PublicKeyData, SignatureAlgorithm,
};
use serde_json::{Value, json};
use x509_cert::{der::Decode as _, request::CertReq};

use super::*;

async fn cluster() -> Cluster {
    let options = longshore_engine::Options::default();
    let server = longshore_apiserver::ApiServer::new(longshore_apiserver::Options {
        engine: longshore_engine::Engine::open(options).unwrap(),
        token: None,
        authorization: longshore_apiserver::AuthorizationMode::Rbac,
        token_key: None,
        node_logs: Arc::new(longshore_apiserver::NoLogs),
        node_streams: Arc::new(longshore_apiserver::NoStreams),
        faults: false,
        warn_unhandled_kinds: false,
    });
    let cluster = Cluster::from_service(server.service(), "default");
    let node = json!({"metadata": {"name": "here"}});
    cluster.nodes().create(&node).await.unwrap();
    cluster
}

async fn certificates(cluster: &Cluster, source: Value) -> PodCertificates {
    let pod = json!({"metadata": {"name": "p"}, "spec": {
        "containers": [{"name": "c", "image": "i"}],
        "volumes": [{"name": "v", "projected": {"sources": [{"podCertificate": source}]}}],
    }});
    let pods = cluster.pods().in_namespace("default").unwrap();
    let pod = pods.create(&pod).await.unwrap().object().unwrap();
    PodCertificates::new(cluster.clone(), "here", &pod).unwrap()
}

/// The undecided requests.
async fn requests(cluster: &Cluster) -> Vec<Value> {
    let items = cluster.podcertificaterequests().list().await.unwrap().items;
    let all = items.iter().map(|item| item.raw().unwrap());
    all.filter(|request| request["status"]["conditions"].is_null())
        .collect()
}

async fn decide(cluster: &Cluster, request: &Value, mut status: Value, kind: &str) {
    status["conditions"] = json!([{"type": kind, "status": "True", "reason": "Why",
        "message": "because", "lastTransitionTime": Timestamp::now().to_string()}]);
    let requests = cluster.podcertificaterequests();
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

/// Signs a certificate that is valid for a day from now.
async fn sign(cluster: &Cluster, request: &Value) -> String {
    let mut params = CertificateParams::default();
    let now = Timestamp::from_second(Timestamp::now().as_second()).unwrap();
    let at = |hours| now + SignedDuration::from_hours(hours);
    let date = |at: Timestamp| {
        let since = Duration::from_secs(at.as_second().unsigned_abs());
        rcgen::date_time_ymd(1970, 1, 1) + since
    };
    params.not_before = date(at(0));
    params.not_after = date(at(24));
    let key = KeyPair::generate().unwrap();
    let issuer = Issuer::new(CertificateParams::default(), key);
    let chain = params
        .signed_by(&key_of(request, &PKCS_ECDSA_P384_SHA384), &issuer)
        .unwrap()
        .pem();
    let status = json!({
        "certificateChain": chain,
        "notBefore": at(0).to_string(),
        "beginRefreshAt": at(12).to_string(),
        "notAfter": at(24).to_string(),
    });
    decide(cluster, request, status, "Issued").await;
    chain.replace("\r\n", "\n")
}

fn no_delay() -> SignedDuration {
    SignedDuration::ZERO
}

#[tokio::test]
async fn certificates_are_requested_and_renewed() {
    let cluster = cluster().await;
    let source = json!({"signerName": "a.example/signer", "keyType": "ECDSAP384",
        "credentialBundlePath": "b.pem", "maxExpirationSeconds": 90_000,
        "userAnnotations": {"a.example/x": "y"}});
    let certificates = certificates(&cluster, source).await;
    let current = || certificates.current().into_values().next().unwrap();
    let now = Timestamp::now();
    let step = async |hours| {
        let at = now + SignedDuration::from_hours(hours);
        let progress = certificates.step(at, no_delay).await;
        assert!(!progress.has_failed);
        progress
    };
    assert!(!step(0).await.has_changed);
    assert_eq!(current(), Err(CertificateError::NotIssued));
    let [request] = requests(&cluster).await.try_into().unwrap();
    let spec = &request["spec"];
    assert_eq!(spec["signerName"], "a.example/signer");
    assert_eq!(
        (&spec["podName"], &spec["nodeName"]),
        (&json!("p"), &json!("here"))
    );
    assert_eq!(spec["serviceAccountName"], "default");
    assert_eq!(spec["maxExpirationSeconds"], 90_000);
    assert_eq!(
        spec["unverifiedUserAnnotations"],
        json!({"a.example/x": "y"})
    );
    assert_eq!(request["metadata"]["ownerReferences"][0]["name"], "p");
    assert!(
        request["metadata"]["name"]
            .as_str()
            .unwrap()
            .starts_with("req-")
    );

    assert!(!step(0).await.has_changed);
    let chain = sign(&cluster, &request).await;
    assert!(step(0).await.has_changed);
    let first = current().unwrap();
    assert_eq!(first.chain, chain);
    let key = KeyPair::from_pem(first.key.pem()).unwrap();
    assert!(key.is_compatible(&rcgen::PKCS_ECDSA_P384_SHA384));
    // Nothing is due before the time that the signer set.
    assert!(!step(11).await.has_changed);
    assert_eq!(requests(&cluster).await, [Value::Null; 0]);
    assert!(!step(12).await.has_changed);
    assert_eq!(current().unwrap(), first);
    let late = step(25).await;
    let reasons: Vec<&str> = late.notes.iter().map(|note| note.reason).collect();
    assert_eq!(
        reasons,
        ["CertificateOverdueForRefresh", "CertificateExpired"]
    );

    let [request] = requests(&cluster).await.try_into().unwrap();
    let chain = sign(&cluster, &request).await;
    assert!(step(12).await.has_changed);
    let second = current().unwrap();
    assert_eq!(second.chain, chain);
    assert_ne!(second.key, first.key);
}

#[tokio::test]
async fn a_denied_certificate_is_not_requested_again() {
    let cluster = cluster().await;
    let source = json!({"signerName": "a.example/signer", "keyType": "ED25519",
        "keyPath": "k.pem"});
    let certificates = certificates(&cluster, source).await;
    let step = async || certificates.step(Timestamp::now(), no_delay).await;
    step().await;
    let [request] = requests(&cluster).await.try_into().unwrap();
    decide(&cluster, &request, json!({}), "Denied").await;
    let progress = step().await;
    assert!(progress.has_changed);
    assert_eq!(progress.notes[0].reason, "Denied");
    assert!(!step().await.has_changed);
    assert_eq!(requests(&cluster).await, [Value::Null; 0]);
    let error = certificates.current().into_values().next().unwrap();
    assert_eq!(
        error.unwrap_err().to_string(),
        "PodCertificateRequest was permanently denied: reason=\"Why\" message=\"because\""
    );
}

#[tokio::test]
async fn the_server_accepts_the_requests_of_all_key_types() {
    let cluster = cluster().await;
    let sources = [
        "RSA3072",
        "RSA4096",
        "ECDSAP256",
        "ECDSAP384",
        "ECDSAP521",
        "ED25519",
    ];
    let sources = sources.map(|kind| {
        json!({"podCertificate": {"signerName": "a.example/signer", "keyType": kind,
            "keyPath": kind}})
    });
    let pod = json!({"metadata": {"name": "p"}, "spec": {
        "containers": [{"name": "c", "image": "i"}],
        "volumes": [{"name": "v", "projected": {"sources": sources}}],
    }});
    let pods = cluster.pods().in_namespace("default").unwrap();
    let pod = pods.create(&pod).await.unwrap().object().unwrap();
    let certificates = PodCertificates::new(cluster.clone(), "here", &pod).unwrap();
    let progress = certificates.step(Timestamp::now(), no_delay).await;
    assert!(!progress.has_failed);
    assert_eq!(requests(&cluster).await.len(), 6);
}

#[tokio::test]
async fn pods_without_certificates_request_none() {
    let cluster = cluster().await;
    assert!(PodCertificates::new(cluster, "here", &Pod::default()).is_none());
}
