//! Which HTTP proxy requests go through, by the environment. As by kubectl, none
//! leads to this machine itself. kube-client has another rule: it compares
//! `NO_PROXY` with the proxy's address, and knows no exception.

use std::net::IpAddr;

use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;

/// The proxy for a cluster's URL; `None`: no proxy. Plain `http` URLs have none: a
/// proxy would read the token.
///
/// # Errors
/// What `HTTPS_PROXY` says is no URL.
pub(super) fn of_environment(
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
    if url.scheme_str() != Some("https") || is_this_machine(url) || is_excluded(url, &excluded) {
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

fn is_this_machine(url: &Uri) -> bool {
    let host = host(url).trim_end_matches('.').to_ascii_lowercase();
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) => {
            address.is_loopback() || address.to_ipv4_mapped().is_some_and(|v4| v4.is_loopback())
        }
        Ok(IpAddr::V4(address)) => address.is_loopback(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

/// Whether `NO_PROXY` names the host: by name, as a subdomain, by address or
/// network, perhaps with the port.
fn is_excluded(url: &Uri, list: &str) -> bool {
    let port = url.port_u16().unwrap_or(443);
    let entries = list.split([',', ' ']).filter_map(|entry| {
        let entry = entry
            .strip_prefix('*')
            .filter(|rest| !rest.is_empty())
            .unwrap_or(entry);
        match entry.rsplit_once(':') {
            // Not the last part of an IPv6 address.
            Some((name, number)) if !name.contains(':') || name.ends_with(']') => {
                let name = name.trim_start_matches('[').trim_end_matches(']');
                (number.parse() == Ok(port)).then_some(name)
            }
            _ => Some(entry.trim_start_matches('[').trim_end_matches(']')),
        }
    });
    let list = entries.collect::<Vec<_>>().join(",");
    // Any proxy will do to ask.
    let matcher = Matcher::builder().https("http://proxy").no(list).build();
    matcher.intercept(url).is_none()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn chosen(url: &str, variables: &[(&str, &str)]) -> Option<String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(other, _)| *other == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let proxy = of_environment(&url.parse().unwrap(), variable).unwrap();
        proxy.map(|proxy| proxy.to_string())
    }

    #[test]
    fn this_machine_is_never_reached_through_a_proxy() {
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
            assert_eq!(chosen(url, &[proxy]), None, "{url}");
        }
        let far = chosen("https://example.org:6443", &[proxy]);
        assert_eq!(far.as_deref(), Some("http://proxy:3128/"));
        assert_eq!(chosen("http://example.org", &[proxy]), None);
        let others = [("HTTP_PROXY", "http://a"), ("ALL_PROXY", "http://b")];
        assert_eq!(chosen("https://example.org", &others), None);
    }

    #[test]
    fn no_proxy_names_clusters() {
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
            let proxy = chosen(url, &variables);
            assert_eq!(proxy.is_none(), excluded, "{list} {url}");
            // The proxy's own name is of no account.
            let own = [("https_proxy", "proxy:3128"), ("NO_PROXY", "proxy")];
            assert!(chosen(url, &own).is_some());
        }
    }
}
