//! How pods reach the API, where clients look for it in every cluster: a
//! service account's files, and the variables of the Service `kubernetes`.

use std::{
    io,
    path::{Path, PathBuf},
};

use k8s_openapi::api::core::v1::Pod;
use longshore_client::{Cluster, Error};

use crate::{
    security::Owner,
    tokens,
    volumes::{FileToBe, Files, publish, token_file},
};

/// Where in a container clients look.
pub(crate) const FOLDER: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The API server, as pods see it. A pod shows a token of its own service account,
/// which the node asks of the server.
#[derive(Debug, Clone)]
pub struct ApiAccess {
    /// Its host name or address.
    pub host: String,
    /// Its port, for TLS.
    pub port: u16,
    /// The certificate of its authority, in PEM form.
    pub ca_pem: String,
}

impl ApiAccess {
    /// What every container finds in its environment.
    pub(crate) fn variables(&self) -> [(&'static str, String); 4] {
        let host = match self.host.contains(':') {
            true => format!("[{}]", self.host),
            false => self.host.clone(),
        };
        [
            ("KUBERNETES_SERVICE_HOST", self.host.clone()),
            ("KUBERNETES_SERVICE_PORT", self.port.to_string()),
            ("KUBERNETES_SERVICE_PORT_HTTPS", self.port.to_string()),
            ("KUBERNETES_PORT", format!("tcp://{host}:{}", self.port)),
        ]
    }

    /// Writes a pod's files into its folder.
    pub(crate) fn publish(
        &self,
        folder: &Path,
        namespace: &str,
        token: Option<&str>,
        owner: Owner,
    ) -> io::Result<()> {
        let file = |name: &str, text: &str| {
            let file = FileToBe {
                bytes: text.as_bytes().to_vec(),
                mode: 0o644,
                ..FileToBe::default()
            };
            (PathBuf::from(name), file)
        };
        let mut files: Files = [file("ca.crt", &self.ca_pem), file("namespace", namespace)].into();
        let token = token.map(|token| token_file(token, owner, 0o644));
        files.extend(token.map(|file| (PathBuf::from("token"), file)));
        publish(&place(folder), &files, owner.group)
    }
}

/// Where the files of a pod are.
pub(crate) fn place(folder: &Path) -> PathBuf {
    folder.join("serviceaccount")
}

/// Whether the files have been written for a pod.
pub(crate) fn is_published(folder: &Path) -> bool {
    place(folder).join("..data").exists()
}

/// Whether a pod wants the files: as it says itself, or else its service account.
pub(crate) async fn is_wanted(pod: &Pod, cluster: &Cluster) -> Result<bool, Error> {
    let Some(spec) = &pod.spec else {
        return Ok(false);
    };
    let mut containers = spec
        .init_containers
        .iter()
        .flatten()
        .chain(&spec.containers);
    let have_own = containers.all(|container| {
        let mut mounts = container.volume_mounts.iter().flatten();
        mounts.any(|mount| Path::new(&mount.mount_path) == Path::new(FOLDER))
    });
    if have_own {
        return Ok(false);
    }
    if let Some(wanted) = spec.automount_service_account_token {
        return Ok(wanted);
    }
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let accounts = cluster.serviceaccounts().in_namespace(namespace)?;
    let account = accounts.find(tokens::account(pod)).await?;
    let wanted = account.and_then(|account| {
        let field: Option<bool> = account.field(&["automountServiceAccountToken"]).ok()?;
        field
    });
    Ok(wanted != Some(false))
}
