//! Writes and checks the kubeconfig of an embedded cluster.

use std::path::Path;

use base64::Engine as _;
use longshore_apiserver::ClientCertificate;
use longshore_client::model::yaml;
use serde::Deserialize;

use crate::{Error, NAME};

/// Returns the text of a kubeconfig with one cluster, one user and one context, all named [`NAME`].
/// The user has a token and a client certificate; either is sufficient.
pub(crate) fn text(
    url: &str,
    ca_pem: &str,
    token: &str,
    administrator: &ClientCertificate,
) -> String {
    let encode = |pem: &str| base64::engine::general_purpose::STANDARD.encode(pem);
    let authority = encode(ca_pem);
    let certificate = encode(&administrator.certificate);
    let key = encode(&administrator.key);
    // The values are base64, hexadecimal digits and a generated URL. Quotes are
    // needed because YAML reads a value of digits as a number.
    format!(
        r#"apiVersion: v1
kind: Config
current-context: {NAME}
clusters:
- name: {NAME}
  cluster:
    server: {url}
    certificate-authority-data: {authority}
users:
- name: {NAME}
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
    token: "{token}"
contexts:
- name: {NAME}
  context:
    cluster: {NAME}
    user: {NAME}
    namespace: default
"#
    )
}

/// Checks that a kubeconfig may be written to a path. Rejects a file that contains
/// anything other than an embedded cluster's kubeconfig, a file of another user,
/// and a symbolic link.
///
/// # Errors
/// The file belongs to another program, or cannot be read.
pub fn check_place(path: &Path) -> Result<(), Error> {
    #[derive(Deserialize)]
    struct Config {
        #[serde(default)]
        clusters: Vec<Named>,
        #[serde(default)]
        contexts: Vec<Named>,
    }
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    let Some(bytes) = longshore_files::inspect_optional(path)? else {
        return Ok(());
    };
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(());
    }
    let only_ours = |config: Config| {
        let mut names = config.clusters.iter().chain(&config.contexts);
        !config.clusters.is_empty() && names.all(|named| named.name == NAME)
    };
    // A YAML file whose aliases expand without bound is not an embedded cluster's
    // kubeconfig.
    let bounded = yaml::check(&bytes).is_ok();
    if bounded && serde_yaml_ng::from_slice(&bytes).is_ok_and(only_ours) {
        Ok(())
    } else {
        Err(Error::ForeignKubeconfig(path.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn administrator() -> ClientCertificate {
        ClientCertificate {
            certificate: "c\n".into(),
            key: "k\n".into(),
        }
    }

    #[test]
    fn only_kubeconfigs_of_embedded_clusters_may_be_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config");
        check_place(&path).unwrap();
        std::fs::write(
            &path,
            text("https://127.0.0.1:1", "pem", "token", &administrator()),
        )
        .unwrap();
        check_place(&path).unwrap();
        for foreign in [
            "clusters:\n- name: production\n  cluster: {}\n",
            "notes",
            "\u{0}",
        ] {
            std::fs::write(&path, foreign).unwrap();
            let error = check_place(&path).unwrap_err();
            assert!(
                matches!(error, Error::ForeignKubeconfig(_)),
                "{foreign:?}: {error}"
            );
        }
    }

    #[test]
    fn a_file_with_unbounded_aliases_is_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config");
        let mut aliases = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..9 {
            let again = format!("*a{}, ", level - 1).repeat(10);
            aliases += &format!("a{level}: &a{level} [{again}]\n");
        }
        let ours = format!("clusters: [{{name: {NAME}}}]\n");
        let deep = format!("{ours}a: {}{}\n", "[".repeat(50_000), "]".repeat(50_000));
        for bomb in [format!("{aliases}{ours}"), deep] {
            std::fs::write(&path, bomb).unwrap();
            let begin = std::time::Instant::now();
            let error = check_place(&path).unwrap_err();
            assert!(matches!(error, Error::ForeignKubeconfig(_)), "{error}");
            assert!(begin.elapsed().as_secs() < 10, "{:?}", begin.elapsed());
        }
        std::fs::write(&path, ours).unwrap();
        check_place(&path).unwrap();
    }

    #[test]
    fn the_kubeconfig_contains_server_and_credentials() {
        let text = text("https://127.0.0.1:6443", "a\nb\n", "00ff", &administrator());
        let value: serde_json::Value = serde_yaml_ng::from_str(&text).unwrap();
        assert_eq!(
            value["clusters"][0]["cluster"]["server"],
            "https://127.0.0.1:6443"
        );
        assert_eq!(
            value["clusters"][0]["cluster"]["certificate-authority-data"],
            "YQpiCg=="
        );
        let user = &value["users"][0]["user"];
        assert_eq!(user["token"], "00ff");
        assert_eq!(user["client-certificate-data"], "Ywo=");
        assert_eq!(user["client-key-data"], "awo=");
        assert_eq!(value["current-context"], "longshore");
    }
}
