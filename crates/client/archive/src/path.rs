//! Checks that paths and links stay within a folder.

use std::path::{Component, Path, PathBuf};

/// Returns true if a link at `link` (relative to a root) that points to `target` stays within the
/// root, even in combination with other links for which this is true.
///
/// `target` may have `..` only at its beginning. After a name that is itself a link, `..`
/// would be relative to the target of that link.
///
/// ```
/// use longshore_archive::is_confined;
/// use std::path::Path;
/// assert!(is_confined(Path::new("a/link"), Path::new("../b/c")));
/// assert!(!is_confined(Path::new("a/link"), Path::new("../../b")));
/// assert!(!is_confined(Path::new("a/link"), Path::new("b/../c")));
/// assert!(!is_confined(Path::new("a/link"), Path::new("/etc")));
/// ```
#[must_use]
pub fn is_confined(link: &Path, target: &Path) -> bool {
    let mut depth = link.components().count().saturating_sub(1);
    let mut names = false;
    for part in target.components() {
        match part {
            Component::ParentDir if names || depth == 0 => return false,
            Component::ParentDir => depth -= 1,
            Component::Normal(_) => names = true,
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    !target.as_os_str().is_empty()
}

/// The path without `.`.
///
/// # Errors
/// The path leads out of the folder.
pub fn clean(path: &Path) -> Result<PathBuf, &'static str> {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => clean.push(name),
            Component::CurDir => {}
            Component::ParentDir => return Err("has `..` in its path"),
            Component::RootDir | Component::Prefix(_) => return Err("has an absolute path"),
        }
    }
    Ok(clean)
}
