//! A standard input that is not sent to a task: what comes from it is told.

use std::{io, os::fd::AsFd};

use rustix::fs::FileType;
use tokio::net::unix::pipe::Receiver;

/// What is said about it.
pub(crate) const IGNORED: &str = "the standard input is not sent to the task: add -i to send it";

/// A standard input that nobody reads. A pipe to which nothing is written, as programs
/// pass it on, is not worth a word.
#[derive(Default)]
pub(crate) struct IgnoredInput {
    /// A pipe from which nothing has come yet.
    waits: Option<Receiver>,
    is_there: bool,
}

impl IgnoredInput {
    /// Looks at the standard input from now on.
    pub(crate) fn watch() -> Self {
        let stdin = io::stdin();
        let found = rustix::fs::fstat(stdin.as_fd());
        let kind = found.map(|found| FileType::from_raw_mode(found.st_mode));
        let is_stream = matches!(kind, Ok(FileType::Fifo | FileType::Socket));
        if !is_stream && !matches!(kind, Ok(FileType::RegularFile)) {
            return Self::default();
        }
        let stream = stdin.as_fd().try_clone_to_owned().ok();
        // Nothing is read: the pipe, which others may have, need not be non-blocking.
        let waits = stream
            .filter(|_| is_stream)
            .and_then(|stream| Receiver::from_owned_fd_unchecked(stream).ok());
        Self {
            waits,
            is_there: has_data(&stdin),
        }
    }

    /// Resolves once: when something has come. May be given up.
    pub(crate) async fn arrives(&mut self) {
        if let Some(input) = self.waits.as_ref().filter(|_| !self.is_there) {
            // Without data it is the end: then nothing comes any more.
            self.is_there = input.readable().await.is_ok() && has_data(input);
            self.waits = None;
        }
        match std::mem::take(&mut self.is_there) {
            true => self.waits = None,
            false => std::future::pending().await,
        }
    }

    /// Whether something has come of which [`IgnoredInput::arrives`] has not told.
    pub(crate) fn has_come(&self) -> bool {
        self.is_there || self.waits.as_ref().is_some_and(has_data)
    }
}

fn has_data(input: &impl AsFd) -> bool {
    rustix::io::ioctl_fionread(input).is_ok_and(|bytes| bytes > 0)
}
