//! The memory of this process, as reported by Linux.

use std::fs;

use crate::report::Failure;

fn field(name: &str) -> Result<f64, Failure> {
    let text = fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let line = line.ok_or("the process's status lacks a field")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<f64>()? * 1024.0)
}

/// Resets the peak. Returns the resident memory in bytes.
pub(super) fn begin() -> Result<f64, Failure> {
    fs::write("/proc/self/clear_refs", "5")?;
    field("VmRSS:")
}

/// The peak of the resident memory in bytes.
pub(super) fn peak() -> Result<f64, Failure> {
    field("VmHWM:")
}
