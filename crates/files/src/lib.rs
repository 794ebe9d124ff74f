//! Private files and directories: nobody but their owner (and root) can have
//! prepared or changed them.
//!
//! A program that keeps a token, a lock or a log in a directory trusts what it
//! finds there. If another local user owns that directory, or may write to it,
//! that user decides what the program reads and where it writes. The functions
//! here refuse such places before anything in them is used:
//!
//! - [`private_dir`] creates a directory with mode 0700 and checks it and every
//!   directory above it;
//! - [`open`] and [`read_optional`] open files without following a symbolic
//!   link, and refuse files of other users and files that others may write;
//! - [`replace`] writes a file that is there as a whole or not at all, also
//!   after a power failure;
//! - [`read_limited`] reads a file that anybody may have written, in bounded time
//!   and memory.
//!
//! The rules about owners and modes are pure functions in `trust`.

mod dir;
mod error;
mod file;
mod limited;
mod replace;
mod trust;

pub use dir::{check_output_dir, private_dir};
pub use error::Error;
pub use file::{OpenMode, inspect_optional, open, read_optional};
pub use limited::read_limited;
pub use replace::{Durability, replace, replace_if_changed, replace_output, sync_dir};
