//! Paths in containers, which are Linux's.

/// The folder above a path, and the name in it.
pub(super) fn split(path: &str) -> Result<(&str, &str), &'static str> {
    if path.contains('\0') {
        return Err("no path has a zero byte");
    }
    let trimmed = path.trim_end_matches('/');
    let (parent, name) = match trimmed.rsplit_once('/') {
        Some(("", name)) => ("/", name),
        Some((parent, name)) => (parent, name),
        None => (".", trimmed),
    };
    match name {
        "" | "." | ".." => Err("name the file or folder itself: the path's last part is no name"),
        name => Ok((parent, name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_a_folder_and_a_name() {
        for (path, parts) in [
            ("/data/out.csv", ("/data", "out.csv")),
            ("/data/", ("/", "data")),
            ("data", (".", "data")),
            ("a/b//", ("a", "b")),
            ("-rf", (".", "-rf")),
        ] {
            assert_eq!(split(path), Ok(parts));
        }
        for path in ["", "/", "//", ".", "a/..", "a/./", "a\0b"] {
            assert!(split(path).is_err(), "{path}");
        }
    }
}
