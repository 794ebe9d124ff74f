//! The start time of a process, which distinguishes it from a later process with
//! the same ID.

use std::path::Path;

/// Returns when a process started, in clock ticks since boot. Returns `None` if the process has
/// exited. A zombie has exited.
pub(crate) fn start_ticks(pid: u32) -> Option<u64> {
    let text =
        std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    parse_stat(&text)
}

/// Returns field 22 of `/proc/PID/stat`; `None` for a zombie. The program's name is
/// in parentheses and can itself contain spaces and parentheses.
fn parse_stat(text: &str) -> Option<u64> {
    let (_, after_name) = text.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    // The state is field 3, so field 22 is 18 fields later.
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn program_names_may_contain_spaces_and_parentheses() {
        let stat = "12 (a) b (c) S 1 12 12 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2 3";
        assert_eq!(parse_stat(stat), Some(98765));
        assert_eq!(parse_stat(&stat.replace(") S ", ") Z ")), None);
        assert_eq!(parse_stat("garbage"), None);
    }
}
