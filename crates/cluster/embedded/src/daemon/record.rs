//! The record of a running instance, in the file `instance.json`.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{
    Error,
    files::{self, Durability},
    layout::Layout,
    process,
};

/// The process that runs an instance, and its endpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The process ID.
    pub pid: u32,
    /// The time at which the process started, in clock ticks since boot. It distinguishes the
    /// process from a later one with the same ID.
    pub process_start: u64,
    /// The time at which the cluster became ready.
    pub started: jiff::Timestamp,
    /// The URL of the endpoint.
    pub url: String,
    /// The path of the kubeconfig.
    pub kubeconfig: PathBuf,
    /// True if objects are stored in memory only.
    pub ephemeral: bool,
    /// True if the cluster stops when no command uses it and it has no work.
    pub on_demand: bool,
    /// True if fault injection is served over HTTP.
    #[serde(default)]
    pub faults: bool,
    /// True if the cluster has a manual clock, which is advanced over HTTP.
    #[serde(default)]
    pub manual_clock: bool,
    /// The number of nodes.
    #[serde(default = "one_node")]
    pub nodes: u8,
    /// The authorization mode: `RBAC` or `AlwaysAllow`.
    #[serde(default)]
    pub authorization_mode: String,
    /// The file of the audit log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit_log: Option<PathBuf>,
    /// Problems of the start, as sentences: the objects of the folder's last cluster are missing,
    /// or webhooks refuse the cluster's own objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The version of the program that runs the cluster.
    pub version: String,
}

/// The number of nodes of clusters whose record does not contain a number.
const fn one_node() -> u8 {
    1
}

impl Record {
    /// Reads the record; `None` if its process has exited.
    pub(crate) fn read_alive(layout: &Layout) -> Result<Option<Self>, Error> {
        let record = files::read_optional(&layout.record())?
            .and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok());
        Ok(record.filter(Self::is_alive))
    }

    pub(crate) fn write(&self, layout: &Layout) -> Result<(), Error> {
        let text = serde_json::to_vec_pretty(self).map_err(Error::part("record"))?;
        // A process's record has no use after the machine has stopped.
        files::write_private(&layout.record(), &text, Durability::Volatile)
    }

    /// Returns true if the cluster keeps running when no command uses it.
    #[must_use]
    pub fn is_lasting(&self, layout: &Layout) -> bool {
        !self.on_demand || layout.is_kept()
    }

    /// Writes the cluster's kubeconfig to an additional path.
    ///
    /// # Errors
    /// The file contains other clusters, is not safe to use, or cannot be written.
    pub fn copy_kubeconfig(&self, to: &Path) -> Result<(), Error> {
        crate::check_kubeconfig_place(to)?;
        let text = files::read_optional(&self.kubeconfig)?.ok_or_else(|| {
            Error::file("read", &self.kubeconfig)(std::io::ErrorKind::NotFound.into())
        })?;
        longshore_files::replace_output(to, &text)?;
        Ok(())
    }

    /// Returns true if the process that wrote the record is still running.
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
    fn a_record_of_another_process_with_the_same_id_is_ignored() {
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
            manual_clock: false,
            nodes: 1,
            authorization_mode: "RBAC".into(),
            audit_log: None,
            warnings: Vec::new(),
            version: "0".into(),
        };
        assert!(record.is_alive());
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        assert_eq!(Record::read_alive(&layout).unwrap(), None);
        record.write(&layout).unwrap();
        assert_eq!(Record::read_alive(&layout).unwrap().as_ref(), Some(&record));
        record.process_start += 1;
        record.write(&layout).unwrap();
        assert_eq!(Record::read_alive(&layout).unwrap(), None);
    }
}
