//! How pods reach the API, where clients look for it in every cluster: a
//! service account's files, and the variables of the Service `kubernetes`.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use k8s_openapi::api::core::v1::Pod;

use crate::volumes::{FileToBe, Files, publish};

/// Where in a container clients look.
pub(crate) const FOLDER: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The API server, as pods see it. All pods show the same token, whichever
/// service account they are of: who may do what is not distinguished here.
#[derive(Clone)]
pub struct ApiAccess {
    /// Its host name or address.
    pub host: String,
    /// Its port, for TLS.
    pub port: u16,
    /// The certificate of its authority, in PEM form.
    pub ca_pem: String,
    /// A bearer token.
    pub token: String,
}

/// Without the token.
impl fmt::Debug for ApiAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiAccess")
            .field("host", &self.host)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
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

    /// Writes a pod's files into its folder, and tells where they are.
    pub(crate) fn publish(&self, folder: &Path, namespace: &str) -> io::Result<PathBuf> {
        let place = place(folder);
        let file = |name: &str, text: &str| {
            let bytes = text.as_bytes().to_vec();
            (PathBuf::from(name), FileToBe { bytes, mode: 0o644 })
        };
        let files: Files = [
            file("token", &self.token),
            file("ca.crt", &self.ca_pem),
            file("namespace", namespace),
        ]
        .into();
        publish(&place, &files)?;
        Ok(place)
    }
}

/// Where the files of a pod are.
pub(crate) fn place(folder: &Path) -> PathBuf {
    folder.join("serviceaccount")
}

/// Whether a pod wants the files.
pub(crate) fn is_wanted(pod: &Pod) -> bool {
    let spec = pod.spec.as_ref();
    spec.and_then(|spec| spec.automount_service_account_token) != Some(false)
}
