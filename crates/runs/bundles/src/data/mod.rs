//! Data for tasks: folders of this machine and prefixes of buckets, identified by the content of
//! their files.
//!
//! 1. [`scan`] finds the files of a folder and their sha256: a [`Snapshot`] with a
//!    [`Manifest`], whose sha256 is the identity of the data. `bucket` does so for a bucket.
//! 2. [`DataCache`] keeps the contents of files once, and places the folders of manifests with
//!    hard links. It is a folder of this machine, or a volume in a pod.
//! 3. [`deliver`] uploads the contents that a store lacks, and signs their URLs: an
//!    [`AccessList`], with which [`fetch`] fills the cache in a pod.

mod access;
mod bucket;
mod cache;
mod check;
mod copy;
mod deliver;
mod error;
mod fetch;
mod index;
mod list;
mod manifest;
mod object;
mod parallel;
mod progress;
mod remove;
mod scan;
#[cfg(test)]
mod tests;
mod tree;
mod walk;

pub use access::{AccessList, INLINE_LIMIT, Packed};
pub use bucket::{BucketData, MOST_OBJECTS, list_bucket};
pub use cache::{DataCache, KeptData, Placed};
pub use deliver::{DataOptions, deliver, put_list, sign_bucket};
pub use error::DataError;
pub use fetch::fetch;
pub use list::PodList;
pub use manifest::{DataFile, DataLink, Manifest};
pub use progress::{DataProgress, Step};
pub use remove::{DataGuard, Removal, hold};
pub use scan::{ScanOptions, Snapshot, scan};
