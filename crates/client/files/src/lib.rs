//! Private files and directories: only their owner and root can create or change them.
//!
//! A program that keeps a token, a lock or a log in a directory trusts the files in it. If
//! another local user owns that directory or may write to it, that user controls what the
//! program reads and where it writes. The functions of this crate reject such directories
//! before the program uses a file in them:
//!
//! - [`private_dir`] creates a directory with mode 0700 and checks it and every directory
//!   above it;
//! - [`open`] and [`read_optional`] open files without following a symbolic link, and
//!   reject files that other users own or may write;
//! - [`replace`] replaces a file atomically, also in case of a power failure;
//! - [`read_limited`] reads an untrusted file in bounded time and memory;
//! - [`remove_tree`] removes a directory whose content is untrusted;
//! - [`DiskLimit`] is a limit of the disk space of a folder.
//!
//! The rules about owners and modes are pure functions in `trust`.

mod dir;
mod disk_limit;
mod error;
mod file;
mod limited;
mod remove;
mod replace;
mod trust;

pub use dir::{check_output_dir, private_dir};
pub use disk_limit::{DiskLimit, free_bytes};
pub use error::Error;
pub use file::{OpenMode, inspect_optional, open, read_from_disk, read_optional};
pub use limited::read_limited;
pub use remove::remove_tree;
pub use replace::{Durability, replace, replace_if_changed, replace_output, sync_dir};
