//! Detects changes of the folder's `longshore.toml`: the run keeps the settings that it was started
//! with.

use std::path::{Path, PathBuf};

use longshore::launcher::Settings;

/// The settings of a run, and the current settings of its folder.
pub(super) struct FolderSettings {
    folder: PathBuf,
    used: Settings,
    seen: Settings,
}

impl FolderSettings {
    /// Reads the settings at the start of a session. Blocks.
    pub(super) fn read(folder: &Path) -> Self {
        let used = Settings::load(folder).unwrap_or_default();
        Self {
            folder: folder.to_owned(),
            seen: used.clone(),
            used,
        }
    }

    /// Reads the settings again. After a change, returns a warning that names the settings that
    /// differ from the run's. A file with errors may be half written, and is read again with the
    /// next change. Blocks.
    pub(super) fn changed(&mut self) -> Option<String> {
        let now = Settings::load(&self.folder).ok()?;
        if now.changed_keys(&self.seen).is_empty() {
            return None;
        }
        let keys = now.changed_keys(&self.used);
        self.seen = now;
        let names: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
        let changed = match &*names {
            [] => return None,
            [name] => format!("{name} has changed"),
            names => format!("{} have changed", names.join(", ")),
        };
        Some(format!(
            "{changed} in longshore.toml, but the run keeps its settings: end it, and start `longshore dev` again to use the new ones"
        ))
    }
}
