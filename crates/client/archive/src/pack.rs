//! Packs a file or a folder into an archive.

use std::{
    fs::{self, File, Metadata},
    io::{self, Write},
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
};

use tar::{EntryType, Header};

use crate::{
    Transferred,
    file::{FileError, append_file},
};

/// The error of [`pack`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackError {
    /// A file cannot be read, or it changed while it was read.
    #[error("cannot pack {}: {source}", path.display())]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The reason.
        source: FileError,
    },
    /// The archive cannot be written.
    #[error("cannot write the archive: {0}")]
    Write(#[source] io::Error),
}

/// Packs a file or a folder into an uncompressed archive, under the name `name`. Entries
/// of a folder are sorted by name. Permissions and times are preserved, owners are not.
/// Symbolic links remain links, except for `source` itself. Sockets, pipes and devices
/// are left out and listed in [`Transferred::left_out`]. Calls `progress` after each file.
///
/// # Errors
/// [`PackError::Read`] names the file that cannot be packed. [`PackError::Write`]: the
/// archive cannot be written.
pub fn pack(
    source: &Path,
    name: &str,
    archive: impl Write,
    mut progress: impl FnMut(&Transferred),
) -> Result<Transferred, PackError> {
    let mut archive = tar::Builder::new(archive);
    let mut transferred = Transferred::default();
    // A stack instead of recursion, so that deep folders cannot overflow the call stack.
    let mut left = vec![(source.to_owned(), PathBuf::from(name))];
    while let Some((full, inside)) = left.pop() {
        let read = |source| PackError::Read {
            path: full.clone(),
            source: FileError::Read(source),
        };
        // If `source` is a link, pack its target. Links inside a folder remain links.
        let found = if full == source {
            full.metadata()
        } else {
            full.symlink_metadata()
        };
        let found = found.map_err(read)?;
        let mut header = header(&found);
        if found.is_dir() {
            header.set_entry_type(EntryType::Directory);
            archive
                .append_data(&mut header, &inside, io::empty())
                .map_err(PackError::Write)?;
            let mut names = fs::read_dir(&full)
                .and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect())
                .map_err(read)?;
            let names: &mut Vec<_> = &mut names;
            names.sort_unstable_by(|a, b| b.cmp(a));
            let each = names
                .iter()
                .map(|name| (full.join(name), inside.join(name)));
            left.extend(each);
            continue;
        }
        if found.is_symlink() {
            header.set_entry_type(EntryType::Symlink);
            let target = full.read_link().map_err(read)?;
            archive
                .append_link(&mut header, &inside, &target)
                .map_err(PackError::Write)?;
        } else if found.is_file() {
            let file = File::open(&full).map_err(read)?;
            append_file(&mut archive, &mut header, &inside, file, found.len()).map_err(
                |error| match error {
                    FileError::Write(error) => PackError::Write(error),
                    source => PackError::Read {
                        path: full.clone(),
                        source,
                    },
                },
            )?;
            transferred.bytes += found.len();
        } else {
            transferred.leave_out(inside, kind_of(&found).to_owned());
            continue;
        }
        transferred.files += 1;
        progress(&transferred);
    }
    archive
        .into_inner()
        .and_then(|mut archive| archive.flush())
        .map_err(PackError::Write)?;
    Ok(transferred)
}

fn header(found: &Metadata) -> Header {
    let mut header = Header::new_gnu();
    header.set_mode(found.mode() & 0o777);
    header.set_mtime(u64::try_from(found.mtime()).unwrap_or(0));
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(0);
    header
}

fn kind_of(found: &Metadata) -> &'static str {
    let kind = found.file_type();
    if kind.is_socket() {
        "is a socket"
    } else if kind.is_fifo() {
        "is a named pipe"
    } else {
        "is a device"
    }
}
