//! Validation of names: DNS labels and subdomains, label keys and values.
//!
//! The rules are from "Object Names and IDs" and "Labels and Selectors" in the Kubernetes
//! documentation. Errors state the violated rule.

/// The characters of random suffixes of names, and of hashes in names: no vowels, so that they do
/// not form words, and no similar characters. The same as in Kubernetes.
pub const SUFFIX_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// An invalid name and the rule that it violates.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid {what} {text:?}: {rule}")]
pub struct NameError {
    what: &'static str,
    text: String,
    rule: &'static str,
}

impl NameError {
    /// A description of the violated rule.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        self.rule
    }
}

/// The rule for DNS labels.
pub const DNS_LABEL: &str =
    "use at most 63 lower-case letters, digits and '-', starting and ending with a letter or digit";
/// The rule for DNS subdomains.
pub const DNS_SUBDOMAIN: &str = "use at most 253 lower-case letters, digits, '-' and '.', each part starting and ending with a letter or digit";
/// The rule for label keys.
pub const LABEL_KEY: &str = "use an optional DNS subdomain and '/', then at most 63 letters, digits, '-', '_' and '.', starting and ending with a letter or digit";
/// The rule for label values.
pub const LABEL_VALUE: &str = "use at most 63 letters, digits, '-', '_' and '.', starting and ending with a letter or digit, or nothing";

pub(crate) fn is_dns_part(text: &str) -> bool {
    let bytes = text.as_bytes();
    let alphanumeric = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    !bytes.is_empty()
        && bytes.iter().all(|b| alphanumeric(b) || *b == b'-')
        && bytes.first().is_some_and(alphanumeric)
        && bytes.last().is_some_and(alphanumeric)
}

/// Returns true if a text matches the pattern of label values, regardless of its length.
pub(crate) fn is_qualified(text: &str) -> bool {
    let bytes = text.as_bytes();
    !bytes.is_empty()
        && bytes
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
}

fn is_label(text: &str) -> bool {
    text.len() <= 63 && is_qualified(text)
}

fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_dns_part)
}

fn check(ok: bool, what: &'static str, text: &str, rule: &'static str) -> Result<(), NameError> {
    if ok {
        Ok(())
    } else {
        Err(NameError {
            what,
            text: text.to_owned(),
            rule,
        })
    }
}

/// Validates a DNS-1123 label: names of namespaces, containers and Services.
///
/// # Errors
/// Returns the text and the violated rule.
///
/// ```
/// use longshore_model::name::dns_label;
/// assert!(dns_label("namespace", "a-1").is_ok());
/// assert!(dns_label("namespace", "A").is_err());
/// ```
pub fn dns_label(what: &'static str, text: &str) -> Result<(), NameError> {
    check(text.len() <= 63 && is_dns_part(text), what, text, DNS_LABEL)
}

/// Validates a DNS-1123 subdomain: names of most objects.
///
/// # Errors
/// Returns the text and the violated rule.
pub fn dns_subdomain(what: &'static str, text: &str) -> Result<(), NameError> {
    check(is_subdomain(text), what, text, DNS_SUBDOMAIN)
}

/// Validates a label key.
///
/// # Errors
/// Returns the text and the violated rule.
pub fn label_key(text: &str) -> Result<(), NameError> {
    check(is_key(text), "label key", text, LABEL_KEY)
}

/// Validates an annotation key, for which the rule of label keys applies.
///
/// # Errors
/// Returns the text and the violated rule.
pub fn annotation_key(text: &str) -> Result<(), NameError> {
    check(is_key(text), "annotation key", text, LABEL_KEY)
}

fn is_key(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_subdomain(prefix) && is_label(name),
        None => is_label(text),
    }
}

/// Validates a label value.
///
/// # Errors
/// Returns the text and the violated rule.
pub fn label_value(text: &str) -> Result<(), NameError> {
    check(
        text.is_empty() || is_label(text),
        "label value",
        text,
        LABEL_VALUE,
    )
}

/// Converts any text to a DNS-1123 label: converts it to lower case, replaces
/// invalid characters by dashes and trims it. A result longer than `limit` (at
/// most 63) is truncated and gets a hash of the whole text, so that different
/// long texts yield different labels.
///
/// ```
/// use longshore_model::name::to_dns_label;
/// assert_eq!(to_dns_label("My Model_v2.", 63), "my-model-v2");
/// assert_ne!(to_dns_label(&"a".repeat(80), 63), to_dns_label(&"a".repeat(81), 63));
/// ```
#[must_use]
pub fn to_dns_label(text: &str, limit: usize) -> String {
    let mut label = String::with_capacity(text.len());
    for c in text.to_lowercase().chars() {
        let c = if c.is_ascii_lowercase() || c.is_ascii_digit() {
            c
        } else {
            '-'
        };
        if !(c == '-' && label.ends_with('-')) {
            label.push(c);
        }
    }
    let label = label.trim_matches('-');
    let limit = limit.clamp(10, 63);
    if label.len() <= limit {
        return if label.is_empty() {
            "x".to_owned()
        } else {
            label.to_owned()
        };
    }
    format!(
        "{}-{}",
        label[..limit - 9].trim_end_matches('-'),
        hash(text)
    )
}

/// Converts any text to a label value. A valid value is unchanged. Otherwise
/// invalid characters are replaced by dashes and the text is trimmed; a text
/// that is too long is truncated and gets a hash of the whole text, so that
/// different long texts yield different values.
///
/// ```
/// use longshore_model::name::to_label_value;
/// assert_eq!(to_label_value("My_Model.v2"), "My_Model.v2");
/// assert_eq!(to_label_value("my first model!"), "my-first-model");
/// assert_ne!(to_label_value(&"a".repeat(80)), to_label_value(&"a".repeat(81)));
/// ```
#[must_use]
pub fn to_label_value(text: &str) -> String {
    const LIMIT: usize = 63;
    let fits = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let value: String = text
        .chars()
        .map(|c| if fits(&c) { c } else { '-' })
        .collect();
    let edge = |c: char| !c.is_ascii_alphanumeric();
    let value = value.trim_matches(edge);
    if value.is_empty() && !text.is_empty() {
        return hash(text);
    }
    if value.len() <= LIMIT {
        return value.to_owned();
    }
    format!(
        "{}-{}",
        value[..LIMIT - 9].trim_end_matches(edge),
        hash(text)
    )
}

/// A hash that distinguishes truncated texts.
fn hash(text: &str) -> String {
    format!("{:08x}", fnv1a(text.as_bytes()) as u32)
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
