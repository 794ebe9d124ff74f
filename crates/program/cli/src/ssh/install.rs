//! Adds the hosts of tasks to the configuration of the user's OpenSSH.

use std::{
    fs::{self, Permissions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use super::options::file;
use crate::error::{Error, Kind, Result};

/// Writes the block to a separate file, and includes the folder of this file in `config`, whose
/// other lines are not changed. Returns the file, and true if `config` has changed.
pub(crate) fn install(
    block: &str,
    folder: &Path,
    suffix: &str,
    config: &Path,
) -> Result<(PathBuf, bool)> {
    let failed = |error: longshore_files::Error| Error::from_source(Kind::Failed, &error);
    longshore_files::private_dir(folder).map_err(failed)?;
    let path = folder.join(suffix);
    let text =
        format!("# Written by `longshore ssh --install`, which replaces this file.\n{block}");
    longshore_files::replace_output(&path, text.as_bytes()).map_err(failed)?;
    let line = format!("Include {}\n", file(&folder.join("*")));
    let changed = include(&line, config).map_err(|error| {
        let message = format!("cannot add the hosts to {}: {error}", config.display());
        Error::new(Kind::Failed, message).hint(format!("add this line at its begin: {line}"))
    })?;
    Ok((path, changed))
}

/// Adds a line at the beginning of a file, if the file does not have it. After a line `Host`, it
/// would apply only to these hosts.
fn include(line: &str, config: &Path) -> io::Result<bool> {
    // A link to a file elsewhere is kept.
    let config = match fs::canonicalize(config) {
        Ok(path) => path,
        Err(error) if error.kind() == io::ErrorKind::NotFound => config.to_owned(),
        Err(error) => return Err(error),
    };
    let folder = config.parent().unwrap_or(Path::new("."));
    let (before, mode) = match fs::read(&config) {
        Ok(content) => (content, fs::metadata(&config)?.permissions().mode()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => (Vec::new(), 0o600),
        Err(error) => return Err(error),
    };
    let has_line = before
        .split(|byte| *byte == b'\n')
        .any(|known| known.trim_ascii() == line.trim_ascii().as_bytes());
    if has_line {
        return Ok(false);
    }
    if !folder.exists() {
        fs::DirBuilder::new().mode(0o700).create(folder)?;
    }
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    new.write_all(line.as_bytes())?;
    new.write_all(&before)?;
    new.as_file()
        .set_permissions(Permissions::from_mode(mode & 0o777))?;
    new.as_file().sync_all()?;
    new.persist(&config).map_err(|error| error.error)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_lines_of_the_user_stay_and_the_line_is_added_once() {
        let home = tempfile::tempdir().unwrap();
        let (config, real) = (home.path().join("config"), home.path().join("dotfile"));
        fs::write(&real, "Host a\n  User b").unwrap();
        fs::set_permissions(&real, Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&real, &config).unwrap();
        let line = "Include \"/x/*\"\n";
        assert!(include(line, &config).unwrap());
        assert!(!include(line, &config).unwrap());
        let text = fs::read_to_string(&real).unwrap();
        assert_eq!(text, "Include \"/x/*\"\nHost a\n  User b");
        assert!(fs::symlink_metadata(&config).unwrap().is_symlink());
        let mode = fs::metadata(&real).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        // A new file.
        let config = home.path().join("new/config");
        assert!(include(line, &config).unwrap());
        assert_eq!(fs::read_to_string(&config).unwrap(), line);
        let mode = fs::metadata(config).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
