//! The keys, certificates and kubeconfigs of a control plane.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

use crate::{
    kubernetes::certificates::{openssl, request, sign},
    run::Outcome,
};

/// The files in a folder.
pub(super) struct Files {
    pub(super) folder: PathBuf,
}

/// The users with a client certificate: name and subject.
const USERS: [(&str, &str); 3] = [
    ("admin", "/O=system:masters/CN=admin"),
    ("controller-manager", "/CN=system:kube-controller-manager"),
    ("scheduler", "/CN=system:kube-scheduler"),
];

impl Files {
    /// Creates the files for an API server at `url`.
    pub(super) fn create(folder: &Path, url: &str) -> Outcome<Self> {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let this = Self {
            folder: folder.to_owned(),
        };
        let authority = [
            "-x509", "-days", "30", "-keyout", "ca.key", "-out", "ca.crt",
        ];
        request(
            folder,
            &[&authority[..], &["-subj", "/CN=longshore"]].concat(),
        )?;
        let curve = ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"];
        openssl(
            folder,
            &[&["genpkey", "-out", "sa.key"], &curve[..]].concat(),
        )?;
        // kube-apiserver takes the public key.
        openssl(
            folder,
            &["pkey", "-in", "sa.key", "-pubout", "-out", "sa.pub"],
        )?;
        let names = "DNS:kubernetes.default.svc,DNS:localhost,IP:127.0.0.1,IP:10.0.0.1";
        sign(folder, "apiserver", "/CN=kube-apiserver", names)?;
        for (name, subject) in USERS {
            sign(folder, name, subject, "DNS:localhost")?;
            let user = json!({
                "client-certificate": this.path(&format!("{name}.crt")),
                "client-key": this.path(&format!("{name}.key")),
            });
            this.write_kubeconfig(name, url, &user)?;
        }
        Ok(this)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(super) fn kubeconfig(&self, user: &str) -> PathBuf {
        self.path(&format!("{user}.kubeconfig"))
    }

    /// Writes the kubeconfig of a user with these credentials.
    pub(super) fn write_kubeconfig(&self, name: &str, url: &str, user: &Value) -> Outcome {
        let text = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": {
                "server": url, "certificate-authority": self.path("ca.crt"),
            }}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": name}}],
            "current-context": "test",
        });
        let path = self.kubeconfig(name);
        fs::write(&path, text.to_string()).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// kubectl as the administrator.
    pub(super) fn kubectl(&self, program: PathBuf) -> Command {
        let mut kubectl = Command::new(program);
        kubectl.arg("--kubeconfig").arg(self.kubeconfig("admin"));
        kubectl
    }
}
