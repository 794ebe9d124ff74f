//! Creates the keys and certificates of the cluster, and the kubeconfigs of its programs.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use super::{Paths, create_folder, network::NODE_ADDRESS, write};
use crate::run::{Outcome, output};

/// The address of the Service `kubernetes`: the first one of the Service CIDR.
pub(super) const API_SERVICE_ADDRESS: &str = "10.96.0.1";
/// The name of the node.
pub(super) const NODE_NAME: &str = "node1";
const VALID_DAYS: &str = "30";

/// Creates all files.
pub(super) fn create(paths: &Paths) -> Outcome {
    let folder = paths.state("pki");
    create_folder(&folder)?;
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
        &[&["-x509", "-days", VALID_DAYS], &authority[..]].concat(),
    )?;
    openssl(&folder, &["genrsa", "-out", "sa.key", "2048"])?;
    openssl(
        &folder,
        &["rsa", "-in", "sa.key", "-pubout", "-out", "sa.pub"],
    )?;
    let service = "kubernetes.default.svc";
    let names = format!(
        "DNS:kubernetes,DNS:kubernetes.default,DNS:{service},DNS:{service}.cluster.local,\
         DNS:localhost,IP:127.0.0.1,IP:{NODE_ADDRESS},IP:{API_SERVICE_ADDRESS}"
    );
    sign(&folder, "apiserver", "/CN=kube-apiserver", &names)?;
    let node = format!("/O=system:nodes/CN=system:node:{NODE_NAME}");
    let names = format!("DNS:{NODE_NAME},IP:{NODE_ADDRESS}");
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
        kubeconfig(paths, &folder, name)?;
    }
    Ok(())
}

/// Creates a key, and a certificate for server and client authentication.
pub(crate) fn sign(folder: &Path, name: &str, subject: &str, names: &str) -> Outcome {
    let file = |kind: &str| format!("{name}.{kind}");
    let (key, request_file, extensions) = (file("key"), file("csr"), file("ext"));
    request(
        folder,
        &["-keyout", &key, "-out", &request_file, "-subj", subject],
    )?;
    let text = format!("subjectAltName={names}\nextendedKeyUsage=serverAuth,clientAuth\n");
    write(&folder.join(&extensions), &text)?;
    let authority = ["-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial"];
    let args = [
        "x509",
        "-req",
        "-in",
        &request_file,
        "-out",
        &file("crt"),
        "-days",
        VALID_DAYS,
    ];
    openssl(
        folder,
        &[&args[..], &authority, &["-extfile", &extensions]].concat(),
    )
}

/// Creates a key, and a certificate or a request for one.
pub(crate) fn request(folder: &Path, args: &[&str]) -> Outcome {
    let key = [
        "req",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
    ];
    openssl(folder, &[&key[..], args].concat())
}

/// Runs openssl in a folder.
pub(crate) fn openssl(folder: &Path, args: &[&str]) -> Outcome {
    output(Command::new("openssl").current_dir(folder).args(args)).map(drop)
}

fn kubeconfig(paths: &Paths, folder: &Path, name: &str) -> Outcome {
    let path = |kind: &str| folder.join(format!("{name}.{kind}"));
    let text = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "real", "cluster": {
            "server": format!("https://{NODE_ADDRESS}:6443"),
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
        &paths.state(&format!("{name}.kubeconfig")),
        &text.to_string(),
    )
}
