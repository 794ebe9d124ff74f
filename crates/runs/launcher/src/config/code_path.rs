//! Paths of data and volumes in the folder of the code.

use std::path::{Component, Path};

use longshore_diagnosis::names;

/// The rule of these paths.
pub(super) const RULE: &str = "give an absolute path, or a path in the folder of the code, as in data/raw, without `..` and `:`";

/// Converts a path in the folder of the code to `data/raw`, from `./data/raw` or
/// `/longshore/work/data/raw`. `None` for other absolute paths.
///
/// # Errors
/// The rule that the path violates.
pub(super) fn in_code(path: &str) -> Result<Option<String>, &'static str> {
    let path = Path::new(path);
    let path = match path.strip_prefix(names::WORK) {
        Ok(below) if below.as_os_str().is_empty() => return Ok(None),
        Ok(below) => below,
        Err(_) if path.is_absolute() => return Ok(None),
        Err(_) => path,
    };
    let mut clean = Vec::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::Normal(name) => clean.extend(name.to_str()),
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(RULE),
        }
    }
    let clean = clean.join("/");
    match clean.is_empty() || clean.contains(':') {
        true => Err(RULE),
        false => Ok(Some(clean)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_in_the_folder_of_the_code_are_relative() {
        for (path, expected) in [
            ("data", Ok(Some("data"))),
            ("./data/raw/", Ok(Some("data/raw"))),
            ("a/./b", Ok(Some("a/b"))),
            ("/longshore/work/data", Ok(Some("data"))),
            ("/data", Ok(None)),
            ("/longshore/worker", Ok(None)),
            ("/longshore/work", Ok(None)),
            ("/longshore/work/../x", Err(RULE)),
            ("", Err(RULE)),
            (".", Err(RULE)),
            ("../data", Err(RULE)),
            ("a/../b", Err(RULE)),
            ("a:b", Err(RULE)),
        ] {
            let found = in_code(path);
            let found = found.as_ref().map(Option::as_deref).map_err(|rule| *rule);
            assert_eq!(found, expected, "{path}");
        }
    }
}
