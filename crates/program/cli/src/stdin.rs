//! Detects data on standard input that is not passed to a task.

use std::{io, os::fd::AsFd};

use rustix::fs::FileType;
use tokio::net::unix::pipe::Receiver;

/// The warning about ignored input.
pub(crate) const IGNORED: &str = "stdin is not sent to the task: add -i to send it";

/// Standard input that is not read. An inherited pipe without data causes no warning.
#[derive(Default)]
pub(crate) struct IgnoredInput {
    /// A pipe without data so far.
    waits: Option<Receiver>,
    is_there: bool,
}

impl IgnoredInput {
    /// Starts watching standard input.
    pub(crate) fn watch() -> Self {
        let stdin = io::stdin();
        let found = rustix::fs::fstat(stdin.as_fd());
        let kind = found.map(|found| FileType::from_raw_mode(found.st_mode));
        let is_stream = matches!(kind, Ok(FileType::Fifo | FileType::Socket));
        if !is_stream && !matches!(kind, Ok(FileType::RegularFile)) {
            return Self::default();
        }
        let stream = stdin.as_fd().try_clone_to_owned().ok();
        // Nothing is read, so the pipe, which may be shared, does not have to be non-blocking.
        let waits = stream
            .filter(|_| is_stream)
            .and_then(|stream| Receiver::from_owned_fd_unchecked(stream).ok());
        Self {
            waits,
            is_there: has_data(&stdin),
        }
    }

    /// Resolves once, when data has arrived. Cancel-safe.
    pub(crate) async fn arrives(&mut self) {
        if let Some(input) = self.waits.as_ref().filter(|_| !self.is_there) {
            // Readable without data means end of file.
            self.is_there = input.readable().await.is_ok() && has_data(input);
            self.waits = None;
        }
        match std::mem::take(&mut self.is_there) {
            true => self.waits = None,
            false => std::future::pending().await,
        }
    }

    /// Returns true if data has arrived that [`IgnoredInput::arrives`] has not reported.
    pub(crate) fn has_come(&self) -> bool {
        self.is_there || self.waits.as_ref().is_some_and(has_data)
    }
}

fn has_data(input: &impl AsFd) -> bool {
    rustix::io::ioctl_fionread(input).is_ok_and(|bytes| bytes > 0)
}
