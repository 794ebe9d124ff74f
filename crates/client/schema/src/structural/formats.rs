//! String formats that API servers validate. Unknown formats, and formats
//! without constraints, match everything.

use std::{net::IpAddr, sync::OnceLock};

use regex::Regex;

/// Formats that a regular expression validates.
#[rustfmt::skip]
static PATTERNS: &[(&str, &str)] = &[
    ("bsonobjectid", r"^[0-9a-fA-F]{24}$"),
    ("uuid", r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$"),
    ("uuid3", r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$"),
    ("uuid4", r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$"),
    ("uuid5", r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$"),
    ("ssn", r"^\d{3}[- ]?\d{2}[- ]?\d{4}$"),
    ("hexcolor", r"^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
    ("rgbcolor", r"^rgb\(\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*\)$"),
    ("hostname", r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$"),
    ("email", r#"^([^<>()\[\]\\.,;:\s@"]+(\.[^<>()\[\]\\.,;:\s@"]+)*|"[^"]*")@[^\s@<>()\[\]]+$"#),
    ("mac", r"^([0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}|[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){7}|[0-9A-Fa-f]{4}(\.[0-9A-Fa-f]{4}){2,3})$"),
    ("creditcard", r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})$"),
    ("k8sshortname", r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"),
    ("k8slongname", r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"),
    // Go durations extended by days and weeks, and Scala's names of units.
    ("duration", r"^\s*([+-]?(0|((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h|d|w))+)|\d+\s*(ns|nanos?|nanoseconds?|us|µs|micros?|microseconds?|ms|millis?|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?))\s*$"),
];

fn pattern(format: &str) -> Option<&'static Regex> {
    static COMPILED: OnceLock<Vec<Option<Regex>>> = OnceLock::new();
    let index = PATTERNS.iter().position(|(name, _)| *name == format)?;
    let compiled = COMPILED.get_or_init(|| {
        let compile = |(_, text): &(&str, &str)| Regex::new(text).ok();
        PATTERNS.iter().map(compile).collect()
    });
    compiled.get(index)?.as_ref()
}

/// Returns true if a text matches a format.
pub(super) fn fits(format: &str, text: &str) -> bool {
    let format = format.replace('-', "");
    match format.as_str() {
        "datetime" => is_date_time(text),
        "date" => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
        "ipv4" => text.parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv4()),
        "ipv6" => text.parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv6()),
        "cidr" => is_cidr(text),
        "uri" => is_uri(text),
        "byte" => {
            use base64::{Engine as _, engine::general_purpose::STANDARD};
            STANDARD.decode(text).is_ok()
        }
        "isbn" => is_isbn10(&isbn(text)) || is_isbn13(&isbn(text)),
        "isbn10" => is_isbn10(&isbn(text)),
        "isbn13" => is_isbn13(&isbn(text)),
        "creditcard" => {
            let digits: String = text.chars().filter(char::is_ascii_digit).collect();
            pattern(&format).is_none_or(|pattern| pattern.is_match(&digits))
        }
        "k8slongname" if text.len() > 253 => false,
        _ => pattern(&format).is_none_or(|pattern| pattern.is_match(text)),
    }
}

fn is_date_time(text: &str) -> bool {
    let long = text.len() >= 20 && text.is_ascii();
    long && matches!(text.as_bytes()[10], b'T' | b't') && text.parse::<jiff::Timestamp>().is_ok()
}

fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let most = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    let digits = !length.is_empty() && length.bytes().all(|b| b.is_ascii_digit());
    digits && length.parse::<u16>().is_ok_and(|length| length <= most)
}

/// An absolute URI with a scheme, or an absolute path.
fn is_uri(text: &str) -> bool {
    if text.chars().any(|c| c.is_control() || c == ' ') || text.is_empty() {
        return false;
    }
    let scheme = text.split_once(':').map(|(scheme, _)| scheme);
    text.starts_with('/')
        || scheme.is_some_and(|scheme| {
            scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
        })
}

fn isbn(text: &str) -> Vec<u8> {
    text.bytes().filter(|b| !matches!(b, b' ' | b'-')).collect()
}

fn is_isbn10(text: &[u8]) -> bool {
    let digit = |(index, byte): (usize, &u8)| match byte {
        b'0'..=b'9' => Some(u32::from(byte - b'0')),
        b'X' if index == 9 => Some(10),
        _ => None,
    };
    let digits: Option<Vec<u32>> = text.iter().enumerate().map(digit).collect();
    digits.is_some_and(|digits| {
        let sum: u32 = (1..)
            .zip(&digits)
            .map(|(weight, digit)| weight * digit)
            .sum();
        digits.len() == 10 && sum.is_multiple_of(11)
    })
}

fn is_isbn13(text: &[u8]) -> bool {
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| u32::from(byte - b'0'));
    let digits: Option<Vec<u32>> = text.iter().map(digit).collect();
    digits.is_some_and(|digits| {
        let weights = [1, 3].into_iter().cycle();
        let sum: u32 = weights
            .zip(&digits)
            .map(|(weight, digit)| weight * digit)
            .sum();
        digits.len() == 13 && sum.is_multiple_of(10)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        for (name, _) in PATTERNS {
            assert!(pattern(name).is_some(), "{name}");
        }
    }

    #[test]
    fn formats_match_only_valid_text() {
        for (format, right, wrong) in [
            ("date-time", "2026-01-02T03:04:05.6Z", "2026-01-02"),
            ("date", "2026-01-02", "2026-01-02T03:04:05Z"),
            ("ipv4", "10.0.0.1", "10.0.0"),
            ("ipv6", "::1", "10.0.0.1"),
            ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
            ("uuid", "6a2f41a3-c54c-fce8-32d2-0324e1c32e22", "6a2f41a3"),
            ("uri", "https://a.example/x", "no uri"),
            ("email", "a.b@example.com", "a.b"),
            ("hostname", "a.example.com", "a_b..c"),
            ("mac", "01:23:45:67:89:ab", "01:23"),
            ("byte", "aGk=", "a"),
            ("duration", "1h30m", "soon"),
            ("isbn", "0321751043", "0321751044"),
            ("isbn13", "978-0321751041", "978-0321751042"),
            ("hexcolor", "#FFF", "#FF"),
            ("k8s-short-name", "a-1", "A"),
        ] {
            assert!(fits(format, right), "{format}: {right}");
            assert!(!fits(format, wrong), "{format}: {wrong}");
        }
        assert!(fits("shoe-size", "anything") && fits("password", ""));
    }
}
