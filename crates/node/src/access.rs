//! Access of pods to the API, at the places where clients expect it in every
//! cluster: the service account's files and the environment variables of the
//! Service `kubernetes`.

use std::{
    io,
    path::{Path, PathBuf},
};

use k8s_openapi::api::core::v1::Pod;
use longshore_client::{Cluster, Error};

use crate::{
    security::Owner,
    tokens,
    volumes::{Files, VolumeFile, publish, token_file},
};

/// The directory in a container where clients look.
pub(crate) const SERVICE_ACCOUNT_DIR: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The API server as pods reach it. A pod authenticates with a token of its own
/// service account, which the node requests from the server.
#[derive(Debug, Clone)]
pub struct ApiAccess {
    /// Host name or address.
    pub host: String,
    /// TLS port.
    pub port: u16,
    /// The certificate of the API server's authority in PEM format.
    pub ca_pem: String,
}

impl ApiAccess {
    /// Returns the environment variables that every container gets.
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

    /// Writes the API access files into a pod's directory.
    pub(crate) fn publish(
        &self,
        folder: &Path,
        namespace: &str,
        token: Option<&str>,
        owner: Owner,
    ) -> io::Result<()> {
        let file = |name: &str, text: &str| {
            let file = VolumeFile {
                bytes: text.as_bytes().to_vec(),
                mode: 0o644,
                ..VolumeFile::default()
            };
            (PathBuf::from(name), file)
        };
        let mut files: Files = [file("ca.crt", &self.ca_pem), file("namespace", namespace)].into();
        let token = token.map(|token| token_file(token, owner, 0o644));
        files.extend(token.map(|file| (PathBuf::from("token"), file)));
        publish(&files_dir(folder), &files, owner.group)
    }
}

/// Returns the path of a pod's API access files.
pub(crate) fn files_dir(folder: &Path) -> PathBuf {
    folder.join("serviceaccount")
}

/// Whether the API access files of a pod were written.
pub(crate) fn is_published(folder: &Path) -> bool {
    files_dir(folder).join("..data").exists()
}

/// Whether a pod gets the files: its own `automountServiceAccountToken`
/// decides, or else that of its service account.
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
        mounts.any(|mount| Path::new(&mount.mount_path) == Path::new(SERVICE_ACCOUNT_DIR))
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
