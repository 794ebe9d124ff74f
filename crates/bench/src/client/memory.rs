//! The memory of this process, as Linux counts it.

use std::fs;

use crate::report::Failure;

fn field(name: &str) -> Result<f64, Failure> {
    let text = fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let line = line.ok_or("the process has no such figure")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<f64>()? * 1024.0)
}

/// Bytes that are resident now. The peak begins anew.
pub(super) fn begin() -> Result<f64, Failure> {
    fs::write("/proc/self/clear_refs", "5")?;
    field("VmRSS:")
}

/// The most bytes that have been resident.
pub(super) fn peak() -> Result<f64, Failure> {
    field("VmHWM:")
}
