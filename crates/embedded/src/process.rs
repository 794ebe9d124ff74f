//! When a process began: tells it from a later process with the same number.

use std::path::Path;

/// When a process began, in clock ticks since boot; `None` when it has gone
/// (a zombie has gone).
pub(crate) fn start_ticks(pid: u32) -> Option<u64> {
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
}
