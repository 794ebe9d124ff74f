//! The certificate of a pod: the first of a chain.

use std::time::Duration;

use jiff::Timestamp;
use x509_cert::{
    Certificate, SubjectPublicKeyInfo,
    der::Decode as _,
    ext::pkix::{SubjectAltName, name::GeneralName},
};

/// The parts of a certificate that are validated.
pub(super) struct Leaf {
    pub(super) key: SubjectPublicKeyInfo,
    pub(super) not_before: Timestamp,
    pub(super) not_after: Timestamp,
    dns_names: Vec<String>,
    emails: Vec<String>,
}

fn time(since_epoch: Duration) -> Option<Timestamp> {
    Timestamp::from_second(i64::try_from(since_epoch.as_secs()).ok()?).ok()
}

/// Returns true if the bytes are a certificate.
pub(super) fn is_certificate(der: &[u8]) -> bool {
    Certificate::from_der(der).is_ok()
}

impl Leaf {
    /// Reads a certificate; `None` if it is malformed.
    pub(super) fn read(der: &[u8]) -> Option<Self> {
        let certificate = Certificate::from_der(der).ok()?;
        let content = certificate.tbs_certificate();
        let names = content.get_extension::<SubjectAltName>().ok()?;
        let (mut dns_names, mut emails) = (Vec::new(), Vec::new());
        for name in names.into_iter().flat_map(|(_, names)| names.0) {
            match name {
                GeneralName::DnsName(name) => dns_names.push(name.as_str().to_owned()),
                GeneralName::Rfc822Name(name) => emails.push(name.as_str().to_owned()),
                _ => {}
            }
        }
        let validity = content.validity();
        Some(Self {
            key: content.subject_public_key_info().clone(),
            not_before: time(validity.not_before.to_unix_duration())?,
            not_after: time(validity.not_after.to_unix_duration())?,
            dns_names,
            emails,
        })
    }

    /// The names of the certificate that are invalid, and why.
    pub(super) fn bad_names(&self) -> Vec<(&str, &'static str)> {
        let mut bad = Vec::new();
        for name in &self.dns_names {
            if name.is_empty() {
                bad.push((
                    name.as_str(),
                    "leaf certificate should not contain empty DNSName",
                ));
            }
            if name.contains("..") {
                bad.push((name, "leaf certificate's DNSName should not contain '..'"));
            }
            if name.starts_with('.') || name.ends_with('.') {
                bad.push((
                    name,
                    "leaf certificate's DNSName should not start or end with '.'",
                ));
            }
        }
        for email in self.emails.iter().filter(|email| !is_address(email)) {
            bad.push((
                email,
                "leaf certificate should not contain invalid EmailAddress",
            ));
        }
        bad
    }
}

/// Returns true if a text is an email address: words separated by dots, before and after `@`.
fn is_address(text: &str) -> bool {
    let is_word = |word: &str| {
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"()<>[]:;@\\,\"".contains(&byte);
        !word.is_empty() && word.bytes().all(is_plain)
    };
    text.split_once('@').is_some_and(|(local, domain)| {
        [local, domain]
            .iter()
            .all(|part| part.split('.').all(is_word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn email_addresses() {
        for good in ["a@b", "a.b+c@d.example"] {
            assert!(is_address(good), "{good}");
        }
        for bad in ["", "a", "@b", "a@", "a..b@c", "a b@c", "a@b@c", "<a@b>"] {
            assert!(!is_address(bad), "{bad}");
        }
    }
}
