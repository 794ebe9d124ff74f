//! The files of a container's log: `RUN.log`, then `RUN.1.log`, `RUN.2.log` and
//! so on as the log grows. The oldest are removed. Files are never renamed, so
//! that readers can move from one to the next without a race.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::limits::LogLimits;

/// Returns the path of a file.
pub(super) fn path(folder: &Path, run: u32, segment: u32) -> PathBuf {
    folder.join(match segment {
        0 => format!("{run}.log"),
        _ => format!("{run}.{segment}.log"),
    })
}

/// Returns the files of a container as run and segment, oldest first.
pub(super) fn files(folder: &Path) -> Vec<(u32, u32)> {
    let read = |name: &str| {
        let name = name.strip_suffix(".log")?;
        let (run, segment) = name.split_once('.').unwrap_or((name, "0"));
        Some((run.parse().ok()?, segment.parse().ok()?))
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries
        .filter_map(|entry| read(entry.file_name().to_str()?))
        .collect();
    files.sort_unstable();
    files
}

/// Returns the segments of a run, oldest first.
pub(super) fn segments(folder: &Path, run: u32) -> Vec<u32> {
    let files = files(folder).into_iter();
    files
        .filter(|(of, _)| *of == run)
        .map(|(_, segment)| segment)
        .collect()
}

/// Reduces each run of a container to the usual number of files.
pub(super) fn keep_latest(folder: &Path, limits: LogLimits) {
    let files = files(folder);
    let kept = limits.max_files.max(2);
    for (run, segment) in &files {
        let last = files.iter().rev().find(|(other, _)| other == run);
        let last = last.map_or(0, |(_, last)| *last);
        if last - segment >= kept {
            let _ = fs::remove_file(path(folder, *run, *segment));
        }
    }
}
