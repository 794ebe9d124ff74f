//! Packs files into tar archives and unpacks them. Archives may come from untrusted
//! sources: unpacking never writes outside of the target folder and never exceeds its
//! limits. Packing fails if a file changes meanwhile.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use longshore_archive::{Unpack, pack, unpack};
//! # let folder = tempfile::tempdir()?;
//! let (from, to) = (folder.path().join("data"), folder.path().join("copy"));
//! std::fs::create_dir_all(from.join("2026"))?;
//! std::fs::write(from.join("2026/results.csv"), "a,b\n")?;
//! std::fs::create_dir(&to)?;
//!
//! let mut archive = Vec::new();
//! pack(&from, "results", &mut archive, |_| ())?;
//! unpack(archive.as_slice(), &to, &Unpack::default(), |_| ())?;
//! assert_eq!(std::fs::read(to.join("results/2026/results.csv"))?, b"a,b\n");
//! # Ok(())
//! # }
//! ```

mod file;
mod pack;
mod path;
mod unpack;

use std::path::PathBuf;

pub use file::{FileError, append_file};
pub use pack::{PackError, pack};
pub use path::{clean, is_confined};
pub use unpack::{ENTRY_HEADER_BYTES, Limits, Unpack, UnpackError, unpack};

/// The progress or the result of packing or unpacking.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transferred {
    /// The number of files and links.
    pub files: u64,
    /// The total size of the files in bytes.
    pub bytes: u64,
    /// The first [`LEFT_OUT_NAMED`] entries that were left out, with the reason, such as
    /// "is a device".
    pub left_out: Vec<(PathBuf, String)>,
    /// The number of further entries that were left out.
    pub left_out_more: u64,
}

/// The maximum number of entries in [`Transferred::left_out`]. Archives may have millions.
pub const LEFT_OUT_NAMED: usize = 1000;

impl Transferred {
    fn leave_out(&mut self, path: PathBuf, problem: String) {
        if self.left_out.len() < LEFT_OUT_NAMED {
            self.left_out.push((path, problem));
        } else {
            self.left_out_more = self.left_out_more.saturating_add(1);
        }
    }
}
