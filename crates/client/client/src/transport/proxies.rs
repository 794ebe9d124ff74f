//! Selects the HTTP proxy from the environment variables, as kubectl does: loopback
//! addresses never use a proxy. kube-client's own selection differs: it compares `NO_PROXY`
//! with the address of the proxy, and makes no exception for loopback addresses.

use std::net::IpAddr;

use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;

/// Returns the proxy for a cluster's URL, `None` for a direct connection. `http` URLs have
/// no proxy, because it could read the token.
///
/// # Errors
/// `HTTPS_PROXY` is not a URL.
pub(super) fn from_environment(
    url: &Uri,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<Uri>, http::uri::InvalidUri> {
    let first = |names: [&str; 2]| {
        let mut values = names.into_iter().filter_map(&variable);
        values.find(|value| !value.trim().is_empty())
    };
    let Some(proxy) = first(["HTTPS_PROXY", "https_proxy"]) else {
        return Ok(None);
    };
    let excluded = first(["NO_PROXY", "no_proxy"]).unwrap_or_default();
    if url.scheme_str() != Some("https") || is_loopback(url) || is_excluded(url, &excluded) {
        return Ok(None);
    }
    let proxy = proxy.trim();
    match proxy.contains("://") {
        true => proxy.parse(),
        false => format!("http://{proxy}").parse(),
    }
    .map(Some)
}

fn host(url: &Uri) -> &str {
    let host = url.host().unwrap_or_default();
    host.trim_start_matches('[').trim_end_matches(']')
}

fn is_loopback(url: &Uri) -> bool {
    let host = host(url).trim_end_matches('.').to_ascii_lowercase();
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) => {
            address.is_loopback() || address.to_ipv4_mapped().is_some_and(|v4| v4.is_loopback())
        }
        Ok(IpAddr::V4(address)) => address.is_loopback(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

/// Returns true if the list in `NO_PROXY` matches the host. An entry is a domain, which includes
/// its subdomains, an address or a CIDR block, with an optional port.
fn is_excluded(url: &Uri, list: &str) -> bool {
    let port = url.port_u16().unwrap_or(443);
    let entries = list.split([',', ' ']).filter_map(|entry| {
        let entry = entry
            .strip_prefix('*')
            .filter(|rest| !rest.is_empty())
            .unwrap_or(entry);
        match entry.rsplit_once(':') {
            // The colon is not part of an IPv6 address.
            Some((name, number)) if !name.contains(':') || name.ends_with(']') => {
                let name = name.trim_start_matches('[').trim_end_matches(']');
                (number.parse() == Ok(port)).then_some(name)
            }
            _ => Some(entry.trim_start_matches('[').trim_end_matches(']')),
        }
    });
    let list = entries.collect::<Vec<_>>().join(",");
    // The matcher requires a proxy; its address does not matter.
    let matcher = Matcher::builder().https("http://proxy").no(list).build();
    matcher.intercept(url).is_none()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn selected(url: &str, variables: &[(&str, &str)]) -> Option<String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(other, _)| *other == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let proxy = from_environment(&url.parse().unwrap(), variable).unwrap();
        proxy.map(|proxy| proxy.to_string())
    }

    #[test]
    fn loopback_addresses_use_no_proxy() {
        let proxy = ("HTTPS_PROXY", "http://proxy:3128");
        for url in [
            "https://127.0.0.1:6443",
            "https://127.9.8.7",
            "https://[::1]:6443",
            "https://[::ffff:127.0.0.1]:6443",
            "https://localhost:6443",
            "https://LOCALHOST.",
            "https://api.localhost",
        ] {
            assert_eq!(selected(url, &[proxy]), None, "{url}");
        }
        let remote = selected("https://example.org:6443", &[proxy]);
        assert_eq!(remote.as_deref(), Some("http://proxy:3128/"));
        assert_eq!(selected("http://example.org", &[proxy]), None);
        let others = [("HTTP_PROXY", "http://a"), ("ALL_PROXY", "http://b")];
        assert_eq!(selected("https://example.org", &others), None);
    }

    #[test]
    fn no_proxy_excludes_hosts() {
        for (list, url, excluded) in [
            ("example.org", "https://example.org:6443", true),
            ("example.org", "https://api.example.org", true),
            (".example.org", "https://api.example.org", true),
            ("*.example.org", "https://api.example.org", true),
            ("ample.org", "https://example.org", false),
            ("example.org:6443", "https://example.org:6443", true),
            ("example.org:443", "https://example.org", true),
            ("example.org:443", "https://example.org:6443", false),
            ("10.0.0.0/8,", "https://10.1.2.3:6443", true),
            ("10.0.0.0/8", "https://11.1.2.3", false),
            ("10.1.2.3:6443", "https://10.1.2.3:6443", true),
            ("fd00::1", "https://[fd00::1]:6443", true),
            ("[fd00::1]:6443", "https://[fd00::1]:6443", true),
            ("fd00::/8", "https://[fd00::1]", true),
            ("a, *", "https://example.org", true),
            ("", "https://example.org", false),
        ] {
            let variables = [("https_proxy", "proxy:3128"), ("no_proxy", list)];
            let proxy = selected(url, &variables);
            assert_eq!(proxy.is_none(), excluded, "{list} {url}");
            // NO_PROXY is compared with the cluster's host, not with the proxy's.
            let proxy_host = [("https_proxy", "proxy:3128"), ("NO_PROXY", "proxy")];
            assert!(selected(url, &proxy_host).is_some());
        }
    }
}
