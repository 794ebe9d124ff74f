//! Which cluster: kubeconfig, in-cluster configuration, or a plain URL. Turns
//! them into kube-client's clients; no secret passes into an error's text.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use kube_client::{
    Client, Config,
    client::ClientBuilder,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};

use super::{
    credentials,
    explain::{explain, shown},
    kubeconfig, proxies,
};
use crate::error::{Error, Result};

/// Where a configuration comes from, so that it can be read anew when its
/// credentials no longer serve.
#[derive(Debug, Clone)]
pub(super) enum Source {
    /// The ecosystem's order: KUBECONFIG, ~/.kube/config, in-cluster.
    Infer,
    /// A file or the default ones, and a context or the current one.
    Kubeconfig {
        path: Option<PathBuf>,
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
    match usual(&KubeConfigOptions::default()).await {
        Ok(config) => Ok(config),
        Err(error) if absent(&error) && in_cluster() => Config::incluster().map_err(|error| {
            Error::Config(format!(
                "the in-cluster configuration cannot be used: {error}"
            ))
        }),
        Err(error) => Err(kubeconfig_error(None, &error)),
    }
}

/// What the files say that are used where none is named.
async fn usual(options: &KubeConfigOptions) -> Result<Config, KubeconfigError> {
    of(kubeconfig::usual()?, options).await
}

/// What a kubeconfig says. Its own proxy counts whatever the environment says.
async fn of(
    kubeconfig: Kubeconfig,
    options: &KubeConfigOptions,
) -> Result<Config, KubeconfigError> {
    let own = kubeconfig::proxy(&kubeconfig, options);
    let mut config = Config::from_custom_kubeconfig(kubeconfig, options).await?;
    config.proxy_url = match own {
        Some(proxy) => Some(proxy.parse().map_err(KubeconfigError::ParseProxyUrl)?),
        None => proxies::of_environment(&config.cluster_url, |name| std::env::var(name).ok())
            .map_err(KubeconfigError::ParseProxyUrl)?,
    };
    Ok(config)
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
        None => usual(&options).await,
        Some(path) => match kubeconfig::read(path) {
            Ok(kubeconfig) => of(kubeconfig, &options).await,
            Err(error) => Err(error),
        },
    };
    config.map_err(|error| kubeconfig_error(path, &error))
}

/// Says what is wrong with a kubeconfig. Parser messages may quote the text,
/// and with it a token, so they are left out.
fn kubeconfig_error(path: Option<&Path>, error: &KubeconfigError) -> Error {
    let which = path.map_or_else(
        || "the kubeconfig (KUBECONFIG or ~/.kube/config)".to_owned(),
        |path| format!("the kubeconfig {}", path.display()),
    );
    let problem = match error {
        KubeconfigError::Parse(_) => "it is not a valid kubeconfig: check its YAML".to_owned(),
        KubeconfigError::ParseCertificates(_) => "a certificate in it is not valid PEM".to_owned(),
        KubeconfigError::CurrentContextNotSet => {
            "it has no current context: choose one with `kubectl config use-context`".to_owned()
        }
        KubeconfigError::LoadContext(name) => format!("it has no context {name:?}"),
        KubeconfigError::LoadClusterOfContext(name) => format!("it has no cluster {name:?}"),
        KubeconfigError::FindPath => "there is no home directory to look in".to_owned(),
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
            "its proxy-url, or HTTPS_PROXY, is not a URL: write it as http://proxy:3128".to_owned()
        }
        KubeconfigError::ParseNoProxy(_) => "NO_PROXY cannot be read: it is a list of names, \
             addresses and networks with a comma between each two"
            .to_owned(),
        other => other.to_string(),
    };
    Error::Config(format!("{which} cannot be used: {problem}"))
}

fn without_detail(error: &KubeconfigError) -> String {
    let text = error.to_string();
    text.split(':').next().unwrap_or_default().to_owned()
}

/// A client over the network.
///
/// Retries are ours (`retry.rs`): kube-client's own would repeat writes.
pub(super) fn client(mut config: Config) -> Result<Client> {
    ensure_crypto();
    config.default_retry = false;
    let url = shown(&config.cluster_url);
    let failed =
        |problem: String| Error::Config(format!("no connection to {url} can be set up: {problem}"));
    if config.root_cert.as_ref().is_some_and(Vec::is_empty) {
        return Err(failed(
            "the certificate authority of the kubeconfig holds no certificate: it must be PEM"
                .to_owned(),
        ));
    }
    if config.cluster_url.scheme_str() == Some("http") {
        // Nothing to verify: a machine without any certificates will do.
        config.root_cert.get_or_insert_default();
    }
    match ClientBuilder::try_from(config) {
        Ok(builder) => Ok(builder.build()),
        Err(kube_client::Error::ProxyProtocolUnsupported { proxy_url }) => {
            let proxy = shown(&proxy_url);
            Err(failed(format!(
                "the proxy {proxy} is of no known kind: it must be http, https or socks5"
            )))
        }
        Err(error) => Err(failed(explain(&error))),
    }
}

/// A client with the credentials of its user's program, and when they expire.
fn client_of_user(mut config: Config) -> Result<(Client, Option<Timestamp>)> {
    let expires = credentials::fetch(&mut config.auth_info).map_err(|problem| {
        let url = shown(&config.cluster_url);
        Error::Config(format!("no credentials for {url}: {problem}"))
    })?;
    Ok((client(config)?, expires))
}

/// As [`client_of_user`], where a program may take its time.
pub(super) async fn client_in_background(config: Config) -> Result<(Client, Option<Timestamp>)> {
    match tokio::task::spawn_blocking(move || client_of_user(config)).await {
        Ok(outcome) => outcome,
        Err(error) => Err(Error::Config(format!(
            "the connection cannot be set up: {error}"
        ))),
    }
}

/// Makes ring the process's TLS provider unless it has one: with none, or
/// with two compiled in, rustls would panic on its first use.
fn ensure_crypto() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // A lost race is fine: another thread has installed one.
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
    async fn a_missing_kubeconfig_is_named() {
        let error = from_kubeconfig(Some(Path::new("/nowhere/config")), None)
            .await
            .unwrap_err();
        assert!(error.to_string().contains("/nowhere/config"), "{error}");
    }
}
