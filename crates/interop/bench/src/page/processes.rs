//! Memory of processes, from `/proc`.

use std::{
    collections::{HashMap, HashSet},
    fs,
};

use crate::report::Failure;

/// The current and the peak memory of a process, in MB.
pub(super) fn memory(pid: u32) -> Result<(f64, f64), Failure> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    Ok((field(&text, "VmRSS:")?, field(&text, "VmHWM:")?))
}

/// The memory of the largest renderer process among the descendants of a process, in MB. Its
/// part of shared memory counts.
pub(super) fn tab(ancestor: u32) -> Result<f64, Failure> {
    let renderers = descendants(ancestor)?.into_iter().filter(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains("--type=renderer")
    });
    let sizes = renderers.filter_map(|pid| {
        let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
        field(&text, "Pss:").ok()
    });
    let largest = sizes.max_by(f64::total_cmp);
    largest.ok_or_else(|| "the browser has no renderer process".into())
}

fn descendants(ancestor: u32) -> Result<HashSet<u32>, Failure> {
    let mut parents = HashMap::new();
    for entry in fs::read_dir("/proc")? {
        let Ok(pid) = entry?.file_name().to_string_lossy().parse::<u32>() else {
            continue;
        };
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
        if let Some(parent) = parent.and_then(|parent| parent.trim().parse::<u32>().ok()) {
            parents.insert(pid, parent);
        }
    }
    let is_below = |pid: u32| {
        let mut at = pid;
        // Process IDs may be used again while they are read.
        for _ in 0..parents.len() {
            match parents.get(&at) {
                Some(parent) if *parent == ancestor => return true,
                Some(parent) => at = *parent,
                None => return false,
            }
        }
        false
    };
    Ok(parents
        .keys()
        .copied()
        .filter(|pid| is_below(*pid))
        .collect())
}

fn field(text: &str, name: &str) -> Result<f64, Failure> {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let line = line.ok_or_else(|| format!("no {name} of the process"))?;
    Ok(line.trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
}
