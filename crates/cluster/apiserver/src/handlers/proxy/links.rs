//! Finds links that must lead through the proxy, in URLs of a pod's response. Pure.

/// The path of the proxy, and the hosts whose URLs lead to the pod.
#[derive(Debug, Clone)]
pub(super) struct Links {
    /// The path of the proxy, without a slash at its end.
    pub(super) prefix: String,
    /// The address and port of the pod.
    pub(super) pod: String,
    /// The host to which the client sent the request.
    pub(super) client: Option<String>,
}

impl Links {
    /// Returns the URL that leads through the proxy to the same page; `None` if `url` already does,
    /// is relative to its page, or leads elsewhere.
    ///
    /// As in Kubernetes, a URL of the pod becomes a path, and a URL with the request's host keeps
    /// the host.
    pub(super) fn rewrite(&self, url: &str) -> Option<String> {
        let (host, path) = split(url)?;
        let begin = match host {
            None => "",
            Some(host) if self.client.as_deref() == Some(host) => {
                let length = url.len().saturating_sub(path.len());
                url.get(..length)?
            }
            Some(host) if self.pod == host => "",
            Some(_) => return None,
        };
        let below = path.strip_prefix(self.prefix.as_str());
        let is_below =
            below.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?', '#']));
        let prefix = if is_below { "" } else { &self.prefix };
        Some(format!("{begin}{prefix}{path}")).filter(|rewritten| rewritten != url)
    }
}

/// Splits a URL into its host, if it has one, and its absolute path with the rest; `None` without
/// an absolute path.
fn split(url: &str) -> Option<(Option<&str>, &str)> {
    let after_scheme = match url.find(':') {
        Some(at) if is_scheme(&url[..at]) => url.get(at.saturating_add(1)..)?,
        _ => url,
    };
    let Some(rest) = after_scheme.strip_prefix("//") else {
        let has_scheme = after_scheme.len() != url.len();
        return (!has_scheme && url.starts_with('/')).then_some((None, url));
    };
    let path = rest.find(['/', '?', '#'])?;
    let (host, path) = rest.split_at(path);
    (!host.is_empty() && path.starts_with('/')).then_some((Some(host), path))
}

fn is_scheme(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_the_pod_lead_through_the_proxy() {
        let links = Links {
            prefix: "/p/proxy".into(),
            pod: "127.1.2.3:80".into(),
            client: Some("localhost:8001".into()),
        };
        for (url, expected) in [
            ("/", "/p/proxy/"),
            ("/a?b#c", "/p/proxy/a?b#c"),
            ("/a:b", "/p/proxy/a:b"),
            ("http://127.1.2.3:80/a", "/p/proxy/a"),
            ("https://127.1.2.3:80/", "/p/proxy/"),
            ("//127.1.2.3:80/a", "/p/proxy/a"),
            ("http://localhost:8001/a", "http://localhost:8001/p/proxy/a"),
            ("//localhost:8001/a", "//localhost:8001/p/proxy/a"),
            ("http://127.1.2.3:80/p/proxy/a", "/p/proxy/a"),
            ("/p/proxyish", "/p/proxy/p/proxyish"),
        ] {
            assert_eq!(links.rewrite(url).as_deref(), Some(expected), "{url}");
        }
        for url in [
            "",
            "relative",
            "../a",
            "?q=/a",
            "#/a",
            "/p/proxy",
            "/p/proxy/a",
            "http://localhost:8001/p/proxy/a",
            "http://elsewhere/a",
            "http://127.1.2.3:8080/a",
            "http://127.1.2.3:80",
            "http://127.1.2.3:80?/a",
            "//elsewhere/a",
            "///a",
            "mailto:a@b/c",
            "javascript:/a/",
            ":/a",
            "é:/a",
        ] {
            assert_eq!(links.rewrite(url), None, "{url}");
        }
        let unknown = Links {
            client: None,
            ..links
        };
        assert_eq!(unknown.rewrite("http://localhost:8001/a"), None);
    }
}
