//! The HTTP client for object stores. It has the settings of the crate object_store, but follows no
//! redirects: reqwest would send the session token, which is in a separate header, to the other
//! server, whose response would count as the store's.

use std::time::Duration;

use object_store::{
    ClientConfigKey, ClientOptions, Error, Result,
    client::{HttpConnector as _, ReqwestConnector},
};
use reqwest::{Certificate, Client, NoProxy, Proxy, redirect::Policy};

/// Creates a client.
pub(super) fn store_client(options: &ClientOptions) -> Result<Client> {
    // Reports invalid settings.
    ReqwestConnector::default().connect(options)?;
    let settings = Settings(options);
    let failed = |error: reqwest::Error| Error::Generic {
        store: "HTTP client",
        source: Box::new(error),
    };
    let mut builder = Client::builder()
        .redirect(Policy::none())
        .referer(false)
        .user_agent(concat!("longshore/", env!("CARGO_PKG_VERSION")))
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
        .https_only(!settings.is_on(ClientConfigKey::AllowHttp))
        .danger_accept_invalid_certs(settings.is_on(ClientConfigKey::AllowInvalidCertificates))
        .http2_keep_alive_while_idle(settings.is_on(ClientConfigKey::Http2KeepAliveWhileIdle));
    if let Some(agent) = settings.text(ClientConfigKey::UserAgent) {
        builder = builder.user_agent(agent);
    }
    if let Some(url) = settings.text(ClientConfigKey::ProxyUrl) {
        if let Some(pem) = settings.text(ClientConfigKey::ProxyCaCertificate) {
            let certificate = Certificate::from_pem(pem.as_bytes()).map_err(failed)?;
            builder = builder.tls_certs_merge([certificate]);
        }
        let excludes = settings.text(ClientConfigKey::ProxyExcludes);
        let excludes = excludes.and_then(|excludes| NoProxy::from_string(&excludes));
        let proxy = Proxy::all(url).map_err(failed)?.no_proxy(excludes);
        builder = builder.proxy(proxy);
    }
    if settings.is_on(ClientConfigKey::NoSystemCertificates) {
        builder = builder.tls_certs_only([]);
    }
    if settings.is_on(ClientConfigKey::Http1Only) {
        builder = builder.http1_only();
    }
    if settings.is_on(ClientConfigKey::Http2Only) {
        builder = builder.http2_prior_knowledge();
    }
    if let Some(timeout) = settings.duration(ClientConfigKey::Timeout) {
        builder = builder.timeout(timeout);
    }
    if let Some(timeout) = settings.duration(ClientConfigKey::ConnectTimeout) {
        builder = builder.connect_timeout(timeout);
    }
    if let Some(timeout) = settings.duration(ClientConfigKey::ReadTimeout) {
        builder = builder.read_timeout(timeout);
    }
    if let Some(timeout) = settings.duration(ClientConfigKey::PoolIdleTimeout) {
        builder = builder.pool_idle_timeout(timeout);
    }
    if let Some(count) = settings.number(ClientConfigKey::PoolMaxIdlePerHost) {
        builder = builder.pool_max_idle_per_host(count);
    }
    builder.build().map_err(failed)
}

/// The settings, which were checked before.
struct Settings<'a>(&'a ClientOptions);

impl Settings<'_> {
    fn text(&self, key: ClientConfigKey) -> Option<String> {
        self.0.get_config_value(&key)
    }

    /// Returns true for the words that object_store reads as true.
    fn is_on(&self, key: ClientConfigKey) -> bool {
        let text = self.text(key).map(|text| text.to_ascii_lowercase());
        matches!(text.as_deref(), Some("1" | "true" | "on" | "yes" | "y"))
    }

    fn duration(&self, key: ClientConfigKey) -> Option<Duration> {
        humantime::parse_duration(&self.text(key)?).ok()
    }

    fn number(&self, key: ClientConfigKey) -> Option<usize> {
        self.text(key)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn settings_are_read_as_object_store_reads_them() {
        let options = ClientOptions::new()
            .with_config(ClientConfigKey::Timeout, "5 minutes")
            .with_config(ClientConfigKey::ConnectTimeout, "700ms")
            .with_config(ClientConfigKey::AllowHttp, "Yes")
            .with_config(ClientConfigKey::PoolMaxIdlePerHost, "7");
        let settings = Settings(&options);
        let duration = |key| settings.duration(key);
        assert_eq!(
            duration(ClientConfigKey::Timeout),
            Some(Duration::from_secs(300))
        );
        assert_eq!(
            duration(ClientConfigKey::ConnectTimeout),
            Some(Duration::from_millis(700))
        );
        assert_eq!(duration(ClientConfigKey::PoolIdleTimeout), None);
        assert!(settings.is_on(ClientConfigKey::AllowHttp));
        assert!(!settings.is_on(ClientConfigKey::Http2Only));
        assert_eq!(
            settings.number(ClientConfigKey::PoolMaxIdlePerHost),
            Some(7)
        );
        super::super::http::choose_tls();
        store_client(&options).unwrap();
        let invalid = ClientOptions::new().with_config(ClientConfigKey::Timeout, "soon");
        assert!(store_client(&invalid).is_err());
    }
}
