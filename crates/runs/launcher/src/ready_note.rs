//! The note in a pod's volume which marks the code there as a ready copy of a bundle.

use std::fs;

/// The kernel's boot ID. Data that was not synced to disk does not survive a reboot.
pub(crate) fn boot_id() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let id = text.trim();
    let is_id = !id.is_empty()
        && id
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    is_id.then(|| id.to_owned())
}

/// The text of the note for a copy of this bundle.
pub(crate) fn note(sha256: &str) -> Option<String> {
    Some(format!("{sha256} {}\n", boot_id()?))
}
