//! The cluster's keys and certificates, and the kubeconfigs of its programs.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use super::{Places, make_folder, network::NODE, write};
use crate::run::{Outcome, output};

/// The first address of the Services, which is that of `kubernetes`.
pub(super) const API_SERVICE: &str = "10.96.0.1";
/// The node's name.
pub(super) const NODE_NAME: &str = "node1";
const DAYS: &str = "30";

/// Makes all of them.
pub(super) fn make(places: &Places) -> Outcome {
    let folder = places.state("pki");
    make_folder(&folder)?;
    let private = fs::Permissions::from_mode(0o700);
    fs::set_permissions(&folder, private).map_err(|error| error.to_string())?;
    let authority = [
        "-keyout",
        "ca.key",
        "-out",
        "ca.crt",
        "-subj",
        "/CN=longshore",
    ];
    request(
        &folder,
        &[&["-x509", "-days", DAYS], &authority[..]].concat(),
    )?;
    openssl(&folder, &["genrsa", "-out", "sa.key", "2048"])?;
    openssl(
        &folder,
        &["rsa", "-in", "sa.key", "-pubout", "-out", "sa.pub"],
    )?;
    let service = "kubernetes.default.svc";
    let names = format!(
        "DNS:kubernetes,DNS:kubernetes.default,DNS:{service},DNS:{service}.cluster.local,\
         DNS:localhost,IP:127.0.0.1,IP:{NODE},IP:{API_SERVICE}"
    );
    sign(&folder, "apiserver", "/CN=kube-apiserver", &names)?;
    let node = format!("/O=system:nodes/CN=system:node:{NODE_NAME}");
    let names = format!("DNS:{NODE_NAME},IP:{NODE}");
    sign(&folder, NODE_NAME, &node, &names)?;
    for (name, subject) in [
        ("admin", "/O=system:masters/CN=admin"),
        ("controller-manager", "/CN=system:kube-controller-manager"),
        ("scheduler", "/CN=system:kube-scheduler"),
        ("proxy", "/CN=system:kube-proxy"),
        (
            "to-kubelet",
            "/O=system:masters/CN=kube-apiserver-kubelet-client",
        ),
        ("front-proxy", "/CN=front-proxy-client"),
    ] {
        sign(&folder, name, subject, "DNS:localhost")?;
    }
    for name in [
        "admin",
        "controller-manager",
        "scheduler",
        "proxy",
        NODE_NAME,
    ] {
        kubeconfig(places, &folder, name)?;
    }
    Ok(())
}

/// A certificate for servers and clients.
fn sign(folder: &Path, name: &str, subject: &str, names: &str) -> Outcome {
    let file = |kind: &str| format!("{name}.{kind}");
    let (key, wanted, extensions) = (file("key"), file("csr"), file("ext"));
    request(
        folder,
        &["-keyout", &key, "-out", &wanted, "-subj", subject],
    )?;
    let text = format!("subjectAltName={names}\nextendedKeyUsage=serverAuth,clientAuth\n");
    write(&folder.join(&extensions), &text)?;
    let authority = ["-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial"];
    let words = [
        "x509",
        "-req",
        "-in",
        &wanted,
        "-out",
        &file("crt"),
        "-days",
        DAYS,
    ];
    openssl(
        folder,
        &[&words[..], &authority, &["-extfile", &extensions]].concat(),
    )
}

fn request(folder: &Path, words: &[&str]) -> Outcome {
    let key = [
        "req",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
    ];
    openssl(folder, &[&key[..], words].concat())
}

fn openssl(folder: &Path, words: &[&str]) -> Outcome {
    output(Command::new("openssl").current_dir(folder).args(words)).map(drop)
}

fn kubeconfig(places: &Places, folder: &Path, name: &str) -> Outcome {
    let path = |kind: &str| folder.join(format!("{name}.{kind}"));
    let text = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "real", "cluster": {
            "server": format!("https://{NODE}:6443"),
            "certificate-authority": folder.join("ca.crt"),
        }}],
        "users": [{"name": name, "user": {
            "client-certificate": path("crt"),
            "client-key": path("key"),
        }}],
        "contexts": [{"name": "real", "context": {"cluster": "real", "user": name}}],
        "current-context": "real",
    });
    write(
        &places.state(&format!("{name}.kubeconfig")),
        &text.to_string(),
    )
}
