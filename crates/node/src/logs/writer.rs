//! From a container's pipes into its log file, and to who is attached.

use bytes::{Buf, BytesMut};
use jiff::Timestamp;
use tokio::{io::AsyncReadExt, sync::watch};

use super::{
    log_file::LogFile,
    record::{self, LONGEST},
    store::Progress,
};
use crate::{
    sandbox::{Output, Stream},
    streams::Attachment,
};

/// How much of the end is remembered, for explaining a failure.
const TAIL: usize = 2048;

/// Writes one run's records and notifies followers.
pub(crate) struct LogWriter {
    file: LogFile,
    progress: watch::Sender<Progress>,
    tail: Vec<u8>,
    /// The stream whose line the last record has left unfinished.
    open: Option<Stream>,
    failed: bool,
    gave_up: GaveUp,
}

/// Called with the number of readers that were given up because they did not
/// read in time.
type GaveUp = Box<dyn Fn(usize) + Send>;

impl std::fmt::Debug for LogWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogWriter").finish_non_exhaustive()
    }
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
            open: None,
            failed: false,
            gave_up: Box::new(|_| {}),
        }
    }

    /// Calls `gave_up` whenever readers are given up.
    pub(crate) fn on_given_up(mut self, gave_up: impl Fn(usize) + Send + 'static) -> Self {
        self.gave_up = Box::new(gave_up);
        self
    }

    /// Writes a stream's records. Waits for slow readers, until `stop` comes true.
    async fn append(
        &mut self,
        stream: Stream,
        records: &mut Vec<u8>,
        stop: &watch::Receiver<bool>,
    ) {
        if records.is_empty() || self.failed {
            return;
        }
        self.end_other_line(stream, records);
        if self.file.is_full(records.len(), self.open.is_some()) {
            match self.file.rotate(stop).await {
                Ok(0) => {}
                Ok(readers) => (self.gave_up)(readers),
                Err(error) => {
                    tracing::warn!(%error, "a container's log goes on in a file that is too large");
                }
            }
        }
        if let Err(error) = self.file.write(records) {
            // A full disk must not stop the container.
            tracing::warn!(%error, "a container's log could not be written; the rest is lost");
            self.failed = true;
            return;
        }
        self.open = record::is_open(records).then_some(stream);
        let (segment, length) = self.file.end();
        self.progress.send_modify(|progress| {
            (progress.segment, progress.length) = (segment, length);
        });
    }

    /// Ends the other stream's line before records of this one: readers join the parts
    /// of a line, whichever stream they came from.
    fn end_other_line(&self, stream: Stream, records: &mut Vec<u8>) {
        if let Some(other) = self.open.filter(|open| *open != stream) {
            let mut end = Vec::new();
            record::write(&mut end, &record::stamp(Timestamp::now()), other, true, b"");
            records.splice(..0, end);
        }
    }

    fn remember(&mut self, text: &[u8]) {
        let text = &text[text.len().saturating_sub(2 * TAIL)..];
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

/// Splits what came into records; what is no whole line yet stays in `pending`, unless
/// it has a carriage return: that is a state of a progress bar, which is to be seen now.
/// `open` says that the line's beginning was written already.
/// The first `searched` bytes of it are known to have no newline.
fn split(
    pending: &mut BytesMut,
    mut searched: usize,
    stream: Stream,
    time: Timestamp,
    (open, ended): (bool, bool),
    out: &mut Vec<u8>,
) {
    let time = &record::stamp(time);
    loop {
        let most = pending.len().min(LONGEST + 1);
        let begin = std::mem::take(&mut searched).min(most);
        let line = memchr::memchr(b'\n', &pending[begin..most]).map(|at| begin + at);
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
    let is_open = match out.is_empty() {
        true => open,
        false => record::is_open(out),
    };
    if ended && (is_open || !pending.is_empty()) {
        record::write(out, time, stream, true, pending);
        pending.clear();
    } else if pending.contains(&b'\r') {
        record::write(out, time, stream, false, pending);
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
    let ended = stop.clone();
    let mut stop = Some(stop);
    let mut records = Vec::new();
    while first.pipe.is_some() || second.pipe.is_some() {
        let (source, read) = tokio::select! {
            read = first.read() => (&mut first, read),
            read = second.read() => (&mut second, read),
            () = stopped(&mut stop), if stop.is_some() => {
                stop = None;
                for source in [&mut first, &mut second] {
                    source.drain(&mut writer, attachment, &ended).await;
                }
                continue;
            }
        };
        let count = read.unwrap_or(0);
        if count == 0 {
            source.pipe = None;
        }
        let new = &source.pending[source.pending.len() - count..];
        attachment.send(source.stream, new).await;
        source
            .record(count, &mut writer, &mut records, &ended)
            .await;
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
    async fn drain(
        &mut self,
        writer: &mut LogWriter,
        attachment: &Attachment,
        stop: &watch::Receiver<bool>,
    ) {
        let mut records = Vec::new();
        let mut chunk = [0; 8192];
        while let Some(pipe) = &self.pipe {
            match pipe.read_now(&mut chunk) {
                Ok(count) if count > 0 => {
                    attachment.send(self.stream, &chunk[..count]).await;
                    self.pending.extend_from_slice(&chunk[..count]);
                    self.record(count, writer, &mut records, stop).await;
                }
                _ => self.pipe = None,
            }
        }
        self.record(0, writer, &mut records, stop).await;
    }

    async fn record(
        &mut self,
        count: usize,
        writer: &mut LogWriter,
        records: &mut Vec<u8>,
        stop: &watch::Receiver<bool>,
    ) {
        let new = self.pending.len().saturating_sub(count);
        writer.remember(&self.pending[new..]);
        records.clear();
        let open = writer.open == Some(self.stream);
        split(
            &mut self.pending,
            new,
            self.stream,
            Timestamp::now(),
            (open, self.pipe.is_none()),
            records,
        );
        writer.append(self.stream, records, stop).await;
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
            let searched = pending.len();
            pending.extend_from_slice(chunk);
            split(
                &mut pending,
                searched,
                Stream::Output,
                time,
                (false, false),
                &mut out,
            );
        }
        split(
            &mut pending,
            0,
            Stream::Output,
            time,
            (false, true),
            &mut out,
        );
        out.split_inclusive(|byte| *byte == b'\n')
            .map(|line| record::parse(&line[..line.len() - 1]).unwrap())
            .map(|record| (record.full, record.text.to_vec()))
            .collect()
    }

    /// What was written just before the stop is in the pipe, but the reactor
    /// has had no chance to notice it.
    #[tokio::test]
    async fn a_stop_takes_what_is_in_the_pipes() {
        use std::io::Write as _;

        use tokio::net::unix::pipe::Receiver;

        use crate::logs::{LogLimits, retention::RetentionTimes};

        let folder = tempfile::tempdir().unwrap();
        let limits = LogLimits::default();
        let file = LogFile::create(
            folder.path().to_owned(),
            0,
            limits,
            RetentionTimes::default(),
        )
        .unwrap();
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
    fn a_progress_bar_is_written_before_its_line_ends() {
        let records = split_all(&[b"\r 10%", b"\r 42%", b" of it", b"\rdone\nnext"]);
        let records: Vec<_> = records
            .iter()
            .map(|(full, text)| (*full, String::from_utf8_lossy(text)))
            .collect();
        let expected = [
            (false, "\r 10%"),
            (false, "\r 42%"),
            (true, " of it\rdone"),
            (true, "next"),
        ];
        assert_eq!(records, expected.map(|(full, text)| (full, text.into())));
        // One that the container's end leaves open has an end, too.
        let records = split_all(&[b"\r 10%"]);
        assert_eq!(records, [(false, b"\r 10%".to_vec()), (true, Vec::new())]);
    }

    /// Readers join the parts of a line, so what another stream writes must not come
    /// between them.
    #[tokio::test]
    async fn a_line_of_another_stream_ends_a_progress_bar() {
        use crate::logs::{LogLimits, retention::RetentionTimes};

        let folder = tempfile::tempdir().unwrap();
        let limits = LogLimits::default();
        let file = LogFile::create(
            folder.path().to_owned(),
            0,
            limits,
            RetentionTimes::default(),
        )
        .unwrap();
        let (progress, _) = watch::channel(Progress::default());
        let (_stop, stop) = watch::channel(false);
        let mut writer = LogWriter::new(file, progress);
        let (bar, log) = (Stream::Errors, Stream::Output);
        for (stream, full, text) in [
            (bar, false, "\r 10%"),
            (log, true, "epoch 1"),
            (bar, false, "\r 20%"),
            (bar, true, "\rdone"),
        ] {
            let mut records = Vec::new();
            let time = record::stamp(Timestamp::UNIX_EPOCH);
            record::write(&mut records, &time, stream, full, text.as_bytes());
            writer.append(stream, &mut records, &stop).await;
        }
        let text = std::fs::read_to_string(folder.path().join("0.log")).unwrap();
        let lines: Vec<_> = text.lines().map(|line| &line[31..]).collect();
        let expected = [
            "stderr P \r 10%",
            "stderr F ",
            "stdout F epoch 1",
            "stderr P \r 20%",
            "stderr F \rdone",
        ];
        assert_eq!(lines, expected);
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
