//! Tests of logs that rotate while they are written and read.
#![allow(clippy::unwrap_used)]

use std::{fs, io, io::Write as _, sync::Arc, time::Duration};

use futures::StreamExt;
use longshore_node_api::{LogRequest, NodeLogs as _};
use longshore_testing::small_disk::{self, DISK};
use tokio::sync::watch;

use super::{
    LogLimits, LogReader, LogStore, LogWriter, Progress, capture, record::MAX_RECORD_TEXT,
    retention::RetentionTimes,
};
use crate::{sandbox::Output, streams::Attachment};

const LIMITS: LogLimits = LogLimits {
    max_size: 4000,
    max_files: 3,
};

/// Files are not kept for new readers, and readers have a long timeout.
const TIMES: RetentionTimes = RetentionTimes {
    connect: Duration::ZERO,
    first_reader: Duration::ZERO,
    reader: Duration::from_secs(60),
    trim: Duration::from_millis(5),
};

/// A log store with a container that writes, and a log reader.
struct Fixture {
    folder: tempfile::TempDir,
    store: Arc<LogStore>,
    reader: LogReader,
}

impl Fixture {
    fn new() -> Self {
        Self::with(TIMES)
    }

    fn with(times: RetentionTimes) -> Self {
        Self::limited(LIMITS, times)
    }

    fn limited(limits: LogLimits, times: RetentionTimes) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = LogStore::with_times(folder.path().to_owned(), limits, times);
        store.add_pod("u", vec!["c".to_owned()]);
        let reader = LogReader::new(store.clone());
        Self {
            folder,
            store,
            reader,
        }
    }

    /// Starts a run of the container, which ends when its pipe is dropped.
    fn run(&self, restart: u32) -> (io::PipeWriter, tokio::task::JoinHandle<String>) {
        let (sender, _) = watch::channel(Progress::default());
        let file = self.store.create("u", "c", restart, &sender).unwrap();
        let (end, pipe) = io::pipe().unwrap();
        let end = Output::pipe(end.into()).unwrap();
        let writer = LogWriter::new(file, sender);
        let capturing = tokio::spawn(async move {
            let (_keep, stop) = watch::channel(false);
            let attachment = Attachment::default();
            capture(writer, Some(end), None, &attachment, stop).await
        });
        (pipe, capturing)
    }

    /// Waits until at most this many files remain, and returns their names.
    async fn wait_for_files(&self, most: usize) -> Vec<String> {
        let trimmed = async {
            loop {
                let files = self.files();
                if files.len() <= most {
                    return files;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let trimmed = tokio::time::timeout(Duration::from_secs(60), trimmed).await;
        trimmed.unwrap_or_else(|_| panic!("{:?}", self.files()))
    }

    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path().join("u/c")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort_by_key(|name| name.len());
        names
    }

    async fn read(&self, query: LogRequest) -> Vec<String> {
        let mut stream = std::pin::pin!(self.reader.open(query).await.unwrap());
        let mut all = Vec::new();
        while let Some(chunk) = stream.next().await {
            all.extend_from_slice(&chunk.unwrap());
        }
        let text = String::from_utf8(all).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

fn query() -> LogRequest {
    LogRequest {
        uid: "u".to_owned(),
        ..LogRequest::default()
    }
}

fn following() -> LogRequest {
    LogRequest {
        follow: true,
        ..query()
    }
}

/// Writes numbered lines in small pieces; in total they fill many files.
async fn write(mut pipe: io::PipeWriter, lines: std::ops::Range<u32>) -> io::PipeWriter {
    for line in lines {
        writeln!(pipe, "line {line}").unwrap();
        if line % 40 == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    pipe
}

fn numbered(lines: std::ops::Range<u32>) -> Vec<String> {
    lines.map(|line| format!("line {line}")).collect()
}

#[tokio::test]
async fn followers_get_every_line_of_a_rotated_log() {
    let fixture = Fixture::new();
    let (pipe, capturing) = fixture.run(0);
    let followers = async {
        tokio::join!(
            fixture.read(following()),
            fixture.read(following()),
            async { drop(write(pipe, 0..3000).await) }
        )
    };
    let (first, second, ()) = followers.await;
    assert_eq!(first, numbered(0..3000));
    assert_eq!(second, first);
    capturing.await.unwrap();
    // The log has rotated many times, and the last files are kept.
    let files = fixture.wait_for_files(3).await;
    assert_eq!(files.len(), 3, "{files:?}");
    assert!(files.iter().all(|name| *name != "0.log"), "{files:?}");
    let sizes = files.iter().map(|name| {
        let path = fixture.folder.path().join("u/c").join(name);
        fs::metadata(path).unwrap().len()
    });
    assert!(sizes.into_iter().all(|size| size <= LIMITS.max_size));
}

/// The reader is slower than the container.
#[tokio::test]
async fn files_that_a_reader_needs_are_kept_within_limits() {
    let fixture = Fixture::new();
    let (mut pipe, capturing) = fixture.run(0);
    let mut slow = Box::pin(fixture.reader.open(following()).await.unwrap());
    let mut got = Vec::new();
    for part in [0..1500, 1500..1600, 1600..1700] {
        let last = format!("line {}\n", part.end - 1);
        pipe = write(pipe, part).await;
        while !got.ends_with(last.as_bytes()) {
            let next = tokio::time::timeout(Duration::from_secs(20), slow.next()).await;
            got.extend_from_slice(&next.unwrap().unwrap().unwrap());
        }
    }
    let text = String::from_utf8(got).unwrap();
    assert!(text.lines().eq(numbered(0..1700)));
    // Files that were read are removed as usual.
    fixture.wait_for_files(4).await;
    drop((pipe, slow));
    capturing.await.unwrap();
}

/// This many lines fill over a hundred files, although each read from the pipe
/// goes into one file.
const MANY: u32 = 400_000;

/// A container that writes as fast as possible.
fn write_fast(mut pipe: io::PipeWriter, lines: u32) -> tokio::task::JoinHandle<()> {
    tokio::task::spawn_blocking(move || {
        let text: String = numbered(0..lines)
            .iter()
            .map(|line| format!("{line}\n"))
            .collect();
        pipe.write_all(text.as_bytes()).unwrap();
    })
}

#[tokio::test]
async fn a_container_waits_for_a_slow_reader_without_losing_lines() {
    let fixture = Fixture::new();
    let (pipe, capturing) = fixture.run(0);
    let mut slow = Box::pin(fixture.reader.open(following()).await.unwrap());
    let writing = write_fast(pipe, MANY);
    // The container blocks when the limit of files for the reader is reached.
    let full = async {
        while fixture.files().len() < 30 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), full)
        .await
        .unwrap();
    let mut got = Vec::new();
    while let Some(chunk) = slow.next().await {
        got.extend_from_slice(&chunk.unwrap());
        assert!(fixture.files().len() <= 30);
    }
    writing.await.unwrap();
    capturing.await.unwrap();
    let text = String::from_utf8(got).unwrap();
    assert!(text.lines().eq(numbered(0..MANY)));
}

#[tokio::test]
async fn a_reader_that_never_reads_is_dropped_with_an_error() {
    let fixture = Fixture::with(RetentionTimes {
        reader: Duration::from_millis(20),
        ..TIMES
    });
    let (sender, _) = watch::channel(Progress::default());
    let file = fixture.store.create("u", "c", 0, &sender).unwrap();
    let (end, pipe) = io::pipe().unwrap();
    let end = Output::pipe(end.into()).unwrap();
    let (report, mut given_up) = tokio::sync::mpsc::unbounded_channel();
    let writer = LogWriter::new(file, sender).on_readers_dropped(move |readers| {
        let _ = report.send(readers);
    });
    let capturing = tokio::spawn(async move {
        let (_keep, stop) = watch::channel(false);
        capture(writer, Some(end), None, &Attachment::default(), stop).await
    });
    let mut idle = Box::pin(fixture.reader.open(following()).await.unwrap());
    write_fast(pipe, MANY).await.unwrap();
    capturing.await.unwrap();
    assert_eq!(given_up.recv().await, Some(1));
    // The reader neither blocked the container nor filled the disk.
    fixture.wait_for_files(3).await;
    // The remaining output has no gap, and the error is reported once.
    let (mut got, mut failure) = (Vec::new(), None);
    while let Some(chunk) = idle.next().await {
        match chunk {
            Ok(chunk) => got.extend_from_slice(&chunk),
            Err(error) => failure = Some(error.to_string()),
        }
    }
    let lines = u32::try_from(got.iter().filter(|byte| **byte == b'\n').count()).unwrap();
    assert!(
        String::from_utf8(got)
            .unwrap()
            .lines()
            .eq(numbered(0..lines))
    );
    assert!(failure.unwrap().contains("lines are lost"));
}

#[tokio::test]
async fn recent_files_are_kept_for_new_readers() {
    let fixture = Fixture::with(RetentionTimes {
        connect: Duration::from_secs(3600),
        ..TIMES
    });
    let (pipe, capturing) = fixture.run(0);
    drop(write(pipe, 0..1000).await);
    capturing.await.unwrap();
    assert!(fixture.files().len() > 3);
    assert_eq!(fixture.read(following()).await, numbered(0..1000));
    // A later agent keeps only the usual number of files.
    let later = LogStore::new(fixture.folder.path().to_owned(), LIMITS);
    later.keep_only(&|_| true);
    assert_eq!(fixture.files().len(), 3);
}

#[tokio::test]
async fn kept_files_are_read_as_one_log() {
    let fixture = Fixture::new();
    let (pipe, capturing) = fixture.run(0);
    drop(write(pipe, 0..1000).await);
    capturing.await.unwrap();
    let all = fixture.read(query()).await;
    let kept = u32::try_from(all.len()).unwrap();
    assert!((100..1000).contains(&kept), "{kept}");
    assert_eq!(all, numbered(1000 - kept..1000));
    // Tails span files.
    for count in [0, 1, 30, 99, 170, 5000] {
        let tail = LogRequest {
            tail_lines: Some(count),
            ..query()
        };
        let wanted = u32::try_from(count).unwrap().min(kept);
        assert_eq!(fixture.read(tail).await, numbered(1000 - wanted..1000));
    }
    // With `since`, files that were written long before are not opened.
    let timed = LogRequest {
        timestamps: true,
        ..query()
    };
    let timed = fixture.read(timed).await;
    let at = timed.len() / 2;
    let time = |line: &str| line.split(' ').next().unwrap().parse().unwrap();
    let since = LogRequest {
        since: Some(time(&timed[at])),
        ..query()
    };
    let first = timed.iter().position(|line| time(line) == time(&timed[at]));
    assert_eq!(fixture.read(since).await, all[first.unwrap()..]);

    // A later agent finds the same log and continues it.
    let later = LogStore::new(fixture.folder.path().to_owned(), LIMITS);
    let later = LogReader::new(later);
    let named = LogRequest {
        container: "c".to_owned(),
        tail_lines: Some(1),
        ..query()
    };
    let mut stream = std::pin::pin!(later.open(named).await.unwrap());
    assert_eq!(stream.next().await.unwrap().unwrap(), "line 999\n");
    let (pipe, capturing) = fixture.run(0);
    drop(write(pipe, 1000..1010).await);
    capturing.await.unwrap();
    assert!(fixture.read(query()).await.ends_with(&numbered(990..1010)));
}

#[tokio::test]
async fn files_of_unreachable_runs_are_removed() {
    let fixture = Fixture::new();
    for run in 0..3 {
        let (pipe, capturing) = fixture.run(run);
        drop(write(pipe, 0..300).await);
        capturing.await.unwrap();
    }
    let files = fixture.files();
    assert!(
        files.iter().all(|name| !name.starts_with("0.")),
        "{files:?}"
    );
    let previous = LogRequest {
        previous: true,
        ..query()
    };
    let last = fixture.read(previous).await;
    assert_eq!(last.last().unwrap(), "line 299");
}

#[tokio::test]
async fn a_long_line_stays_in_one_file_unless_it_is_too_long() {
    let fixture = Fixture::new();
    let (mut pipe, capturing) = fixture.run(0);
    let reading = fixture.read(following());
    let long = "x".repeat(MAX_RECORD_TEXT * 3);
    let writing = async {
        let text = format!("before\n{long}\nafter\n");
        let written = tokio::task::spawn_blocking(move || pipe.write_all(text.as_bytes()));
        written.await.unwrap().unwrap();
    };
    let (lines, ()) = tokio::join!(reading, writing);
    assert_eq!(lines, ["before", &long, "after"]);
    capturing.await.unwrap();
}

/// A line that never ends, such as a progress bar that is redrawn, or the output of a program that
/// writes no newlines.
#[tokio::test]
async fn files_do_not_exceed_their_maximum_size_whatever_is_written() {
    const MAX_SIZE: u64 = 100_000;
    let limits = LogLimits {
        max_size: MAX_SIZE,
        max_files: 3,
    };
    let bar = "\r 10% of the steps".repeat(100);
    let texts = ["x".repeat(40_000), bar, format!("{}\n", "y".repeat(30_000))];
    for text in texts {
        let fixture = Fixture::limited(limits, TIMES);
        let (mut pipe, capturing) = fixture.run(0);
        let written = tokio::task::spawn_blocking(move || {
            let mut sent = 0;
            while sent < 10 * 100_000 {
                pipe.write_all(text.as_bytes()).unwrap();
                sent += text.len();
            }
        });
        written.await.unwrap();
        capturing.await.unwrap();
        fixture.wait_for_files(3).await;
        let folder = fixture.folder.path().join("u/c");
        let files = fs::read_dir(folder).unwrap();
        let sizes: Vec<u64> = files
            .map(|file| file.unwrap().metadata().unwrap().len())
            .collect();
        assert!(sizes.iter().all(|size| *size <= MAX_SIZE), "{sizes:?}");
        assert!(sizes.iter().sum::<u64>() > MAX_SIZE, "{sizes:?}");
    }
}

/// A log on a small disk, and the file that fills the disk.
struct FullDisk {
    reader: LogReader,
    pipe: Option<io::PipeWriter>,
    capturing: tokio::task::JoinHandle<String>,
    filler: std::path::PathBuf,
    /// The number of bytes of output so far.
    said: usize,
}

impl FullDisk {
    fn new(disk: &std::path::Path, name: &str) -> Self {
        let limits = LogLimits::default();
        let store = LogStore::with_times(disk.join(name), limits, TIMES);
        store.add_pod("u", vec!["c".to_owned()]);
        let (sender, _) = watch::channel(Progress::default());
        let file = store.create("u", "c", 0, &sender).unwrap();
        let (end, pipe) = io::pipe().unwrap();
        let end = Output::pipe(end.into()).unwrap();
        let writer = LogWriter::new(file, sender);
        let capturing = tokio::spawn(async move {
            let (_keep, stop) = watch::channel(false);
            capture(writer, Some(end), None, &Attachment::default(), stop).await
        });
        Self {
            reader: LogReader::new(store),
            pipe: Some(pipe),
            capturing,
            filler: disk.join("filler"),
            said: 0,
        }
    }

    fn say(&mut self, text: &str) {
        self.said += text.len();
        let pipe = self.pipe.as_mut().unwrap();
        pipe.write_all(text.as_bytes()).unwrap();
    }

    /// Fills the disk completely, including the last block of the log.
    async fn fill(&mut self) {
        let mut file = fs::File::create(&self.filler).unwrap();
        while file.write_all(&[1; 4096]).is_ok() {}
        for _ in 0..300 {
            self.say("some output\n");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn lines(&self) -> Vec<String> {
        let mut stream = std::pin::pin!(self.reader.open(query()).await.unwrap());
        let mut all = Vec::new();
        while let Some(chunk) = stream.next().await {
            all.extend_from_slice(&chunk.unwrap());
        }
        let text = String::from_utf8(all).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    /// Waits until all output is in the log or reported as lost, and returns the lines.
    async fn complete(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for _ in 0..1500 {
            lines = self.lines().await;
            let bytes = |line: &String| match line.strip_prefix('[') {
                Some(report) => {
                    assert!(report.contains("No space left on device"), "{report}");
                    let (bytes, _) = report.split_once(" bytes of output since ").unwrap();
                    bytes.parse::<usize>().unwrap()
                }
                None => line.len() + 1,
            };
            if lines.iter().map(bytes).sum::<usize>() == self.said {
                return lines;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("output of {} bytes, but {lines:?}", self.said);
    }
}

fn is_report(line: &str) -> bool {
    line.starts_with('[')
}

/// Not a test: runs with a small disk, in a separate process.
#[tokio::test]
#[ignore = "the child of the test below"]
async fn child_on_a_small_disk() {
    let Some(disk) = std::env::var_os(DISK).map(std::path::PathBuf::from) else {
        return;
    };
    // The log goes on while the container runs.
    let mut log = FullDisk::new(&disk, "running");
    log.say("first\n");
    assert_eq!(log.complete().await, ["first"]);
    log.fill().await;
    fs::remove_file(&log.filler).unwrap();
    let lines = log.complete().await;
    assert!(lines.iter().any(|line| is_report(line)), "{lines:?}");
    log.say("last\n");
    let lines = log.complete().await;
    assert_eq!(lines.last().unwrap(), "last");
    log.pipe = None;
    let capturing = std::mem::replace(&mut log.capturing, tokio::spawn(async { String::new() }));
    assert!(capturing.await.unwrap().ends_with("some output\nlast\n"));

    // The container ends while the disk is full.
    let mut log = FullDisk::new(&disk, "ended");
    log.say("first\n");
    assert_eq!(log.complete().await, ["first"]);
    log.fill().await;
    log.say("last\n");
    log.pipe = None;
    let capturing = std::mem::replace(&mut log.capturing, tokio::spawn(async { String::new() }));
    assert!(capturing.await.unwrap().ends_with("last\n"));
    tokio::time::sleep(Duration::from_millis(500)).await;
    fs::remove_file(&log.filler).unwrap();
    let lines = log.complete().await;
    assert!(lines.iter().any(|line| is_report(line)), "{lines:?}");
}

#[test]
fn a_log_continues_after_the_disk_was_full_and_reports_what_it_lost() {
    let folder = tempfile::tempdir().unwrap();
    small_disk::run_child(folder.path(), "1m", "logs::tests::child_on_a_small_disk");
}

/// The command has ended, but another process of the container holds its output.
#[tokio::test]
async fn output_that_cannot_be_read_is_reported_in_the_log() {
    let script = "import os, socket, threading, time; a, b = socket.socketpair(); \
        os.write(1, b'first\\nlast words'); \
        threading.Thread(target=os.splice, args=(a.fileno(), 1, 9), daemon=True).start(); \
        time.sleep(0.5); os.write(2, b'holds'); time.sleep(600)";
    let fixture = Fixture::new();
    let (near, far) = std::io::pipe().unwrap();
    let (mut holds, errors) = std::io::pipe().unwrap();
    let mut child = std::process::Command::new("python3")
        .args(["-c", script])
        .stdout(far)
        .stderr(errors)
        .spawn()
        .unwrap();
    std::io::Read::read_exact(&mut holds, &mut [0; 5]).unwrap();
    let (sender, _) = watch::channel(Progress::default());
    let file = fixture.store.create("u", "c", 0, &sender).unwrap();
    let writer = LogWriter::new(file, sender);
    let output = Output::pipe(near.into()).unwrap();
    let (_stop, stop) = watch::channel(true);
    capture(writer, Some(output), None, &Attachment::default(), stop).await;
    child.kill().unwrap();
    child.wait().unwrap();
    let lines = fixture.read(query()).await;
    let expected = "[the rest of standard output is missing here: the command has ended, but";
    assert!(
        lines.iter().any(|line| line.starts_with(expected)),
        "{lines:?}"
    );
}
