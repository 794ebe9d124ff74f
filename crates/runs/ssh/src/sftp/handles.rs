//! The open files and folders of a client.

use std::{
    collections::HashMap,
    fs::{File, ReadDir},
    path::PathBuf,
};

use super::reply::{Problem, Status};

/// The maximum number of open files and folders.
pub(super) const MAX_HANDLES: usize = 1000;

/// An open file or folder.
#[derive(Debug)]
pub(super) enum Open {
    File { file: File, appends: bool },
    Folder { path: PathBuf, entries: ReadDir },
}

/// The open files and folders, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Handles {
    open: HashMap<u32, Open>,
    next: u32,
}

impl Handles {
    pub(super) fn add(&mut self, open: Open) -> Result<u32, Problem> {
        if self.open.len() >= MAX_HANDLES {
            return Err(Problem::new(Status::Failure, "too many open files"));
        }
        // At most MAX_HANDLES numbers are in use.
        while self.open.contains_key(&self.next) {
            self.next = self.next.wrapping_add(1);
        }
        let handle = self.next;
        self.open.insert(handle, open);
        self.next = self.next.wrapping_add(1);
        Ok(handle)
    }

    pub(super) fn find(&mut self, handle: &[u8]) -> Result<&mut Open, Problem> {
        let found = number(handle).and_then(|handle| self.open.get_mut(&handle));
        found.ok_or_else(unknown)
    }

    pub(super) fn file(&mut self, handle: &[u8]) -> Result<(&mut File, bool), Problem> {
        match self.find(handle)? {
            Open::File { file, appends } => Ok((file, *appends)),
            Open::Folder { .. } => Err(unknown()),
        }
    }

    pub(super) fn remove(&mut self, handle: &[u8]) -> Result<Open, Problem> {
        let removed = number(handle).and_then(|handle| self.open.remove(&handle));
        removed.ok_or_else(unknown)
    }
}

fn number(handle: &[u8]) -> Option<u32> {
    handle.try_into().ok().map(u32::from_be_bytes)
}

fn unknown() -> Problem {
    Problem::new(Status::Failure, "no such open file or folder")
}
