//! Loads the configuration of a cluster from a kubeconfig or from inside the cluster, and
//! creates kube-client's clients from it. Error messages contain no secrets.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use kube_client::{
    Client, Config,
    client::ClientBuilder,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};

use super::{
    credentials,
    explain::{display_url, explain},
    kubeconfig::{self, Problem},
    kubeconfig_rules, proxies,
};
use crate::error::{Error, Result};

/// The source of a configuration. It is read again when the credentials expire.
#[derive(Debug, Clone)]
pub(super) enum Source {
    /// The first of `KUBECONFIG`, `~/.kube/config` and the in-cluster configuration.
    Infer,
    Kubeconfig {
        /// `None`: the default files.
        path: Option<PathBuf>,
        /// `None`: the current context.
        context: Option<String>,
    },
}

impl Source {
    pub(super) async fn load(&self) -> Result<Config> {
        match self {
            Self::Infer => infer().await,
            Self::Kubeconfig { path, context } => {
                from_kubeconfig(path.as_deref(), context.as_deref()).await
            }
        }
    }
}

async fn infer() -> Result<Config> {
    let absent = |error: &KubeconfigError| match error {
        KubeconfigError::FindPath | KubeconfigError::CurrentContextNotSet => true,
        KubeconfigError::ReadConfig(error, _) => error.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    };
    match load_default(&KubeConfigOptions::default()).await {
        Ok(config) => Ok(config),
        Err(Problem::Kube(error)) if absent(&error) && in_cluster() => {
            Config::incluster().map_err(|error| {
                Error::Config(format!(
                    "the in-cluster configuration cannot be used: {error}"
                ))
            })
        }
        Err(error) => Err(kubeconfig_error(None, &error)),
    }
}

/// Loads the default kubeconfig files.
async fn load_default(options: &KubeConfigOptions) -> Result<Config, Problem> {
    let kubeconfig = kubeconfig::read_default()?;
    let is_selected = options.context.is_some() || kubeconfig.current_context.is_some();
    if !is_selected && in_cluster() {
        return Err(KubeconfigError::CurrentContextNotSet.into());
    }
    to_config(kubeconfig, options).await
}

/// Converts a kubeconfig. Its `proxy-url` takes precedence over the environment.
async fn to_config(kubeconfig: Kubeconfig, options: &KubeConfigOptions) -> Result<Config, Problem> {
    kubeconfig_rules::check(&kubeconfig, options).map_err(Problem::Rule)?;
    let proxy_url = kubeconfig::proxy(&kubeconfig, options);
    let mut config = Config::from_custom_kubeconfig(kubeconfig, options).await?;
    config.proxy_url = match proxy_url {
        Some(proxy) => Some(proxy.parse().map_err(KubeconfigError::ParseProxyUrl)?),
        None => proxies::from_environment(&config.cluster_url, |name| std::env::var(name).ok())
            .map_err(KubeconfigError::ParseProxyUrl)?,
    };
    Ok(config)
}

/// The token of a pod's service account.
const POD_TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/// Returns true if this process runs in a pod that has credentials for the cluster.
pub(crate) fn is_in_pod() -> bool {
    in_cluster() && Path::new(POD_TOKEN).exists()
}

fn in_cluster() -> bool {
    std::env::var_os("KUBERNETES_SERVICE_HOST").is_some()
}

async fn from_kubeconfig(path: Option<&Path>, context: Option<&str>) -> Result<Config> {
    let options = KubeConfigOptions {
        context: context.map(str::to_owned),
        ..KubeConfigOptions::default()
    };
    let config = match path {
        None => load_default(&options).await,
        Some(path) => match kubeconfig::read_list(path) {
            Ok(kubeconfig) => to_config(kubeconfig, &options).await,
            Err(error) => Err(error),
        },
    };
    config.map_err(|error| kubeconfig_error(path, &error))
}

/// Returns the error for an invalid kubeconfig. It omits parser messages, which may quote
/// a token from the file.
fn kubeconfig_error(path: Option<&Path>, problem: &Problem) -> Error {
    let which = path.map_or_else(
        || "the kubeconfig (KUBECONFIG or ~/.kube/config)".to_owned(),
        |path| format!("the kubeconfig {}", path.display()),
    );
    let error = match problem {
        Problem::Rule(rule) => return Error::Config(format!("{which} cannot be used: {rule}")),
        Problem::Kube(error) => error,
    };
    let problem = match error {
        KubeconfigError::Parse(_) => "it is not a valid kubeconfig: check its YAML".to_owned(),
        KubeconfigError::ParseCertificates(_) => "a certificate in it is not valid PEM".to_owned(),
        KubeconfigError::CurrentContextNotSet => {
            "it has no current context: choose one with `kubectl config use-context`".to_owned()
        }
        KubeconfigError::LoadContext(name) => format!("it has no context {name:?}"),
        KubeconfigError::LoadClusterOfContext(name) => format!("it has no cluster {name:?}"),
        KubeconfigError::FindPath => "the user has no home directory".to_owned(),
        KubeconfigError::ReadConfig(error, path) => format!("{}: {error}", path.display()),
        KubeconfigError::LoadCertificateAuthority(_)
        | KubeconfigError::LoadClientCertificate(_)
        | KubeconfigError::LoadClientKey(_) => {
            format!(
                "{}: check the path or the base64 data",
                without_detail(error)
            )
        }
        KubeconfigError::ParseProxyUrl(_) => {
            "proxy-url or HTTPS_PROXY is not a valid URL: write it as http://proxy:3128".to_owned()
        }
        KubeconfigError::ParseNoProxy(_) => "NO_PROXY is not valid: write host names, IP \
             addresses and CIDR blocks, separated by commas"
            .to_owned(),
        other => other.to_string(),
    };
    Error::Config(format!("{which} cannot be used: {problem}"))
}

/// The message of an error up to the first colon, without the path or data that follows.
fn without_detail(error: &KubeconfigError) -> String {
    let text = error.to_string();
    text.split(':').next().unwrap_or_default().to_owned()
}

/// Creates a client for a server on the network.
///
/// kube-client's retries are off, because they would repeat writes. `retry.rs` has the
/// retries of this crate.
pub(super) fn client(mut config: Config) -> Result<Client> {
    ensure_crypto();
    config.default_retry = false;
    let url = display_url(&config.cluster_url);
    let failed =
        |problem: String| Error::Config(format!("cannot set up a connection to {url}: {problem}"));
    if config.root_cert.as_ref().is_some_and(Vec::is_empty) {
        return Err(failed(
            "the certificate authority in the kubeconfig has no certificate: it must be PEM"
                .to_owned(),
        ));
    }
    if config.cluster_url.scheme_str() == Some("http") {
        // There is nothing to verify, so the machine needs no certificates.
        config.root_cert.get_or_insert_default();
    }
    match ClientBuilder::try_from(config) {
        Ok(builder) => Ok(builder.build()),
        Err(kube_client::Error::ProxyProtocolUnsupported { proxy_url }) => {
            let proxy = display_url(&proxy_url);
            Err(failed(format!(
                "the scheme of the proxy {proxy} is not supported: use http, https or socks5"
            )))
        }
        Err(error) => Err(failed(explain(&error))),
    }
}

/// Creates a client. Runs the credential plugin of its user, if any, and returns when the
/// plugin's credentials expire. Blocks until the plugin ends.
fn client_with_credentials(mut config: Config) -> Result<(Client, Option<Timestamp>)> {
    let expires = credentials::fetch(&mut config.auth_info).map_err(|problem| {
        let url = display_url(&config.cluster_url);
        Error::Config(format!("no credentials for {url}: {problem}"))
    })?;
    Ok((client(config)?, expires))
}

/// Like [`client_with_credentials`], on a thread for blocking work.
pub(super) async fn client_in_background(config: Config) -> Result<(Client, Option<Timestamp>)> {
    match tokio::task::spawn_blocking(move || client_with_credentials(config)).await {
        Ok(outcome) => outcome,
        Err(error) => Err(Error::Config(format!(
            "cannot set up the connection: {error}"
        ))),
    }
}

/// Installs ring as the TLS provider of the process, unless the process has one. Without an
/// installed provider, rustls panics at its first use if none or two are compiled in.
fn ensure_crypto() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Fails only if another thread has just installed a provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test]
    async fn a_broken_kubeconfig_does_not_leak_its_token() {
        let path = std::env::temp_dir().join(format!("longshore-config-{}", std::process::id()));
        std::fs::write(&path, "users:\n- name: a\n  user: {token: s3cret\n").unwrap();
        let error = from_kubeconfig(Some(&path), None).await.unwrap_err();
        std::fs::remove_file(&path).unwrap();
        let text = error.to_string();
        assert!(
            text.contains("not a valid kubeconfig") && !text.contains("s3cret"),
            "{text}"
        );
    }

    #[tokio::test]
    async fn a_missing_kubeconfig_is_reported_with_its_path() {
        let error = from_kubeconfig(Some(Path::new("/nowhere/config")), None)
            .await
            .unwrap_err();
        assert!(error.to_string().contains("/nowhere/config"), "{error}");
    }
}
