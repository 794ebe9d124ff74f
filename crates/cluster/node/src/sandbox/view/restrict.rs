//! Restricts what a container can see or change on the machine.

use std::path::Path;

use super::{Operation, cover::below};

/// Paths that remain writable in a read-only view, because container runtimes mount them per pod.
const WRITABLE: [&str; 2] = ["/dev/shm", "/dev/mqueue"];

/// Paths that container runtimes hide.
const MASKED: [&str; 9] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
];

/// Paths that container runtimes make read-only.
const PROTECTED: [&str; 5] = [
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/sys",
    "/proc/sysrq-trigger",
];

/// Makes the current view below `new` read-only.
pub(super) fn read_only(new: &Path, operations: &mut Vec<Operation>) {
    operations.push(Operation::ReadOnlyTree { at: new.to_owned() });
    operations.extend(WRITABLE.map(|path| Operation::Writable {
        at: below(new, Path::new(path)),
    }));
}

/// Hides and protects parts of `/proc`.
pub(super) fn mask(new: &Path, operations: &mut Vec<Operation>) {
    operations.extend(MASKED.map(|path| Operation::Mask {
        at: below(new, Path::new(path)),
    }));
    operations.extend(PROTECTED.map(|path| Operation::Protect {
        at: below(new, Path::new(path)),
    }));
}
