//! URLs, as Go's `url.ParseRequestURI` reads them.

use std::collections::BTreeMap;

/// The parts of a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) scheme: String,
    pub(crate) host: String,
    pub(crate) path: String,
    pub(crate) query: String,
}

impl Url {
    /// Parses an absolute URL or an absolute path.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("parse {text:?}: {why}");
        if text.is_empty() {
            return Err(wrong("empty url"));
        }
        if text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
            return Err(wrong("net/url: invalid control character in URL"));
        }
        let (scheme, rest) = scheme(text).ok_or_else(|| wrong("missing protocol scheme"))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        if !rest.starts_with('/') {
            if scheme.is_empty() {
                return Err(wrong("invalid URI for request"));
            }
            // An opaque URL, as in `mailto:`.
            return Ok(Self {
                scheme,
                host: String::new(),
                path: String::new(),
                query: query.to_owned(),
            });
        }
        let (host, path) = match rest.strip_prefix("//").filter(|_| !scheme.is_empty()) {
            Some(rest) => {
                let end = rest.find('/').unwrap_or(rest.len());
                let (authority, path) = rest.split_at(end);
                let host = authority
                    .rsplit_once('@')
                    .map_or(authority, |(_, host)| host);
                check_host(host).map_err(|why| wrong(&why))?;
                (host.to_owned(), path)
            }
            None => (String::new(), rest),
        };
        check_escapes(path).map_err(|why| wrong(&why))?;
        Ok(Self {
            scheme,
            host,
            path: escaped(path),
            query: query.to_owned(),
        })
    }

    fn split_port(&self) -> (&str, &str) {
        match self.host.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => (host, port),
            _ => (&self.host, ""),
        }
    }

    pub(crate) fn hostname(&self) -> &str {
        let (host, _) = self.split_port();
        host.strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host)
    }

    pub(crate) fn port(&self) -> &str {
        self.split_port().1
    }

    /// The parameters of the query. Malformed ones are dropped.
    pub(crate) fn parameters(&self) -> BTreeMap<String, Vec<String>> {
        let mut out: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for pair in self.query.split('&') {
            if pair.is_empty() || pair.contains(';') {
                continue;
            }
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            if let (Some(key), Some(value)) = (unescaped(key), unescaped(value)) {
                out.entry(key).or_default().push(value);
            }
        }
        out
    }
}

fn scheme(text: &str) -> Option<(String, &str)> {
    for (at, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            ':' if at > 0 => return Some((text[..at].to_ascii_lowercase(), &text[at + 1..])),
            ':' => return None,
            _ => break,
        }
    }
    Some((String::new(), text))
}

fn check_host(host: &str) -> Result<(), String> {
    let after = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((_, after)) => after,
            None => return Err("missing ']' in host".to_owned()),
        },
        None => {
            let bad = |c: &char| {
                matches!(
                    c,
                    ' ' | '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}'
                )
            };
            if let Some(c) = host.chars().find(bad) {
                return Err(format!(
                    "invalid character {:?} in host name",
                    c.to_string()
                ));
            }
            host.find(':').map_or("", |at| &host[at..])
        }
    };
    let port = after.strip_prefix(':').unwrap_or(after);
    match port.bytes().all(|byte| byte.is_ascii_digit()) {
        true => check_escapes(host),
        false => Err(format!("invalid port {after:?} after host")),
    }
}

fn check_escapes(text: &str) -> Result<(), String> {
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        let code: String = rest[at..].chars().take(3).collect();
        if code.len() != 3 || !code[1..].bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(format!("invalid URL escape {code:?}"));
        }
        rest = &rest[at + 3..];
    }
    Ok(())
}

/// Escapes the characters of a path that must be escaped.
fn escaped(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for c in path.chars() {
        if c.is_ascii_alphanumeric() || "$&+,/:;=@-_.~!'()*[]%".contains(c) {
            out.push(c);
        } else {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                out.push_str(&format!("%{byte:02X}"));
            }
        }
    }
    out
}

fn unescaped(text: &str) -> Option<String> {
    check_escapes(text).ok()?;
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'+' => b' ',
            b'%' => {
                let code = [bytes.next()?, bytes.next()?];
                u8::from_str_radix(std::str::from_utf8(&code).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    Some(String::from_utf8_lossy(&out).into_owned())
}
