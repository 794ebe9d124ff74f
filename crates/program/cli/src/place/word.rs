//! Parses the notation of runs, tasks and pods. Pure.

use crate::error::{Error, Result};

/// A parsed reference to a run, task or pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Word<'a> {
    /// `pod/NAME`.
    Pod(&'a str),
    /// `RUN/ROLE` or `RUN/ROLE/INDEX`; in a run of one role, also `RUN/INDEX`.
    Task {
        run: &'a str,
        role: &'a str,
        index: Option<u32>,
    },
    /// A run, a pod, or the host name of a task.
    Name(&'a str),
}

impl<'a> Word<'a> {
    pub(crate) fn parse(text: &'a str) -> Result<Self> {
        let wrong = || {
            Error::usage(format!("{text:?} names no run, task or pod"))
                .hint("write RUN, RUN/ROLE/INDEX or pod/NAME")
        };
        let parts: Vec<&str> = text.split('/').collect();
        if parts.iter().any(|part| part.is_empty()) {
            return Err(wrong());
        }
        match parts[..] {
            [name] => Ok(Self::Name(name)),
            ["po" | "pod" | "pods", name] => Ok(Self::Pod(name)),
            [run, role] => Ok(Self::Task {
                run,
                role,
                index: None,
            }),
            [run, role, index] => {
                let index = index.parse().map_err(|_| wrong())?;
                Ok(Self::Task {
                    run,
                    role,
                    index: Some(index),
                })
            }
            _ => Err(wrong()),
        }
    }
}

/// Returns true if the text before a colon is `RUN`, `RUN/ROLE`, `RUN/ROLE/INDEX` or `pod/NAME`,
/// and not a path, which begins with `.`, `/` or `~`, or has parts that are not valid names.
pub(crate) fn looks_like_a_task(text: &str) -> bool {
    let is_name = |part: &str| {
        let mut letters = part.chars();
        let first = letters.next();
        first.is_some_and(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit())
            && letters.all(|letter| {
                letter.is_ascii_lowercase()
                    || letter.is_ascii_digit()
                    || matches!(letter, '-' | '.')
            })
    };
    let parts: Vec<&str> = text.split('/').collect();
    let ends_as_a_task = match parts[..] {
        [_, _, index] => index.parse::<u32>().is_ok(),
        _ => parts.len() < 3,
    };
    ends_as_a_task && parts.iter().all(|part| is_name(part))
}

/// Job and index in the host name of a task.
pub(super) fn host(word: &str) -> Option<(&str, &str)> {
    let host = word.split('.').next()?;
    let (job, index) = host.rsplit_once('-')?;
    let number = index.parse::<u32>().ok()?;
    (!job.is_empty() && number.to_string() == index).then_some((job, index))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn references_are_parsed() {
        assert_eq!(Word::parse("digits").unwrap(), Word::Name("digits"));
        assert_eq!(Word::parse("pod/web").unwrap(), Word::Pod("web"));
        assert_eq!(Word::parse("po/web").unwrap(), Word::Pod("web"));
        let task = |index| Word::Task {
            run: "last",
            role: "worker",
            index,
        };
        assert_eq!(Word::parse("last/worker").unwrap(), task(None));
        assert_eq!(Word::parse("last/worker/3").unwrap(), task(Some(3)));
        for wrong in [
            "",
            "/",
            "a/",
            "/a",
            "a//0",
            "a/b/c",
            "a/b/-1",
            "a/b/0/c",
            "a/b/99999999999",
        ] {
            assert!(Word::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_and_paths_are_distinguished() {
        for name in [
            "web",
            "digits-x7k2p/worker/0",
            "last/worker",
            "pod/web",
            "train-0.train",
        ] {
            assert!(looks_like_a_task(name), "{name}");
        }
        for path in [
            "", "./web", "../web", "/web", "~/web", "a/b/c", "a//0", "C", "a_b", "a/b/0/d",
        ] {
            assert!(!looks_like_a_task(path), "{path}");
        }
    }

    #[test]
    fn host_names_of_tasks() {
        assert_eq!(host("train-worker-0"), Some(("train-worker", "0")));
        assert_eq!(host("train-12.train"), Some(("train", "12")));
        for word in ["web", "web-7d4b9", "web-01", "-1", "web-", "", "train.x-0"] {
            assert_eq!(host(word), None, "{word}");
        }
    }
}
