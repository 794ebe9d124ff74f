//! Paths in containers. They are Linux paths.

/// Splits a path into its parent and its file name.
pub(super) fn split(path: &str) -> Result<(&str, &str), &'static str> {
    if path.contains('\0') {
        return Err("the path contains a null byte");
    }
    let trimmed = path.trim_end_matches('/');
    let (parent, name) = match trimmed.rsplit_once('/') {
        Some(("", name)) => ("/", name),
        Some((parent, name)) => (parent, name),
        None => (".", trimmed),
    };
    match name {
        "" | "." | ".." => {
            Err("the path does not end with a name: specify the file or folder itself")
        }
        name => Ok((parent, name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_a_parent_and_a_name() {
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
