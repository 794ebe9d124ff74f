//! Outputs of a task as one stream: the contents of its files, one after the other, then the list
//! of them, and a trailer of fixed size by which the list is found.
//!
//! The stream has no copy on disk: its size is known before the files are read. A file that is
//! changed meanwhile, so that it has fewer bytes, is left out, and the stream is filled up.
//!
//! A store limits the size of an object that is uploaded at once. A longer stream is cut: all
//! objects but the last have [`PART_LIMIT`] bytes of contents.

mod format;
mod pack;
mod reader;
#[cfg(test)]
mod tests;

pub(crate) use format::{PackedManifest, TRAILER, Trailer};
pub(crate) use pack::{Pack, PackSource};
pub(crate) use reader::PackReader;

/// The maximum size of the contents in an object: S3 accepts 5 GiB at once, and Azure 4.88 GiB.
pub(crate) const PART_LIMIT: u64 = 4 << 30;
/// The maximum number of objects of a task.
pub(crate) const MOST_PARTS: u64 = 16;
