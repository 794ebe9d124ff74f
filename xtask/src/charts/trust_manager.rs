//! trust-manager: its chart, whose webhook has a certificate of cert-manager.

use super::{
    Chart, Images,
    cert_manager::{self, manifest},
    client::{Client, TIMEOUT, expect},
    programs::{Programs, TRUST_MANAGER},
};
use crate::run::Outcome;

/// The data of the bundle.
const CERTIFICATES: &str = "{{index .data \"ca.crt\"}}";

pub(super) const CHART: Chart = Chart {
    name: "trust-manager",
    origin: "The chart and the program (`cmd/trust-manager`) of the Go module\n\
             github.com/cert-manager/trust-manager v0.25.0, unchanged, without Debian's certificates.\n\
             It needs cert-manager, which is installed first.",
    images: &[cert_manager::IMAGES, IMAGES],
    commands: "helm package CHART --version v0.25.0 --app-version v0.25.0\n\
               helm install trust-manager trust-manager-v0.25.0.tgz \\\n  \
               --namespace cert-manager --set defaultPackage.enabled=false --wait\n\
               kubectl apply -f xtask/charts/certificates/bundle.yaml",
    test,
};

const IMAGES: Images = &[
    (
        "--image-entrypoint",
        "quay.io/jetstack/trust-manager=TARGET/trust-manager",
    ),
    ("--image-user", "quay.io/jetstack/trust-manager=65532:65532"),
];

fn test(client: &Client, programs: &Programs) -> Outcome {
    cert_manager::install(client, programs)?;
    let package = programs.package(client, &TRUST_MANAGER)?;
    let install = ["install", "trust-manager", &package, "--wait", TIMEOUT];
    let values = [
        "--namespace=cert-manager",
        "--set",
        "defaultPackage.enabled=false",
    ];
    client.helm(&[&install[..], &values].concat())?;
    client.pass("`helm install --wait`: cert-manager issues the certificate of the webhook");

    client.kubectl(&["apply", "--filename", &manifest("certificates.yaml")])?;
    client.kubectl(&["apply", "--filename", &manifest("bundle.yaml")])?;
    let bundle = ["configmap", "authorities"];
    client.poll("the bundle is in the namespace default", || {
        client.field(&bundle, CERTIFICATES).is_ok()
    })?;
    let authority = "{{index .data \"tls.crt\" | base64decode}}";
    let secret = ["secret", "authority", "--namespace=cert-manager"];
    let authority = client.field(&secret, authority)?;
    expect(&client.field(&bundle, CERTIFICATES)?, authority.trim())?;
    client.pass("a Bundle writes the certificate of an authority into a ConfigMap");

    client.kubectl(&["create", "namespace", "later"])?;
    client.poll("the bundle is in a new namespace", || {
        let later = [&bundle[..], &["--namespace=later"]].concat();
        client.field(&later, CERTIFICATES).is_ok()
    })?;
    client.kubectl(&["delete", "configmap", "authorities"])?;
    client.poll("a deleted ConfigMap is written again", || {
        client.field(&bundle, CERTIFICATES).is_ok()
    })?;
    client.pass("a new namespace gets the ConfigMap, and a deleted ConfigMap is written again");

    let invalid = manifest("invalid-bundle.yaml");
    let message = client.refused(&["apply", "--filename", &invalid])?;
    expect(&message, "denied the request")?;
    client.pass("the webhook refuses a Bundle whose source has no key");

    let uninstall = ["uninstall", "trust-manager", "--namespace=cert-manager"];
    client.helm(&[&uninstall[..], &["--wait", TIMEOUT]].concat())?;
    client.pass("`helm uninstall --wait`");
    Ok(())
}
