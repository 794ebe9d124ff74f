//! Files to tar archives and back. An archive may come from anybody: nothing
//! is written outside of the folder that it is unpacked into, and never more
//! than the limits allow. A file that changes while it is packed is told.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use longshore_archive::{Unpack, pack, unpack};
//! # let place = tempfile::tempdir()?;
//! let (from, to) = (place.path().join("data"), place.path().join("copy"));
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
pub use path::is_confined;
pub use unpack::{ENTRY_HEADER_BYTES, Limits, Unpack, UnpackError, unpack};

/// What was packed or unpacked so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Moved {
    /// Files and links.
    pub files: u64,
    /// The files' bytes.
    pub bytes: u64,
    /// What was left out, and why: "is a device". The first [`LEFT_OUT_NAMED`].
    pub left_out: Vec<(PathBuf, String)>,
    /// How many more were left out.
    pub left_out_more: u64,
}

/// How many entries that were left out [`Moved`] names; archives may have millions.
pub const LEFT_OUT_NAMED: usize = 1000;

impl Moved {
    fn leave_out(&mut self, path: PathBuf, problem: String) {
        if self.left_out.len() < LEFT_OUT_NAMED {
            self.left_out.push((path, problem));
        } else {
            self.left_out_more = self.left_out_more.saturating_add(1);
        }
    }
}
