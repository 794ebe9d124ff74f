//! Installs this program for containers whose image does not contain it.

use std::{fs, path::Path};

use super::{BootstrapError, messages::with_termination_message};

/// Copies this program into a folder, for containers whose image does not contain it.
///
/// # Errors
/// The folder cannot be written.
pub fn install(folder: &Path) -> Result<(), BootstrapError> {
    let result = (|| {
        let target = folder.join("longshore");
        let write = |source| BootstrapError::Write {
            path: target.clone(),
            source,
        };
        let program = std::env::current_exe().map_err(write)?;
        fs::create_dir_all(folder).map_err(write)?;
        fs::copy(program, &target).map(drop).map_err(write)
    })();
    with_termination_message(result)
}
