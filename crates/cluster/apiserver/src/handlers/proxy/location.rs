//! The name of a pod or Service in a proxied path.

/// A name with a port and a scheme: `name`, `name:port`, `scheme:name:port`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Location {
    pub(super) is_tls: bool,
    pub(super) name: String,
    /// A number or a name; may be empty.
    pub(super) port: String,
}

impl Location {
    /// Reads a path segment.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split(':').collect();
        let (scheme, name, port) = match parts[..] {
            [name] => ("", name, ""),
            [name, port] => ("", name, port),
            [scheme, name, port] => (scheme, name, port),
            _ => return None,
        };
        let is_tls = match scheme {
            "" | "http" => false,
            "https" => true,
            _ => return None,
        };
        (!name.is_empty()).then(|| Self {
            is_tls,
            name: name.to_owned(),
            port: port.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_ports_and_schemes() {
        let location = |is_tls, name: &str, port: &str| {
            Some(Location {
                is_tls,
                name: name.to_owned(),
                port: port.to_owned(),
            })
        };
        for (text, expected) in [
            ("a", location(false, "a", "")),
            ("a:80", location(false, "a", "80")),
            ("a:", location(false, "a", "")),
            ("http:a:web", location(false, "a", "web")),
            ("https:a:", location(true, "a", "")),
            (":a:1", location(false, "a", "1")),
            ("ftp:a:1", None),
            ("a:b:c:d", None),
            ("", None),
            (":80", None),
        ] {
            assert_eq!(Location::parse(text), expected, "{text}");
        }
    }
}
