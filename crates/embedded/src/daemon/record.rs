//! The record of a running instance: `instance.json`.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{Error, files, layout::Layout, process};

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
        !self.on_demand || layout.is_kept()
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
        process::start_ticks(self.pid) == Some(self.process_start)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_record_of_another_process_with_the_same_number_is_dead() {
        let pid = std::process::id();
        let mut record = Record {
            pid,
            process_start: process::start_ticks(pid).unwrap(),
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
