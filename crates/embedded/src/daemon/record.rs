//! The record of a running instance: `instance.json`.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{Error, files, layout::Layout};

/// Who runs an instance, since when, and where it serves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The process that runs it.
    pub pid: u32,
    /// When that process began, in the kernel's clock ticks since boot: tells
    /// it from a later process with the same number.
    pub process_start: u64,
    /// When the cluster was ready.
    pub started: jiff::Timestamp,
    /// Where it serves.
    pub url: String,
    /// The kubeconfig that leads there.
    pub kubeconfig: PathBuf,
    /// Whether its objects are in memory only.
    pub ephemeral: bool,
    /// Whether it ends when no command uses it and it has no work.
    pub on_demand: bool,
    /// Whether faults on demand can be had over HTTP.
    #[serde(default)]
    pub faults: bool,
    /// The version of the program that runs it.
    pub version: String,
}

impl Record {
    /// The record on disk, if its process still lives.
    pub(crate) fn read_living(layout: &Layout) -> Result<Option<Self>, Error> {
        let record = files::read_optional(&layout.record())?
            .and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok());
        Ok(record.filter(Self::is_alive))
    }

    pub(crate) fn write(&self, layout: &Layout) -> Result<(), Error> {
        let text = serde_json::to_vec_pretty(self).map_err(Error::part("record"))?;
        files::write_private(&layout.record(), &text)
    }

    /// Whether it stays when no command uses it.
    #[must_use]
    pub fn is_lasting(&self, layout: &Layout) -> bool {
        !self.on_demand || super::usage::is_kept(layout)
    }

    /// Writes the cluster's kubeconfig to another place, too.
    ///
    /// # Errors
    /// The place holds other clusters, is not safe, or cannot be written.
    pub fn copy_kubeconfig(&self, to: &Path) -> Result<(), Error> {
        crate::check_kubeconfig_place(to)?;
        let text = files::read_optional(&self.kubeconfig)?.ok_or_else(|| {
            Error::file("read", &self.kubeconfig)(std::io::ErrorKind::NotFound.into())
        })?;
        longshore_files::replace_output(to, &text)?;
        Ok(())
    }

    /// Whether the very process that wrote the record still lives.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        process_start(self.pid) == Some(self.process_start)
    }
}

/// When a process began, in clock ticks since boot; `None` when it has gone
/// (a zombie has gone).
pub(crate) fn process_start(pid: u32) -> Option<u64> {
    let text =
        std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    parse_stat(&text)
}

/// Field 22 of `/proc/PID/stat`; `None` for a zombie. The program's name, in
/// parentheses, may itself hold spaces and parentheses.
fn parse_stat(text: &str) -> Option<u64> {
    let (_, after_name) = text.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    // State is field 3; 18 fields on is field 22.
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_start_of_a_process_is_read_past_odd_names() {
        let stat = "12 (a) b (c) S 1 12 12 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2 3";
        assert_eq!(parse_stat(stat), Some(98765));
        assert_eq!(parse_stat(&stat.replace(") S ", ") Z ")), None);
        assert_eq!(parse_stat("garbage"), None);
    }

    #[test]
    fn a_record_of_another_process_with_the_same_number_is_dead() {
        let pid = std::process::id();
        let mut record = Record {
            pid,
            process_start: process_start(pid).unwrap(),
            started: jiff::Timestamp::UNIX_EPOCH,
            url: "https://127.0.0.1:1".into(),
            kubeconfig: "/k".into(),
            ephemeral: false,
            on_demand: false,
            faults: false,
            version: "0".into(),
        };
        assert!(record.is_alive());
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        assert_eq!(Record::read_living(&layout).unwrap(), None);
        record.write(&layout).unwrap();
        assert_eq!(
            Record::read_living(&layout).unwrap().as_ref(),
            Some(&record)
        );
        record.process_start += 1;
        record.write(&layout).unwrap();
        assert_eq!(Record::read_living(&layout).unwrap(), None);
    }
}
