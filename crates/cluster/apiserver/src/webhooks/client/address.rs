//! The location of a webhook: a URL, or a Service of the cluster.

use std::{net::SocketAddr, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::Uri;
use longshore_builtin::json;
use longshore_engine::Engine;
use rustls::pki_types::ServerName;
use serde_json::Value;

use crate::remote::{connect, service};

/// The default port of webhooks.
const DEFAULT_PORT: u16 = 443;

/// The client configuration of a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Address {
    target: Target,
    /// The trusted certificates, in PEM format. If empty, the certificates of public authorities
    /// are trusted.
    pub(super) bundle: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Target {
    Url(String),
    Service {
        namespace: String,
        name: String,
        port: u16,
        path: String,
    },
}

impl Address {
    /// Reads a `clientConfig`. Validation has checked it.
    pub(in crate::webhooks) fn read(config: Option<&Value>) -> Self {
        let empty = json::Object::new();
        let config = config.and_then(Value::as_object).unwrap_or(&empty);
        let bundle = STANDARD.decode(json::text(config, "caBundle"));
        let target = match config.get("service").and_then(Value::as_object) {
            None => Target::Url(json::text(config, "url").to_owned()),
            Some(service) => {
                let port = json::number(service, "port");
                let port = port.and_then(|port| u16::try_from(port).ok());
                Target::Service {
                    namespace: json::text(service, "namespace").to_owned(),
                    name: json::text(service, "name").to_owned(),
                    port: port.unwrap_or(DEFAULT_PORT),
                    path: json::text(service, "path").to_owned(),
                }
            }
        };
        Self {
            target,
            bundle: bundle.unwrap_or_default(),
        }
    }

    /// The URI of a call.
    pub(super) fn uri(&self, timeout: Duration) -> String {
        let seconds = timeout.as_secs();
        let (base, path) = match &self.target {
            Target::Url(url) => {
                let host = url.find("://").map_or(0, |at| at + 3);
                let end = url[host..].find('/').map_or(url.len(), |at| host + at);
                let (base, path) = url.split_at(end);
                (base.to_owned(), path)
            }
            Target::Service {
                namespace,
                name,
                port,
                path,
            } => (
                format!("https://{name}.{namespace}.svc:{port}"),
                path.as_str(),
            ),
        };
        format!("{base}{}?timeout={seconds}s", cleaned(path))
    }

    /// Splits a URI of this address into the host with its port, and the path
    /// with its query.
    pub(super) fn split<'a>(&self, uri: &'a str) -> (&'a str, &'a str) {
        let rest = uri.split_once("://").map_or(uri, |(_, rest)| rest);
        let at = rest.find('/').unwrap_or(rest.len());
        rest.split_at(at)
    }

    /// The name that the certificate of the webhook must have.
    pub(super) fn server_name(&self) -> Result<ServerName<'static>, String> {
        let host = match &self.target {
            Target::Url(url) => host_and_port(url)?.0,
            Target::Service {
                namespace, name, ..
            } => format!("{name}.{namespace}.svc"),
        };
        let name = ServerName::try_from(host.clone());
        name.map_err(|_| format!("{host:?} is neither a DNS name nor an address"))
    }

    /// Returns the sockets to connect to. Each of them serves the webhook.
    pub(super) async fn resolve(&self, engine: &Engine) -> Result<Vec<SocketAddr>, String> {
        match &self.target {
            Target::Url(url) => {
                let (host, port) = host_and_port(url)?;
                connect::look_up(&host, port).await
            }
            Target::Service {
                namespace,
                name,
                port,
                ..
            } => connect::sockets(service::resolve(engine, namespace, name, *port)?, *port).await,
        }
    }
}

fn host_and_port(url: &str) -> Result<(String, u16), String> {
    let uri: Uri = url
        .parse()
        .map_err(|error| format!("parse {url:?}: {error}"))?;
    let host = uri.host().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Ok((host.to_owned(), uri.port_u16().unwrap_or(DEFAULT_PORT)))
}

/// A path without empty segments, dots and a trailing slash, in the form that client-go requests.
fn cleaned(path: &str) -> String {
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => _ = segments.pop(),
            segment => segments.push(segment),
        }
    }
    format!("/{}", segments.join("/"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_are_cleaned() {
        for (path, expected) in [
            ("", "/"),
            ("/", "/"),
            ("a", "/a"),
            ("//a/./b/../c/", "/a/c"),
            ("/../a", "/a"),
        ] {
            assert_eq!(cleaned(path), expected, "{path}");
        }
    }

    #[test]
    fn uris_and_names() {
        let service = |service: Value| json!({"service": service});
        for (config, uri, name) in [
            (
                json!({"url": "https://hooks.example:8443/a/"}),
                "https://hooks.example:8443/a?timeout=5s",
                "hooks.example",
            ),
            (
                json!({"url": "https://[::1]"}),
                "https://[::1]/?timeout=5s",
                "::1",
            ),
            (
                service(json!({"namespace": "n", "name": "s", "port": 8443, "path": "/p/q"})),
                "https://s.n.svc:8443/p/q?timeout=5s",
                "s.n.svc",
            ),
            (
                service(json!({"namespace": "n", "name": "s"})),
                "https://s.n.svc:443/?timeout=5s",
                "s.n.svc",
            ),
        ] {
            let address = Address::read(Some(&config));
            assert_eq!(address.uri(Duration::from_secs(5)), uri);
            assert_eq!(address.server_name().unwrap().to_str(), name);
        }
        let address = Address::read(None);
        assert!(address.server_name().is_err());
        let (host, path) = address.split("https://h:1/a?b");
        assert_eq!((host, path), ("h:1", "/a?b"));
    }
}
