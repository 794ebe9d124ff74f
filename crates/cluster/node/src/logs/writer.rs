//! Copies the output of a container into its log file and to attached clients.

use std::{io, time::Duration};

use bytes::{Buf, BytesMut};
use jiff::Timestamp;
use longshore_clock::Clock;
use tokio::{io::AsyncReadExt, sync::watch, time::Instant};

use super::{
    log_file::LogFile,
    loss::{self, Loss, RETRY_INTERVAL},
    record::{self, MAX_RECORD_TEXT},
    store::Progress,
};
use crate::{
    sandbox::{Output, Stream},
    streams::Attachment,
};

/// Number of bytes at the end of the output that are kept to explain a failure.
const TAIL_BYTES: usize = 2048;
/// The time for which a log whose container has ended waits for space for the line that reports
/// lost output.
const LOSS_REPORT_TIMEOUT: Duration = Duration::from_secs(600);

/// Writes the records of one run and notifies followers.
pub(crate) struct LogWriter {
    file: LogFile,
    progress: watch::Sender<Progress>,
    tail: Vec<u8>,
    /// The stream whose line the last record left unfinished.
    open: Option<Stream>,
    /// Output that could not be written since the last record.
    loss: Option<Loss>,
    on_dropped: OnReadersDropped,
    clock: Clock,
}

/// Called with the number of readers that were dropped because they did not
/// read in time.
type OnReadersDropped = Box<dyn Fn(usize) + Send>;

impl std::fmt::Debug for LogWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogWriter").finish_non_exhaustive()
    }
}

impl LogWriter {
    /// Creates a writer for a file from [`super::LogStore::create`].
    pub(crate) fn new(file: LogFile, progress: watch::Sender<Progress>) -> Self {
        Self {
            file,
            progress,
            tail: Vec::new(),
            open: None,
            loss: None,
            on_dropped: Box::new(|_| {}),
            clock: Clock::system(),
        }
    }

    /// Sets the clock of the lines' times.
    pub(crate) fn with_clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the callback for dropped readers.
    pub(crate) fn on_readers_dropped(
        mut self,
        on_dropped: impl Fn(usize) + Send + 'static,
    ) -> Self {
        self.on_dropped = Box::new(on_dropped);
        self
    }

    /// Writes the records of a stream, which contain this number of bytes of its
    /// output. Waits for slow readers until `stop` becomes true.
    async fn append(
        &mut self,
        stream: Stream,
        records: &mut Vec<u8>,
        bytes: u64,
        stop: &watch::Receiver<bool>,
    ) {
        if records.is_empty() {
            return;
        }
        if let Some(loss) = &mut self.loss {
            if !loss.is_retry_due() {
                return loss.add(bytes);
            }
            records.splice(..0, loss.report(self.clock.now()));
        } else {
            self.end_other_line(stream, records);
        }
        if self.file.is_full(records.len(), self.open.is_some()) {
            match self.file.rotate(stop).await {
                Ok(0) => {}
                Ok(readers) => (self.on_dropped)(readers),
                Err(error) if self.loss.is_none() => {
                    tracing::warn!(%error, "cannot rotate a container's log; its file exceeds the size limit");
                }
                // The loss has been reported.
                Err(_) => {}
            }
        }
        // A full disk must not block the container.
        match self.write(records) {
            Ok(()) => self.open = record::is_open(records).then_some(stream),
            Err(error) => self.lose(bytes, &error),
        }
    }

    /// Writes records and notifies followers.
    fn write(&mut self, records: &[u8]) -> io::Result<()> {
        self.file.write(records)?;
        if let Some(loss) = self.loss.take() {
            let (log, bytes) = (self.file.folder().display(), loss.bytes());
            tracing::info!(%log, bytes, "a container's log is written again; output in between is lost");
        }
        let (segment, length) = self.file.end();
        self.progress.send_modify(|progress| {
            (progress.segment, progress.length) = (segment, length);
        });
        Ok(())
    }

    /// Counts output that could not be written.
    fn lose(&mut self, bytes: u64, error: &io::Error) {
        let loss = self.loss.get_or_insert_with(|| {
            let log = self.file.folder().display();
            tracing::warn!(%log, %error, "cannot write a container's log; its output is lost until this is possible");
            Loss::new(self.clock.now(), self.open.take(), error)
        });
        loss.add(bytes);
    }

    /// Tries to write the line that reports lost output.
    fn report_loss(&mut self) {
        if let Some(loss) = &self.loss {
            let records = loss.report(self.clock.now());
            // If this fails, the loss remains to be reported.
            let _ = self.write(&records);
        }
    }

    /// Ends the log. If lost output cannot be reported yet, the log ends as soon as it is reported.
    fn end(mut self) {
        self.report_loss();
        if self.loss.is_none() {
            return;
        }
        tokio::spawn(async move {
            let give_up_at = Instant::now() + LOSS_REPORT_TIMEOUT;
            while let Some(loss) = &self.loss {
                // An open file would keep the space of a removed log.
                if Instant::now() > give_up_at || self.file.is_removed() {
                    let (log, bytes) = (self.file.folder().display(), loss.bytes());
                    tracing::warn!(%log, bytes, "a container's log has ended without the output that was lost");
                    return;
                }
                tokio::time::sleep(RETRY_INTERVAL).await;
                self.report_loss();
            }
        });
    }

    /// Ends the unfinished line of the other stream before records of this one, because readers
    /// join the parts of a line regardless of their stream.
    fn end_other_line(&self, stream: Stream, records: &mut Vec<u8>) {
        if let Some(other) = self.open.filter(|open| *open != stream) {
            let mut end = Vec::new();
            record::write(&mut end, &record::stamp(self.clock.now()), other, true, b"");
            records.splice(..0, end);
        }
    }

    fn remember(&mut self, text: &[u8]) {
        let text = &text[text.len().saturating_sub(2 * TAIL_BYTES)..];
        self.tail.extend_from_slice(text);
        if self.tail.len() > 2 * TAIL_BYTES {
            self.tail.drain(..self.tail.len() - TAIL_BYTES);
        }
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        // The agent may stop before a later attempt.
        self.report_loss();
        self.progress.send_modify(|progress| progress.ended = true);
    }
}

/// Splits output into records. An incomplete line stays in `pending` unless it contains a carriage
/// return, which indicates a progress bar that must be visible immediately. `open` is true if the
/// start of the line was already written. The first `searched` bytes are known to contain no
/// newline.
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
        let most = pending.len().min(MAX_RECORD_TEXT + 1);
        let begin = std::mem::take(&mut searched).min(most);
        let line = memchr::memchr(b'\n', &pending[begin..most]).map(|at| begin + at);
        match line {
            Some(length) => {
                record::write(out, time, stream, true, &pending[..length]);
                pending.advance(length + 1);
            }
            None if pending.len() > MAX_RECORD_TEXT => {
                record::write(out, time, stream, false, &pending[..MAX_RECORD_TEXT]);
                pending.advance(MAX_RECORD_TEXT);
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

/// Copies the output of a container into the log and to attached clients until
/// it ends, or until `stop` becomes true and the pipes are drained. Returns the
/// end of the text.
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
            () = tokio::time::sleep(RETRY_INTERVAL), if writer.loss.is_some() => {
                writer.report_loss();
                continue;
            }
            () = stopped(&mut stop), if stop.is_some() => {
                stop = None;
                for source in [&mut first, &mut second] {
                    source.drain(&mut writer, attachment, &ended).await;
                }
                continue;
            }
        };
        let count = match read {
            Ok(count) => count,
            Err(error) => {
                source.give_up(&error, &mut writer, &ended).await;
                continue;
            }
        };
        if count == 0 {
            source.pipe = None;
        }
        let new = &source.pending[source.pending.len() - count..];
        attachment.send(source.stream, new).await;
        source
            .record(count, &mut writer, &mut records, &ended)
            .await;
    }
    let tail = String::from_utf8_lossy(&writer.tail).into_owned();
    writer.end();
    tail
}

async fn stopped(stop: &mut Option<watch::Receiver<bool>>) {
    if let Some(stop) = stop {
        // A dropped sender counts as a stop.
        let _ = stop.wait_for(|stop| *stop).await;
    }
}

struct Source {
    /// `None` at the end of the output.
    pipe: Option<Output>,
    stream: Stream,
    pending: BytesMut,
    /// Number of bytes to read at once; it grows for containers that write
    /// much.
    read_size: usize,
}

/// Minimum number of bytes that are read at once.
const MIN_READ: usize = 256;
/// Maximum number of bytes that are read at once.
const MAX_READ: usize = 32 * 1024;

impl Source {
    fn new(pipe: Option<Output>, stream: Stream) -> Self {
        Self {
            pipe,
            stream,
            pending: BytesMut::new(),
            read_size: MIN_READ,
        }
    }

    /// Reads more into the pending buffer; never resolves at the end of the
    /// output.
    async fn read(&mut self) -> std::io::Result<usize> {
        match &mut self.pipe {
            Some(pipe) => {
                self.pending.reserve(self.read_size);
                let count = pipe.read_buf(&mut self.pending).await?;
                if count >= self.read_size {
                    self.read_size = (self.read_size * 2).min(MAX_READ);
                }
                Ok(count)
            }
            None => std::future::pending().await,
        }
    }

    /// Reads what the pipe contains, and closes it.
    async fn drain(
        &mut self,
        writer: &mut LogWriter,
        attachment: &Attachment,
        stop: &watch::Receiver<bool>,
    ) {
        let mut records = Vec::new();
        let mut chunk = [0; 8192];
        while let Some(pipe) = &mut self.pipe {
            match pipe.rest(&mut chunk).await {
                Ok(count) if count > 0 => {
                    attachment.send(self.stream, &chunk[..count]).await;
                    self.pending.extend_from_slice(&chunk[..count]);
                    self.record(count, writer, &mut records, stop).await;
                }
                Ok(_) => self.pipe = None,
                Err(error) => return self.give_up(&error, writer, stop).await,
            }
        }
        self.record(0, writer, &mut records, stop).await;
    }

    /// Ends the stream early, and reports this in the log.
    async fn give_up(
        &mut self,
        error: &io::Error,
        writer: &mut LogWriter,
        stop: &watch::Receiver<bool>,
    ) {
        let log = writer.file.folder().display();
        tracing::warn!(%log, %error, "the end of a container's output cannot be read");
        self.pipe = None;
        let mut records = Vec::new();
        self.record(0, writer, &mut records, stop).await;
        records = loss::unread(writer.clock.now(), self.stream, error);
        let bytes = records.len() as u64;
        writer
            .append(Stream::Errors, &mut records, bytes, stop)
            .await;
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
        let before = self.pending.len();
        split(
            &mut self.pending,
            new,
            self.stream,
            writer.clock.now(),
            (open, self.pipe.is_none()),
            records,
        );
        let bytes = (before - self.pending.len()) as u64;
        writer.append(self.stream, records, bytes, stop).await;
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

    /// Output immediately before the stop is in the pipe although the reactor has not noticed it.
    #[tokio::test]
    async fn a_stop_drains_the_pipes() {
        use std::io::Write as _;

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
            (Some(Output::pipe(end.into()).unwrap()), sender)
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
        // A progress bar that the container leaves unfinished is completed.
        let records = split_all(&[b"\r 10%"]);
        assert_eq!(records, [(false, b"\r 10%".to_vec()), (true, Vec::new())]);
    }

    /// Readers join the parts of a line, so records of another stream must not
    /// interleave.
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
            writer.append(stream, &mut records, 0, &stop).await;
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
        let long = vec![b'x'; MAX_RECORD_TEXT * 2 + 5];
        let records = split_all(&[&long, b"\n"]);
        let shape: Vec<_> = records
            .iter()
            .map(|(full, text)| (*full, text.len()))
            .collect();
        assert_eq!(
            shape,
            [
                (false, MAX_RECORD_TEXT),
                (false, MAX_RECORD_TEXT),
                (true, 5)
            ]
        );
    }
}
