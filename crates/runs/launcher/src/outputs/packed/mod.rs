//! Outputs of a task as one stream: the contents of its files, one after the other, then the list
//! of the files, and a trailer of fixed size with the position of the list.
//!
//! The stream is not copied to the disk, because its size is known before the files are read. If a
//! file shrinks meanwhile, it is left out, and the stream is padded.
//!
//! A store limits the size of an object that is uploaded at once. A longer stream is divided into
//! objects, all of which except the last have [`PART_LIMIT`] bytes of contents.

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
