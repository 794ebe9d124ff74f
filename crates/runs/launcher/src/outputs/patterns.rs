//! Patterns of files to keep. Pure.

use globset::{Glob, GlobBuilder, GlobMatcher, GlobSet, GlobSetBuilder};

use super::path::is_plain;

/// The maximum length of a pattern in bytes.
const LONGEST: usize = 1_024;

/// Checks a pattern: a path relative to the task's folder, with `*`, `?`, `[…]`, `{…}` within a
/// name and `**` for any folders.
///
/// # Errors
/// The violated rule.
pub fn check_pattern(pattern: &str) -> Result<(), String> {
    let path = trimmed(pattern);
    if path.is_empty() || pattern.len() > LONGEST {
        return Err(format!("use 1 to {LONGEST} bytes"));
    }
    if !is_plain(path) {
        return Err(
            "use a path in the folder of the code, without a leading / and without .., as in checkpoints/** or *.json"
                .to_owned(),
        );
    }
    glob(path)
        .map(drop)
        .map_err(|error| error.kind().to_string())
}

/// A pattern without meaningless parts: a leading `./` and a trailing `/`.
fn trimmed(pattern: &str) -> &str {
    let path = pattern.strip_prefix("./").unwrap_or(pattern);
    path.strip_suffix('/').unwrap_or(path)
}

fn glob(pattern: &str) -> Result<Glob, globset::Error> {
    GlobBuilder::new(pattern)
        .literal_separator(true)
        .backslash_escape(true)
        .build()
}

/// Compiled patterns.
#[derive(Debug)]
pub(super) struct Patterns {
    files: GlobSet,
    folders: Vec<Vec<Part>>,
}

/// A part of a pattern between slashes.
#[derive(Debug)]
enum Part {
    /// A pattern for a single name.
    Name(GlobMatcher),
    /// Any names, including several folders.
    Any,
}

impl Patterns {
    /// Compiles patterns. A pattern that matches a folder also matches everything in it.
    pub(super) fn new(patterns: &[String]) -> Result<Self, globset::Error> {
        let mut files = GlobSetBuilder::new();
        let mut folders = Vec::new();
        for pattern in patterns {
            let pattern = trimmed(pattern);
            files.add(glob(pattern)?);
            files.add(glob(&format!("{pattern}/**"))?);
            folders.push(parts(pattern));
        }
        Ok(Self {
            files: files.build()?,
            folders,
        })
    }

    /// Returns true if a file is to be kept.
    pub(super) fn has(&self, path: &str) -> bool {
        self.files.is_match(path)
    }

    /// Returns true if files in a folder may be kept. Other folders need not be read.
    pub(super) fn may_be_in(&self, folder: &str) -> bool {
        self.folders.iter().any(|parts| {
            let mut parts = parts.iter();
            for name in folder.split('/') {
                match parts.next() {
                    Some(Part::Name(glob)) if glob.is_match(name) => {}
                    Some(Part::Name(_)) => return false,
                    // The pattern matches a parent folder.
                    Some(Part::Any) | None => return true,
                }
            }
            true
        })
    }
}

fn parts(pattern: &str) -> Vec<Part> {
    // Braces and brackets may contain slashes.
    if pattern.contains(['{', '[', '\\']) {
        return vec![Part::Any];
    }
    let part = |name: &str| match glob(name) {
        Ok(glob) if !name.contains("**") => Part::Name(glob.compile_matcher()),
        _ => Part::Any,
    };
    pattern.split('/').map(part).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn patterns(patterns: &[&str]) -> Patterns {
        let patterns: Vec<String> = patterns.iter().map(|&text| text.to_owned()).collect();
        Patterns::new(&patterns).unwrap()
    }

    #[test]
    fn a_star_does_not_match_a_slash_and_a_folder_includes_its_files() {
        let found = patterns(&["*.json", "checkpoints", "./logs/", "a/**/z.bin"]);
        for path in [
            "m.json",
            "checkpoints/1/model.bin",
            "logs/a",
            "a/z.bin",
            "a/b/c/z.bin",
        ] {
            assert!(found.has(path), "{path}");
        }
        for path in ["sub/m.json", "checkpoints2/x", "b/z.bin", "m.jsonl"] {
            assert!(!found.has(path), "{path}");
        }
    }

    #[test]
    fn folders_that_no_pattern_can_match_are_not_read() {
        let found = patterns(&["*.json", "run-*/out/**"]);
        for folder in ["run-1", "run-1/out", "run-1/out/a/b"] {
            assert!(found.may_be_in(folder), "{folder}");
        }
        for folder in ["node_modules", "run-1/src", "run-1/src/out"] {
            assert!(!found.may_be_in(folder), "{folder}");
        }
        // A name that matches the pattern of a file may be a folder.
        assert!(found.may_be_in("a.json"));
        assert!(patterns(&["**/*.json"]).may_be_in("any/where"));
        assert!(patterns(&["{a/b,c}/x"]).may_be_in("a/b"));
    }

    #[test]
    fn patterns_stay_in_the_folder() {
        for right in ["*.json", "a/b/**", "./a", "out/", "**"] {
            assert_eq!(check_pattern(right), Ok(()), "{right}");
        }
        for wrong in [
            "", "/", "/tmp/*", "../x", "a/../b", "a//b", "a/./b", "a\nb", "[", "{a",
        ] {
            assert!(check_pattern(wrong).is_err(), "{wrong:?}");
        }
    }
}
