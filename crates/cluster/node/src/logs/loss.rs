//! Output that is missing in a container's log because it could not be written.

use std::{io, time::Duration};

use jiff::Timestamp;
use tokio::time::Instant;

use super::record;
use crate::sandbox::Stream;

/// Delay between attempts to write the log again.
pub(super) const RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// Output that is missing in a log.
#[derive(Debug)]
pub(super) struct Loss {
    bytes: u64,
    since: Timestamp,
    problem: String,
    /// The stream whose line is unfinished in the file.
    open: Option<Stream>,
    retry_at: Instant,
}

impl Loss {
    pub(super) fn new(since: Timestamp, open: Option<Stream>, error: &io::Error) -> Self {
        Self {
            bytes: 0,
            since,
            problem: error.to_string(),
            open,
            retry_at: Instant::now() + RETRY_INTERVAL,
        }
    }

    /// The number of bytes that are missing.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Counts further bytes.
    pub(super) fn add(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Returns true if the log must be written again, and schedules the next attempt.
    pub(super) fn is_retry_due(&mut self) -> bool {
        let now = Instant::now();
        let is_due = now >= self.retry_at;
        if is_due {
            self.retry_at = now + RETRY_INTERVAL;
        }
        is_due
    }

    /// The records that report the loss in the log.
    pub(super) fn report(&self, now: Timestamp) -> Vec<u8> {
        let (mut out, time) = (Vec::new(), record::stamp(now));
        if let Some(open) = self.open {
            record::write(&mut out, &time, open, true, b"");
        }
        let Self {
            bytes,
            since,
            problem,
            ..
        } = self;
        let text = format!(
            "[{bytes} bytes of output since {since:.3} are missing here: the log could not be written: {problem}]"
        );
        record::write(&mut out, &time, Stream::Errors, true, text.as_bytes());
        out
    }
}

/// Returns the record that reports that the rest of a stream could not be read.
pub(super) fn unread(now: Timestamp, stream: Stream, error: &io::Error) -> Vec<u8> {
    let name = match stream {
        Stream::Output => "standard output",
        Stream::Errors => "standard error",
    };
    let text = format!("[the rest of {name} is missing here: {error}]");
    let mut out = Vec::new();
    record::write(
        &mut out,
        &record::stamp(now),
        Stream::Errors,
        true,
        text.as_bytes(),
    );
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_report_ends_an_unfinished_line() {
        let error = io::Error::from_raw_os_error(28);
        let mut loss = Loss::new(Timestamp::UNIX_EPOCH, Some(Stream::Output), &error);
        loss.add(5);
        loss.add(7);
        let records = String::from_utf8(loss.report(Timestamp::UNIX_EPOCH)).unwrap();
        let time = "1970-01-01T00:00:00.000000000Z";
        let since = "1970-01-01T00:00:00.000Z";
        assert_eq!(
            records,
            format!(
                "{time} stdout F \n\
                 {time} stderr F [12 bytes of output since {since} are missing here: \
                 the log could not be written: No space left on device (os error 28)]\n"
            )
        );
    }
}
