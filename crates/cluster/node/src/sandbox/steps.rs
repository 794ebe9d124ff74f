//! Converts the operations of a view to steps of the child, with C strings.

use std::{ffi::CString, io, path::Path};

use super::{
    child::{Step, Walk, c_string},
    start_error::StartError,
    view::{self, FileKind, Operation},
};

/// Returns the steps of `operations`, in the same order.
pub(super) fn steps(operations: &[Operation]) -> Result<Vec<Step>, StartError> {
    let text = |path: &Path| c_string(path.as_os_str());
    let walk = |walk: &view::Walk| -> io::Result<Walk> {
        let names = walk.below.iter();
        Ok(Walk {
            from: text(&walk.from)?,
            names: names.map(c_string).collect::<io::Result<_>>()?,
        })
    };
    let step = |operation: &Operation| {
        Ok(match operation {
            Operation::Private => Step::Private,
            Operation::Tmpfs {
                at,
                mode,
                group,
                size,
            } => {
                let group = group.map_or_else(String::new, |group| format!(",gid={group}"));
                let size = size.map_or_else(String::new, |size| format!(",size={size}"));
                Step::Tmpfs {
                    at: text(at)?,
                    options: CString::new(format!("mode={mode:o}{group}{size}"))?,
                }
            }
            Operation::Folder { at } => Step::Folder { at: text(at)? },
            Operation::File { at } => Step::File { at: text(at)? },
            Operation::Link { to, at } => Step::Link {
                to: text(to)?,
                at: text(at)?,
            },
            Operation::Bind { from, at, optional } => Step::Bind {
                from: text(from)?,
                at: text(at)?,
                optional: *optional,
            },
            Operation::Make {
                walk: path,
                kind,
                mode,
            } => Step::Make {
                walk: walk(path)?,
                is_folder: *kind == FileKind::Folder,
                mode: *mode,
            },
            Operation::Attach {
                from,
                at,
                read_only,
                descriptors,
            } => Step::Attach {
                from: walk(from)?,
                at: walk(at)?,
                read_only: *read_only,
                descriptors: text(descriptors)?,
            },
            Operation::ReadOnly { at } => Step::ReadOnly { at: text(at)? },
            Operation::ReadOnlyTree { at } => Step::ReadOnlyTree { at: text(at)? },
            Operation::Writable { at } => Step::Writable { at: text(at)? },
            Operation::Detach { at } => Step::Detach { at: text(at)? },
            Operation::Mask { at } => Step::Mask { at: text(at)? },
            Operation::Protect { at } => Step::Protect { at: text(at)? },
            Operation::Processes { at } => Step::Processes { at: text(at)? },
            Operation::Pivot { root, old } => Step::Pivot {
                root: text(root)?,
                old: text(old)?,
            },
            Operation::Enter { root } => Step::Enter { root: text(root)? },
        })
    };
    operations
        .iter()
        .map(step)
        .collect::<io::Result<_>>()
        .map_err(StartError::System)
}
