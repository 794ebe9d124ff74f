//! Answers the requests of a client.

use std::{
    fs,
    os::unix::ffi::OsStrExt as _,
    os::unix::fs::{DirBuilderExt as _, FileExt as _},
};

use super::{
    MAX_DATA, Reply,
    attributes::Attributes,
    extended::{self, EXTENSIONS},
    files::{self, path},
    handles::{Handles, Open},
    reply::{Content, Problem, Status},
};
use crate::wire::Fields;

/// The numbers of the requests.
mod request {
    pub(super) const INIT: u8 = 1;
    pub(super) const OPEN: u8 = 3;
    pub(super) const CLOSE: u8 = 4;
    pub(super) const READ: u8 = 5;
    pub(super) const WRITE: u8 = 6;
    pub(super) const LSTAT: u8 = 7;
    pub(super) const FSTAT: u8 = 8;
    pub(super) const SETSTAT: u8 = 9;
    pub(super) const FSETSTAT: u8 = 10;
    pub(super) const OPENDIR: u8 = 11;
    pub(super) const READDIR: u8 = 12;
    pub(super) const REMOVE: u8 = 13;
    pub(super) const MKDIR: u8 = 14;
    pub(super) const RMDIR: u8 = 15;
    pub(super) const REALPATH: u8 = 16;
    pub(super) const STAT: u8 = 17;
    pub(super) const RENAME: u8 = 18;
    pub(super) const READLINK: u8 = 19;
    pub(super) const SYMLINK: u8 = 20;
    pub(super) const EXTENDED: u8 = 200;
}

/// The number of entries in one reply to READDIR.
const ENTRIES: usize = 100;

/// The state of a client.
#[derive(Debug, Default)]
pub(super) struct Server {
    handles: Handles,
}

impl Server {
    /// Answers a request.
    pub(super) fn answer(&mut self, message: &[u8]) -> Reply {
        let mut fields = Fields::new(message);
        let kind = fields.byte().unwrap_or_default();
        if kind == request::INIT {
            return Reply::Version(EXTENSIONS);
        }
        match fields.number() {
            Ok(id) => Reply::To(id, self.execute(kind, &mut fields)),
            Err(error) => Reply::To(0, Err(error.into())),
        }
    }

    fn execute(&mut self, kind: u8, fields: &mut Fields<'_>) -> Result<Content, Problem> {
        match kind {
            request::OPEN => {
                let (path, flags) = (path(fields.string()?), fields.number()?);
                let (file, appends) = files::open(&path, flags, &Attributes::read(fields)?)?;
                let open = Open::File { file, appends };
                return self.handles.add(open).map(Content::Handle);
            }
            request::CLOSE => drop(self.handles.remove(fields.string()?)?),
            request::READ => {
                let (file, _) = self.handles.file(fields.string()?)?;
                let (offset, length) = (fields.long()?, fields.number()?);
                return read(file, offset, length);
            }
            request::WRITE => {
                let (file, appends) = self.handles.file(fields.string()?)?;
                let (offset, data) = (fields.long()?, fields.string()?);
                match appends {
                    true => std::io::Write::write_all(file, data)?,
                    false => file.write_all_at(data, offset)?,
                }
            }
            request::LSTAT => return attributes(fs::symlink_metadata(path(fields.string()?))),
            request::STAT => return attributes(fs::metadata(path(fields.string()?))),
            request::FSTAT => {
                let open = self.handles.find(fields.string()?)?;
                return attributes(match open {
                    Open::File { file, .. } => file.metadata(),
                    Open::Folder { path, .. } => fs::metadata(path),
                });
            }
            request::SETSTAT => {
                let path = path(fields.string()?);
                files::set(&path, &Attributes::read(fields)?, true)?;
            }
            request::FSETSTAT => {
                let open = self.handles.find(fields.string()?)?;
                let attributes = Attributes::read(fields)?;
                match open {
                    Open::File { file, .. } => files::set_open(file, &attributes)?,
                    Open::Folder { path, .. } => files::set(path, &attributes, true)?,
                }
            }
            request::OPENDIR => {
                let path = path(fields.string()?);
                let entries = fs::read_dir(&path)?;
                let open = Open::Folder { path, entries };
                return self.handles.add(open).map(Content::Handle);
            }
            request::READDIR => return self.read_folder(fields.string()?),
            request::REMOVE => fs::remove_file(path(fields.string()?))?,
            request::MKDIR => {
                let path = path(fields.string()?);
                let attributes = Attributes::read(fields)?;
                let mode = attributes.permissions().unwrap_or(0o777);
                fs::DirBuilder::new().mode(mode).create(path)?;
            }
            request::RMDIR => fs::remove_dir(path(fields.string()?))?,
            request::REALPATH => {
                let path = files::real_path(&path(fields.string()?))?;
                return Ok(Content::Names(vec![files::only_path(&path)]));
            }
            request::RENAME => {
                files::rename(&path(fields.string()?), &path(fields.string()?))?;
            }
            request::READLINK => {
                let target = fs::read_link(path(fields.string()?))?;
                return Ok(Content::Names(vec![files::only_path(&target)]));
            }
            // The arguments are in OpenSSH's order, which differs from the specification's.
            request::SYMLINK => {
                let target = path(fields.string()?);
                std::os::unix::fs::symlink(target, path(fields.string()?))?;
            }
            request::EXTENDED => return extended::answer(&mut self.handles, fields),
            _ => {
                return Err(Problem::new(
                    Status::Unsupported,
                    "this request is not supported",
                ));
            }
        }
        Ok(Content::Nothing)
    }

    fn read_folder(&mut self, handle: &[u8]) -> Result<Content, Problem> {
        let Open::Folder { path, entries } = self.handles.find(handle)? else {
            return Err(Problem::new(Status::Failure, "not an open folder"));
        };
        let mut names = Vec::new();
        for entry in entries.by_ref() {
            let entry = entry?;
            let name = entry.file_name();
            // A file may have been removed in the meantime.
            if let Ok(metadata) = fs::symlink_metadata(path.join(&name)) {
                names.push(files::named(name.as_bytes(), &metadata));
            }
            if names.len() >= ENTRIES {
                break;
            }
        }
        match names.is_empty() {
            true => Err(Problem::new(Status::End, "end of folder")),
            false => Ok(Content::Names(names)),
        }
    }
}

fn attributes(metadata: std::io::Result<fs::Metadata>) -> Result<Content, Problem> {
    Ok(Content::Attributes(Attributes::of(&metadata?)))
}

fn read(file: &fs::File, offset: u64, length: u32) -> Result<Content, Problem> {
    let mut data = vec![0; length.min(MAX_DATA) as usize];
    let mut filled = 0;
    while filled < data.len() {
        let at = offset.saturating_add(filled as u64);
        match file.read_at(&mut data[filled..], at) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            // Returns the bytes that were read; the next read fails.
            Err(_) if filled > 0 => break,
            // An offset above 2^63 is after the end of every file.
            Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => break,
            Err(error) => return Err(error.into()),
        }
    }
    data.truncate(filled);
    match data.is_empty() && length > 0 {
        true => Err(Problem::new(Status::End, "end of file")),
        false => Ok(Content::Data(data)),
    }
}
