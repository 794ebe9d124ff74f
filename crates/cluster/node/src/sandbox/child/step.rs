//! The steps that set up a container's file system view, as data.

use std::ffi::CString;

/// A step of setting up the container's file system view.
#[derive(Debug)]
pub(in crate::sandbox) enum Step {
    Private,
    Tmpfs {
        at: CString,
        options: CString,
    },
    Folder {
        at: CString,
    },
    File {
        at: CString,
    },
    Link {
        to: CString,
        at: CString,
    },
    Bind {
        from: CString,
        at: CString,
        optional: bool,
    },
    Make {
        walk: Walk,
        is_folder: bool,
        mode: u32,
    },
    Attach {
        from: Walk,
        at: Walk,
        read_only: bool,
        descriptors: CString,
    },
    ReadOnly {
        at: CString,
    },
    ReadOnlyTree {
        at: CString,
    },
    Writable {
        at: CString,
    },
    Detach {
        at: CString,
    },
    Mask {
        at: CString,
    },
    Protect {
        at: CString,
    },
    Processes {
        at: CString,
    },
    Pivot {
        root: CString,
        old: CString,
    },
    Enter {
        root: CString,
    },
}

/// A path that is walked without following symbolic links.
#[derive(Debug)]
pub(in crate::sandbox) struct Walk {
    pub(in crate::sandbox) from: CString,
    /// The remaining components.
    pub(in crate::sandbox) names: Vec<CString>,
}
