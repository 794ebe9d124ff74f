//! From a container's pipes into its log file, and to who is attached.

use bytes::{Buf, BytesMut};
use jiff::Timestamp;
use tokio::{io::AsyncReadExt, sync::watch};

use super::{
    file::Progress,
    place::LogFile,
    record::{self, LONGEST, Stream},
};
use crate::{sandbox::Output, streams::Attachment};

/// How much of the end is remembered, for explaining a failure.
const TAIL: usize = 2048;

/// Writes one run's records and tells followers.
#[derive(Debug)]
pub(crate) struct LogWriter {
    file: LogFile,
    progress: watch::Sender<Progress>,
    tail: Vec<u8>,
    /// The last record was a part of a line.
    amid_a_line: bool,
    failed: bool,
}

impl LogWriter {
    /// Over a file from [`super::LogStore::create`].
    pub(crate) fn new(file: LogFile, progress: watch::Sender<Progress>) -> Self {
        let (segment, length) = file.end();
        progress.send_replace(Progress {
            segment,
            length,
            ended: false,
        });
        Self {
            file,
            progress,
            tail: Vec::new(),
            amid_a_line: false,
            failed: false,
        }
    }

    fn append(&mut self, records: &[u8]) {
        if records.is_empty() || self.failed {
            return;
        }
        if self.file.is_full(records.len(), self.amid_a_line)
            && let Err(error) = self.file.rotate()
        {
            tracing::warn!(%error, "a container's log goes on in a file that is too large");
        }
        if let Err(error) = self.file.write(records) {
            // A full disk must not stop the container.
            tracing::warn!(%error, "a container's log could not be written; the rest is lost");
            self.failed = true;
            return;
        }
        self.amid_a_line = record::is_open(records);
        let (segment, length) = self.file.end();
        self.progress.send_modify(|progress| {
            (progress.segment, progress.length) = (segment, length);
        });
    }

    fn remember(&mut self, text: &[u8]) {
        self.tail.extend_from_slice(text);
        if self.tail.len() > 2 * TAIL {
            self.tail.drain(..self.tail.len() - TAIL);
        }
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.progress.send_modify(|progress| progress.ended = true);
    }
}

/// Splits what came into records; what is no whole line yet stays in `pending`.
fn split(pending: &mut BytesMut, stream: Stream, time: Timestamp, ended: bool, out: &mut Vec<u8>) {
    loop {
        let line = pending
            .iter()
            .take(LONGEST + 1)
            .position(|byte| *byte == b'\n');
        match line {
            Some(length) => {
                record::write(out, time, stream, true, &pending[..length]);
                pending.advance(length + 1);
            }
            None if pending.len() > LONGEST => {
                record::write(out, time, stream, false, &pending[..LONGEST]);
                pending.advance(LONGEST);
            }
            None => break,
        }
    }
    if ended && !pending.is_empty() {
        record::write(out, time, stream, true, pending);
        pending.clear();
    }
}

/// Copies what a container writes into the log, and to those who are attached,
/// until it ends, or `stop` comes true and what is in the pipes is read. Gives
/// the last of the text.
pub(crate) async fn capture(
    mut writer: LogWriter,
    output: Option<Output>,
    errors: Option<Output>,
    attachment: &Attachment,
    stop: watch::Receiver<bool>,
) -> String {
    let mut first = Source::new(output, Stream::Output);
    let mut second = Source::new(errors, Stream::Errors);
    let mut stop = Some(stop);
    let mut records = Vec::new();
    while first.pipe.is_some() || second.pipe.is_some() {
        let (source, read) = tokio::select! {
            read = first.read() => (&mut first, read),
            read = second.read() => (&mut second, read),
            () = stopped(&mut stop), if stop.is_some() => {
                stop = None;
                for source in [&mut first, &mut second] {
                    source.drain(&mut writer, attachment).await;
                }
                continue;
            }
        };
        let count = read.unwrap_or(0);
        if count == 0 {
            source.pipe = None;
        }
        let new = &source.pending[source.pending.len() - count..];
        attachment.tell(source.stream, new).await;
        source.record(count, &mut writer, &mut records);
    }
    String::from_utf8_lossy(&writer.tail).into_owned()
}

async fn stopped(stop: &mut Option<watch::Receiver<bool>>) {
    if let Some(stop) = stop {
        // The sender's end counts as a stop.
        let _ = stop.wait_for(|stop| *stop).await;
    }
}

struct Source {
    /// `None` at its end.
    pipe: Option<Output>,
    stream: Stream,
    pending: BytesMut,
    /// How much to read at once: more from those who write more.
    room: usize,
}

/// The least and the most that is read at once.
const ROOM: [usize; 2] = [256, 32 * 1024];

impl Source {
    fn new(pipe: Option<Output>, stream: Stream) -> Self {
        Self {
            pipe,
            stream,
            pending: BytesMut::new(),
            room: ROOM[0],
        }
    }

    /// Reads more into what is pending; never comes back at the end.
    async fn read(&mut self) -> std::io::Result<usize> {
        match &mut self.pipe {
            Some(pipe) => {
                self.pending.reserve(self.room);
                let count = pipe.read_buf(&mut self.pending).await?;
                if count >= self.room {
                    self.room = (self.room * 2).min(ROOM[1]);
                }
                Ok(count)
            }
            None => std::future::pending().await,
        }
    }

    /// Takes what is in the pipe now, and closes it.
    async fn drain(&mut self, writer: &mut LogWriter, attachment: &Attachment) {
        let mut records = Vec::new();
        let mut chunk = [0; 8192];
        while let Some(pipe) = &self.pipe {
            match pipe.read_now(&mut chunk) {
                Ok(count) if count > 0 => {
                    attachment.tell(self.stream, &chunk[..count]).await;
                    self.pending.extend_from_slice(&chunk[..count]);
                    self.record(count, writer, &mut records);
                }
                _ => self.pipe = None,
            }
        }
        self.record(0, writer, &mut records);
    }

    fn record(&mut self, count: usize, writer: &mut LogWriter, records: &mut Vec<u8>) {
        let new = self.pending.len().saturating_sub(count);
        writer.remember(&self.pending[new..]);
        records.clear();
        split(
            &mut self.pending,
            self.stream,
            Timestamp::now(),
            self.pipe.is_none(),
            records,
        );
        writer.append(records);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn split_all(chunks: &[&[u8]]) -> Vec<(bool, Vec<u8>)> {
        let (mut pending, mut out) = (BytesMut::new(), Vec::new());
        let time = Timestamp::UNIX_EPOCH;
        for chunk in chunks {
            pending.extend_from_slice(chunk);
            split(&mut pending, Stream::Output, time, false, &mut out);
        }
        split(&mut pending, Stream::Output, time, true, &mut out);
        out.split_inclusive(|byte| *byte == b'\n')
            .map(|line| record::parse(&line[..line.len() - 1]).unwrap())
            .map(|record| (record.full, record.text.to_vec()))
            .collect()
    }

    /// What was written just before the stop is in the pipe, but the reactor
    /// has had no chance to hear of it.
    #[tokio::test]
    async fn a_stop_takes_what_is_in_the_pipes() {
        use std::io::Write as _;

        use tokio::net::unix::pipe::Receiver;

        use crate::logs::LogLimits;

        let folder = tempfile::tempdir().unwrap();
        let limits = LogLimits::default();
        let file = LogFile::create(folder.path().to_owned(), 0, limits).unwrap();
        let (progress, _) = watch::channel(Progress::default());
        let writer = LogWriter::new(file, progress);
        let pipe = || {
            let (end, sender) = std::io::pipe().unwrap();
            let end = Receiver::from_owned_fd(end.into()).unwrap();
            (Some(Output::Pipe(end)), sender)
        };
        let ((output, mut words), (errors, _keep_open)) = (pipe(), pipe());
        words.write_all(b"last words\n").unwrap();
        let (_stop, stopped) = watch::channel(true);
        assert_eq!(
            capture(writer, output, errors, &Attachment::default(), stopped).await,
            "last words\n"
        );
        let text = std::fs::read_to_string(folder.path().join("0.log")).unwrap();
        assert!(text.ends_with("last words\n"), "{text}");
    }

    #[test]
    fn lines_over_several_reads() {
        let records = split_all(&[b"a\nb", b"c\n\n", b"end"]);
        let texts: Vec<_> = records.iter().map(|(_, text)| text.as_slice()).collect();
        assert_eq!(texts, [b"a" as &[u8], b"bc", b"", b"end"]);
        assert!(records.iter().all(|(full, _)| *full));
    }

    #[test]
    fn long_lines_are_split() {
        let long = vec![b'x'; LONGEST * 2 + 5];
        let records = split_all(&[&long, b"\n"]);
        let shape: Vec<_> = records
            .iter()
            .map(|(full, text)| (*full, text.len()))
            .collect();
        assert_eq!(shape, [(false, LONGEST), (false, LONGEST), (true, 5)]);
    }
}
