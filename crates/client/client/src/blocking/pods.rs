//! Pods: binding, eviction, and logs as readers.

use std::io::{self, Read};

use bytes::{Buf, Bytes};
use futures::Stream;

use super::{Item, Taken, View, run, waits};
use crate::{
    error::Result,
    kinds::Pod,
    options::{DeleteOptions, LogOptions},
    pods::LogLine,
};

impl View<Pod> {
    waits! {
        "View": bind(name: &str, node: &str) -> ();
        "View": evict(name: &str, options: &DeleteOptions) -> ();
    }

    /// Like [`View::logs`](crate::View::logs), to read from.
    ///
    /// # Errors
    /// The errors of [`View::logs`](crate::View::logs).
    pub fn logs(&self, name: &str, options: &LogOptions) -> Result<Logs> {
        run(self.inner().logs(name, options)).map(Logs::new)
    }

    /// Like [`View::logs_all`](crate::View::logs_all).
    ///
    /// # Errors
    /// The errors of [`View::logs_all`](crate::View::logs_all).
    pub fn logs_all(
        &self,
        name: &str,
        options: &LogOptions,
    ) -> Result<impl Iterator<Item = Result<LogLine>> + use<>> {
        run(self.inner().logs_all(name, options)).map(Taken::new)
    }
}

impl Item<Pod> {
    waits! { "Item": evict(options: &DeleteOptions) -> (); }

    /// Like [`Item::logs`](crate::Item::logs), to read from.
    ///
    /// # Errors
    /// The errors of [`Item::logs`](crate::Item::logs).
    pub fn logs(&self, options: &LogOptions) -> Result<Logs> {
        run(self.inner().logs(options)).map(Logs::new)
    }

    /// Like [`Item::logs_all`](crate::Item::logs_all).
    ///
    /// # Errors
    /// The errors of [`Item::logs_all`](crate::Item::logs_all).
    pub fn logs_all(
        &self,
        options: &LogOptions,
    ) -> Result<impl Iterator<Item = Result<LogLine>> + use<>> {
        run(self.inner().logs_all(options)).map(Taken::new)
    }
}

/// A reader of a container's log.
///
/// ```no_run
/// use std::io::{BufRead, BufReader};
/// # fn logs(pod: longshore_client::blocking::Item<longshore_client::kinds::Pod>) -> Result<(), Box<dyn std::error::Error>> {
/// for line in BufReader::new(pod.logs(&Default::default())?).lines() {
///     println!("{}", line?);
/// }
/// # Ok(())
/// # }
/// ```
pub struct Logs {
    pieces: Taken<Bytes>,
    /// The unread part of the last chunk.
    rest: Bytes,
}

impl Logs {
    fn new(stream: impl Stream<Item = Result<Bytes>> + Send + 'static) -> Self {
        Self {
            pieces: Taken::new(stream),
            rest: Bytes::new(),
        }
    }
}

impl Read for Logs {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() {
            match self.pieces.next() {
                None => return Ok(0),
                Some(Ok(piece)) => self.rest = piece,
                Some(Err(error)) => return Err(io::Error::other(error)),
            }
        }
        let length = buffer.len().min(self.rest.len());
        self.rest.copy_to_slice(&mut buffer[..length]);
        Ok(length)
    }
}

impl std::fmt::Debug for Logs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Logs").finish_non_exhaustive()
    }
}
