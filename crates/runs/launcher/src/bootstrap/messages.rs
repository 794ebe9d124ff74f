//! Messages of the bootstrap: lines in the task's log, and the termination message of the
//! container, which the cluster shows in its status.

use std::{fs, io::Write as _, path::Path};

use longshore_diagnosis::names;

use super::BootstrapError;

/// The possible termination message files of a container: of the commands of the embedded cluster's
/// tasks, and of other containers.
pub(super) const TERMINATION_MESSAGES: [&str; 2] =
    [names::TERMINATION_FILE, "/dev/termination-log"];

/// A line in the task's log.
#[expect(clippy::print_stderr, reason = "the log of a task is its output")]
pub(super) fn tell(line: &str) {
    eprintln!("longshore: {line}");
}

/// Writes the error, if there is one, to the termination message. Only the container runtime
/// creates the file; without it, the log still contains the error.
pub(super) fn with_termination_message<T>(
    result: Result<T, BootstrapError>,
) -> Result<T, BootstrapError> {
    if let Err(error) = &result {
        write(&TERMINATION_MESSAGES.map(Path::new), error);
    }
    result
}

/// Writes the error to the first file that exists.
fn write(files: &[&Path], error: &BootstrapError) {
    let open = |path: &&Path| {
        let mut options = fs::OpenOptions::new();
        options.write(true).truncate(true).open(path).ok()
    };
    if let Some(mut file) = files.iter().find_map(open) {
        let _ = file.write_all(format!("longshore: {error}").as_bytes());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_error_replaces_the_first_file_that_exists() {
        let folder = tempfile::tempdir().unwrap();
        let files = ["missing", "first", "second"].map(|name| folder.path().join(name));
        let paths = files.each_ref().map(std::path::PathBuf::as_path);
        let error = BootstrapError::Variable {
            name: "A",
            problem: "is missing".to_owned(),
        };
        fs::write(paths[1], "x".repeat(1000)).unwrap();
        fs::write(paths[2], "").unwrap();
        write(&paths, &error);
        let written = fs::read_to_string(paths[1]).unwrap();
        assert_eq!(written, format!("longshore: {error}"));
        assert_eq!(fs::read_to_string(paths[2]).unwrap(), "");
        assert!(!paths[0].exists());
    }
}
