//! The disk usage of the embedded cluster's code, and of its logs of deleted pods.

use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use longshore::launcher::{
    data::DataCache,
    kept::{Kept, Limit, Usage},
    outputs::{Outputs, OutputsUsage},
};
use longshore_embedded::{KeptLogs, Layout};
use serde_json::{Value, json};

use crate::ui;

/// The timeout for measuring volumes, which may have millions of files.
const MEASURE_TIMEOUT: Duration = Duration::from_secs(2);

/// The disk usage of code and logs.
pub(crate) struct DiskUsage {
    kept: Usage,
    limit: Limit,
    volumes: Measured,
    outputs: OutputsUsage,
    /// The size of the data of tasks in bytes.
    data: u64,
    /// The logs of deleted pods.
    logs: KeptLogs,
}

/// The size of a folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Measured {
    bytes: u64,
    /// True if all files were counted.
    complete: bool,
}

impl DiskUsage {
    /// Measures the disk usage. Unreadable files count as empty.
    pub(crate) fn measure(layout: &Layout, ephemeral: bool) -> Self {
        let kept = Kept::new(layout.bundles());
        let usage = kept.usage().unwrap_or_default();
        Self {
            kept: usage,
            limit: kept.limit(usage.bytes()),
            data: DataCache::new(layout.data()).bytes(),
            outputs: Outputs::new(layout.outputs()).usage().unwrap_or_default(),
            logs: KeptLogs::measure(layout, ephemeral),
            volumes: volumes(&layout.pods(ephemeral), Instant::now() + MEASURE_TIMEOUT),
        }
    }

    fn is_over(&self) -> bool {
        self.kept.bytes() > self.limit.bytes
    }

    /// JSON form of the disk usage of code.
    pub(crate) fn code(&self) -> Value {
        let (bundles, copies) = (self.kept.bundles, self.kept.ready_copies);
        json!({
            "bundles": {"count": bundles.count, "bytes": bundles.bytes},
            "readyCopies": {"count": copies.count, "bytes": copies.bytes},
            "limitBytes": self.limit.bytes,
            "configuredLimitBytes": self.limit.configured,
            "overLimit": self.is_over(),
            "outputs": {
                "runs": self.outputs.runs,
                "files": self.outputs.files,
                "bytes": self.outputs.bytes,
            },
            "data": {"bytes": self.data},
            "podVolumes": {"bytes": self.volumes.bytes, "complete": self.volumes.complete},
        })
    }

    /// JSON form of the disk usage of the logs of deleted pods.
    pub(crate) fn logs(&self) -> Value {
        json!({
            "bytes": self.logs.bytes,
            "limitBytes": self.logs.limit.bytes,
            "configuredLimitBytes": self.logs.limit.configured,
        })
    }

    /// Human-readable form.
    pub(crate) fn describe(&self) {
        let bundles = self.kept.bundles;
        let limit = match self.is_over() {
            true => {
                let limit = ui::size(self.limit.bytes);
                format!("more than the limit of {limit}: active runs need them")
            }
            false => limit_text(self.limit),
        };
        let plural = if bundles.count == 1 { "" } else { "s" };
        let mut code = format!(
            "{} bundle{plural}, {}",
            bundles.count,
            ui::size(bundles.bytes)
        );
        if self.kept.ready_copies.count > 0 {
            let size = ui::size(self.kept.ready_copies.bytes);
            code.push_str(&format!(", unpacked for the next run {size}"));
        }
        ui::line(format!("  code        {code}; {limit}"));
        if self.outputs.files > 0 {
            let (runs, size) = (self.outputs.runs, ui::size(self.outputs.bytes));
            ui::line(format!(
                "  outputs     {size} of {}",
                ui::count(runs, "run")
            ));
        }
        if self.data > 0 {
            let size = ui::size(self.data);
            ui::line(format!("  data        {size} of data of tasks"));
        }
        let least = if self.volumes.complete {
            ""
        } else {
            "at least "
        };
        let size = ui::size(self.volumes.bytes);
        ui::line(format!("  volumes     {least}{size} in volumes of pods"));
        let (size, limit) = (ui::size(self.logs.bytes), limit_text(self.logs.limit));
        ui::line(format!("  kept logs   {size} of deleted pods; {limit}"));
    }
}

fn limit_text(limit: Limit) -> String {
    let size = ui::size(limit.bytes);
    match limit.bytes < limit.configured {
        true => format!("limit {size}, half of the free disk"),
        false => format!("limit {size}"),
    }
}

/// The disk usage of all pods' volumes, as far as it can be measured in time.
fn volumes(pods: &Path, deadline: Instant) -> Measured {
    let mut folders: Vec<PathBuf> = fs::read_dir(pods)
        .into_iter()
        .flatten()
        .flatten()
        .map(|pod| pod.path().join("volumes"))
        .collect();
    let mut bytes: u64 = 0;
    let mut complete = true;
    while let Some(folder) = folders.pop() {
        let is_none = |kind| matches!(kind, io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
        // The path may be longer than the system permits.
        let entries = match fs::read_dir(folder) {
            Err(error) if !is_none(error.kind()) => {
                complete = false;
                continue;
            }
            entries => entries.into_iter().flatten(),
        };
        for entry in entries.flatten() {
            if Instant::now() >= deadline {
                return Measured {
                    bytes,
                    complete: false,
                };
            }
            // Do not follow links.
            let Ok(found) = entry.metadata() else {
                continue;
            };
            bytes = bytes.saturating_add(found.blocks().saturating_mul(512));
            if found.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    Measured { bytes, complete }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn volumes_are_measured_without_link_targets() {
        let folder = tempfile::tempdir().unwrap();
        let volume = folder.path().join("uid/volumes/scratch/sub");
        fs::create_dir_all(&volume).unwrap();
        let outside = folder.path().join("outside");
        fs::write(&outside, vec![1; 3 << 20]).unwrap();
        symlink(&outside, volume.join("link")).unwrap();
        let far = Instant::now() + Duration::from_secs(60);
        assert!(volumes(folder.path(), far).bytes < 1 << 20);
        fs::write(volume.join("file"), vec![1; 2 << 20]).unwrap();
        let measured = volumes(folder.path(), far);
        assert!(measured.complete && (2 << 20..3 << 20).contains(&measured.bytes));
        assert!(!volumes(folder.path(), Instant::now()).complete);
        let none = volumes(&folder.path().join("missing"), far);
        assert_eq!((none.bytes, none.complete), (0, true));
    }
}
