//! The host names of tasks: `RUN.longshore` and `RUN.ROLE.INDEX.longshore`. Pure.

use crate::error::{Error, Result};

/// The default last part of the names.
pub(crate) const SUFFIX: &str = "longshore";

/// Returns the name of a task as other commands accept it, `RUN/ROLE/INDEX`, from its host name or
/// from such a name.
pub(crate) fn place(host: &str, suffix: &str) -> Result<String> {
    let name = host.strip_suffix('.').unwrap_or(host);
    let name = name
        .strip_suffix(suffix)
        .and_then(|name| name.strip_suffix('.'))
        .unwrap_or(name);
    let separator = if name.contains('/') { '/' } else { '.' };
    let parts: Vec<&str> = name.split(separator).collect();
    let is_valid = (1..=3).contains(&parts.len()) && parts.iter().all(|part| is_label(part));
    match is_valid {
        true => Ok(parts.join("/")),
        false => Err(
            Error::usage(format!("the host name {host:?} names no task of a run")).hint(format!(
                "write RUN.{suffix} or RUN.ROLE.INDEX.{suffix}, as in last.worker.0.{suffix}"
            )),
        ),
    }
}

/// The host name of a task.
pub(crate) fn host(place: &str, suffix: &str) -> Result<String> {
    let place = self::place(place, suffix)?;
    Ok(format!("{}.{suffix}", place.replace('/', ".")))
}

/// Parses the last part of the names.
pub(crate) fn parse_suffix(text: &str) -> Result<String, String> {
    match text.split('.').all(is_label) {
        true => Ok(text.to_owned()),
        false => Err("expected lower-case letters, digits, dashes and dots".to_owned()),
    }
}

fn is_label(text: &str) -> bool {
    let is_letter =
        |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'-';
    !text.is_empty() && text.len() <= 63 && !text.starts_with('-') && text.bytes().all(is_letter)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn host_names_are_names_of_tasks() {
        for (name, expected) in [
            ("last.longshore", "last"),
            ("digits-x7k2p.worker.1.longshore", "digits-x7k2p/worker/1"),
            ("digits-x7k2p.1.longshore.", "digits-x7k2p/1"),
            ("digits-x7k2p", "digits-x7k2p"),
            ("digits-x7k2p/worker/1", "digits-x7k2p/worker/1"),
            ("longshore.longshore", "longshore"),
        ] {
            assert_eq!(place(name, SUFFIX).unwrap(), expected, "{name}");
        }
        assert_eq!(place("a.b.0.gpu.lab", "gpu.lab").unwrap(), "a/b/0");
        assert_eq!(host("a/b/0", "gpu.lab").unwrap(), "a.b.0.gpu.lab");
        assert_eq!(host("last", SUFFIX).unwrap(), "last.longshore");
    }

    #[test]
    fn other_names_are_refused() {
        for name in [
            "",
            ".",
            ".longshore",
            "longshore.",
            "a..longshore",
            "a.b.c.d.longshore",
            "A.longshore",
            "$(id).longshore",
            "a b",
            "-oProxyCommand=x",
            "a/b/c/d",
            "a/",
            "/a",
            "a'b",
            "a\n",
            "é.longshore",
        ] {
            // The name of a run may be the suffix.
            if name != "longshore." {
                assert!(place(name, SUFFIX).is_err(), "{name}");
            }
        }
        for suffix in ["", ".", "a.", "*", "A", "a b", "-a"] {
            assert!(parse_suffix(suffix).is_err(), "{suffix}");
        }
    }

    #[test]
    fn random_names_are_refused_or_consist_of_labels() {
        let letters: Vec<char> = "ab0-./'$ \n*é\u{0}".chars().collect();
        let mut state: u32 = 11;
        for _ in 0..20_000 {
            let mut name = String::new();
            for _ in 0..state % 12 {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                name.push(letters[(state >> 16) as usize % letters.len()]);
            }
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if let Ok(place) = place(&name, SUFFIX) {
                assert!(place.split('/').all(is_label), "{name:?}");
                let again = host(&place, SUFFIX).unwrap();
                assert_eq!(self::place(&again, SUFFIX).unwrap(), place, "{name:?}");
            }
        }
    }
}
