//! Commands whose output is collected: exec probes and hooks.

use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    sync::{oneshot, watch},
};

use super::{Container, exec::command};
use crate::sandbox::{Output, OutputUntilExit, Spawner};
use longshore_node_api::StreamsWanted;

/// A command that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Collected {
    pub(crate) code: i32,
    /// The beginning of standard output, followed by the beginning of standard error.
    pub(crate) output: String,
}

/// The command could not be started, for this reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CollectError(pub(crate) String);

/// Runs a command in a container until it ends. Output beyond `limit` bytes is
/// discarded. If the future is dropped, the command is killed.
pub(crate) async fn collect(
    spawner: &Spawner,
    container: &Container,
    words: &[String],
    limit: usize,
) -> Result<Collected, CollectError> {
    let gone = || CollectError("the container has ended".to_owned());
    let host = container.process.upgrade().ok_or_else(gone)?;
    let wanted = StreamsWanted {
        output: true,
        errors: true,
        ..StreamsWanted::default()
    };
    let started = spawner
        .run_in(&host, &command(&container.command, words, wanted))
        .await
        .map_err(|error| CollectError(error.to_string()))?;
    drop(host);
    let (ended, ending) = watch::channel(false);
    let (keep, dropped) = oneshot::channel::<()>();
    let process = started.process;
    let (report, code) = oneshot::channel();
    // Runs in a separate task, so that nothing waits for a process that ends slowly.
    tokio::spawn(async move {
        let code = tokio::select! {
            code = process.wait() => code,
            _ = dropped => {
                process.kill();
                process.wait().await
            }
        };
        ended.send_replace(true);
        let _ = report.send(code);
    });
    let ends = started.ends;
    let (output, errors) = tokio::join!(
        beginning(ends.output, ending.clone(), limit),
        beginning(ends.errors, ending, limit),
    );
    let code = code.await.map_err(|_| gone())?;
    drop(keep);
    let mut all = output;
    all.extend_from_slice(&errors);
    all.truncate(limit);
    Ok(Collected {
        code,
        output: String::from_utf8_lossy(&all).into_owned(),
    })
}

/// Reads all output and keeps its beginning.
async fn beginning(output: Option<Output>, ended: watch::Receiver<bool>, limit: usize) -> Vec<u8> {
    match output {
        Some(output) => keep_beginning(OutputUntilExit::new(output, ended), limit).await,
        None => Vec::new(),
    }
}

async fn keep_beginning(mut output: impl AsyncRead + Unpin, limit: usize) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut chunk = vec![0; 4096];
    loop {
        let note;
        let (new, ended) = match output.read(&mut chunk).await {
            Ok(0) => return kept,
            Ok(count) => (&chunk[..count], false),
            Err(error) => {
                note = format!("[the rest is missing: {error}]");
                (note.as_bytes(), true)
            }
        };
        let left = limit.saturating_sub(kept.len());
        kept.extend_from_slice(&new[..new.len().min(left)]);
        if ended {
            return kept;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::{
        io,
        pin::Pin,
        task::{Context, Poll},
    };

    use tokio::io::ReadBuf;

    use super::*;

    #[tokio::test]
    async fn output_beyond_the_limit_is_discarded() {
        let text = vec![b'x'; 100_000];
        assert_eq!(keep_beginning(text.as_slice(), 10).await, [b'x'; 10]);
        assert_eq!(keep_beginning(&b"all"[..], 10).await, b"all");
    }

    #[tokio::test]
    async fn output_that_cannot_be_read_is_reported() {
        let kept = keep_beginning(b"beginning".chain(Failing), 100).await;
        let kept = String::from_utf8(kept).unwrap();
        assert_eq!(kept, "beginning[the rest is missing: held]");
    }

    /// Output that cannot be read.
    struct Failing;

    impl AsyncRead for Failing {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            _: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Poll::Ready(Err(io::Error::other("held")))
        }
    }
}
