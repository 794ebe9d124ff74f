//! The attributes of files.

use std::{fs::Metadata, os::unix::fs::MetadataExt as _};

use rustix::fs::{Timespec, Timestamps};

use crate::wire::{Fields, Malformed, Put as _};

const SIZE: u32 = 1;
const OWNER: u32 = 2;
const PERMISSIONS: u32 = 4;
const TIMES: u32 = 8;
const EXTENDED: u32 = 1 << 31;

/// The attributes of a file. A client may set only some of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Attributes {
    pub(super) size: Option<u64>,
    /// User and group.
    pub(super) owner: Option<(u32, u32)>,
    /// The type of the file and its permissions.
    pub(super) mode: Option<u32>,
    /// The times of the last access and the last change, in seconds.
    pub(super) times: Option<(u32, u32)>,
}

impl Attributes {
    pub(super) fn of(metadata: &Metadata) -> Self {
        // The protocol's timestamps end in 2106.
        let seconds = |time: i64| u32::try_from(time.max(0)).unwrap_or(u32::MAX);
        Self {
            size: Some(metadata.len()),
            owner: Some((metadata.uid(), metadata.gid())),
            mode: Some(metadata.mode()),
            times: Some((seconds(metadata.atime()), seconds(metadata.mtime()))),
        }
    }

    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, Malformed> {
        let flags = fields.number()?;
        let mut read = Self::default();
        if flags & SIZE != 0 {
            read.size = Some(fields.long()?);
        }
        if flags & OWNER != 0 {
            read.owner = Some((fields.number()?, fields.number()?));
        }
        if flags & PERMISSIONS != 0 {
            read.mode = Some(fields.number()?);
        }
        if flags & TIMES != 0 {
            read.times = Some((fields.number()?, fields.number()?));
        }
        if flags & EXTENDED != 0 {
            for _ in 0..fields.number()? {
                fields.string()?;
                fields.string()?;
            }
        }
        Ok(read)
    }

    pub(super) fn encode(&self, message: &mut Vec<u8>) {
        let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
        message.put_number(
            flag(self.size.is_some(), SIZE)
                | flag(self.owner.is_some(), OWNER)
                | flag(self.mode.is_some(), PERMISSIONS)
                | flag(self.times.is_some(), TIMES),
        );
        if let Some(size) = self.size {
            message.put_long(size);
        }
        if let Some((user, group)) = self.owner {
            message.put_number(user);
            message.put_number(group);
        }
        if let Some(mode) = self.mode {
            message.put_number(mode);
        }
        if let Some((access, change)) = self.times {
            message.put_number(access);
            message.put_number(change);
        }
    }

    /// The permissions without the type.
    pub(super) fn permissions(&self) -> Option<u32> {
        self.mode.map(|mode| mode & 0o7777)
    }

    pub(super) fn timestamps(&self) -> Option<Timestamps> {
        let time = |seconds: u32| Timespec {
            tv_sec: seconds.into(),
            tv_nsec: 0,
        };
        self.times.map(|(access, change)| Timestamps {
            last_access: time(access),
            last_modification: time(change),
        })
    }
}
