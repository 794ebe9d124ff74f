//! cert-manager: its chart and its controllers, with an authority of the cluster.

use super::{
    Chart, Images,
    client::{Client, TIMEOUT, expect},
    programs::{CERT_MANAGER, Programs},
};
use crate::run::{Outcome, root};

pub(super) const CHART: Chart = Chart {
    name: "cert-manager",
    origin: "The chart of the Go module github.com/cert-manager/cert-manager v1.21.2, unchanged. The\n\
             modules of its programs are not published: `go build -o TARGET/cert-manager .` in\n\
             `xtask/kubernetes/cert-manager` builds a program with the controllers, the webhook, and\n\
             the CA injector of that module, without the issuers ACME, Vault, and Venafi.",
    images: &[IMAGES],
    commands: "helm package CHART --version v1.21.2 --app-version v1.21.2\n\
               helm install cert-manager cert-manager-v1.21.2.tgz \\\n  \
               --namespace cert-manager --create-namespace --set crds.enabled=true --wait\n\
               kubectl apply -f xtask/charts/certificates/certificates.yaml\n\
               kubectl wait --for=condition=Ready certificate/web",
    test,
};

#[rustfmt::skip]
pub(super) const IMAGES: Images = &[
    ("--image-entrypoint", "quay.io/jetstack/cert-manager-controller=TARGET/cert-manager controller"),
    ("--image-entrypoint", "quay.io/jetstack/cert-manager-webhook=TARGET/cert-manager webhook"),
    ("--image-entrypoint", "quay.io/jetstack/cert-manager-cainjector=TARGET/cert-manager cainjector"),
    ("--image-entrypoint", "quay.io/jetstack/cert-manager-startupapicheck=TARGET/cert-manager"),
    ("--image-user", "quay.io/jetstack/cert-manager-controller=65532:65532"),
    ("--image-user", "quay.io/jetstack/cert-manager-webhook=65532:65532"),
    ("--image-user", "quay.io/jetstack/cert-manager-cainjector=65532:65532"),
    ("--image-user", "quay.io/jetstack/cert-manager-startupapicheck=65532:65532"),
];

/// The certificate in a Secret.
const CERTIFICATE: &str = "{{index .data \"tls.crt\" | base64decode}}";

fn test(client: &Client, programs: &Programs) -> Outcome {
    let package = install(client, programs)?;
    client.pass(
        "`helm install --wait`: definitions, the pods, and the Job of the hook that checks the API",
    );
    issue(client)?;
    refuse(client)?;
    client.pass("the webhook refuses a Certificate without names");
    renew(client)?;

    client.kubectl(&["apply", "--filename", &manifest("ingress.yaml")])?;
    ready(client, "shop-tls")?;
    let certificate = client.field(&["secret", "shop-tls"], CERTIFICATE)?;
    let names = ["x509", "-noout", "-ext", "subjectAltName"];
    expect(&client.openssl(&names, &certificate)?, "shop.example.com")?;
    client.pass("an Ingress with the annotation of an issuer gets a certificate");

    let upgrade = ["upgrade", "cert-manager", &package, "--wait", TIMEOUT];
    let values = ["--namespace=cert-manager", "--reuse-values", "--set"];
    client.helm(&[&upgrade[..], &values, &["webhook.replicaCount=2"]].concat())?;
    let webhook = [
        "deployment",
        "cert-manager-webhook",
        "--namespace=cert-manager",
    ];
    client.wait_for(&webhook, "{{.status.readyReplicas}}", "2")?;
    refuse(client)?;
    client.pass("`helm upgrade`: two replicas of the webhook, which still refuses it");

    let uninstall = ["uninstall", "cert-manager", "--namespace=cert-manager"];
    client.helm(&[&uninstall[..], &["--wait", TIMEOUT]].concat())?;
    client.kubectl(&["get", "secret", "web-tls"])?;
    client.kubectl(&["get", "certificate", "web"])?;
    client.pass("`helm uninstall`: the definitions and the certificates remain, as the chart says");
    Ok(())
}

/// Installs the chart; returns its package.
pub(super) fn install(client: &Client, programs: &Programs) -> Outcome<String> {
    let package = programs.package(client, &CERT_MANAGER)?;
    let install = ["install", "cert-manager", &package, "--wait", TIMEOUT];
    let values = ["--namespace=cert-manager", "--create-namespace"];
    client.helm(&[&install[..], &values, &["--set", "crds.enabled=true"]].concat())?;
    Ok(package)
}

fn issue(client: &Client) -> Outcome {
    client.kubectl(&["apply", "--filename", &manifest("certificates.yaml")])?;
    ready(client, "web")?;
    let part = |name: &str| {
        let template = format!("{{{{index .data {name:?} | base64decode}}}}");
        client.field(&["secret", "web-tls"], &template)
    };
    client.write("ca.crt", &part("ca.crt")?)?;
    let verified = client.openssl(&["verify", "-CAfile", "ca.crt"], &part("tls.crt")?)?;
    expect(&verified, "OK")?;
    let of_certificate = client.openssl(&["x509", "-noout", "-pubkey"], &part("tls.crt")?)?;
    let of_key = client.openssl(&["pkey", "-pubout"], &part("tls.key")?)?;
    if of_certificate != of_key {
        return Err("the key is not that of the certificate".to_owned());
    }
    client.pass(
        "a self-signed authority and a certificate that it signs: the Secret has the key, and \
         `openssl verify` accepts the certificate",
    );
    Ok(())
}

fn refuse(client: &Client) -> Outcome {
    let invalid = manifest("invalid.yaml");
    let message = client.refused(&["apply", "--filename", &invalid])?;
    expect(
        &message,
        "admission webhook \"webhook.cert-manager.io\" denied",
    )?;
    expect(&message, "at least one of commonName")?;
    Ok(())
}

fn renew(client: &Client) -> Outcome {
    let serial = || {
        let certificate = client.field(&["secret", "web-tls"], CERTIFICATE)?;
        client.openssl(&["x509", "-noout", "-serial"], &certificate)
    };
    let first = serial()?;
    client.kubectl(&["delete", "secret", "web-tls"])?;
    client.poll("a deleted Secret is issued again", || serial().is_ok())?;
    ready(client, "web")?;
    let second = serial()?;
    if first == second {
        return Err("the certificate was not issued again".to_owned());
    }
    client.pass("a deleted Secret is issued again");

    // The same change as `cmctl renew` makes.
    let condition = r#"{"status": {"conditions": [{"type": "Issuing", "status": "True",
        "reason": "ManuallyTriggered", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}"#;
    let patch = ["patch", "certificate", "web", "--subresource=status"];
    client.kubectl(&[&patch[..], &["--type=merge", "--patch", condition]].concat())?;
    client.poll("a renewed certificate", || {
        serial().is_ok_and(|serial| serial != second)
    })?;
    ready(client, "web")?;
    client.pass("renewal by the condition that `cmctl renew` sets");
    Ok(())
}

/// Waits until a certificate is issued.
fn ready(client: &Client, certificate: &str) -> Outcome {
    let condition =
        "{{range .status.conditions}}{{if eq .type \"Ready\"}}{{.status}}{{end}}{{end}}";
    client.wait_for(&["certificate", certificate], condition, "True")
}

/// The path of a manifest.
pub(super) fn manifest(name: &str) -> String {
    let path = root().join("xtask/charts/certificates").join(name);
    path.display().to_string()
}
