//! Uploads data of a known size to a signed URL, without credentials and without a copy of it.

use std::{
    io::{self, Read},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use reqwest::{Body, Response, header::CONTENT_LENGTH};
use tokio::sync::mpsc;

use super::{
    RetryPolicy, SignedUrl,
    http::upload_client,
    reason::innermost,
    refusal::{Meaning, Refusal},
};

/// The number of bytes to read at once.
const PIECE: usize = 256 * 1024;
/// The number of pieces that are read ahead.
const AHEAD: usize = 4;
/// How long the store may take no data and send no response.
const SILENCE: Duration = Duration::from_secs(120);

/// Why data cannot be uploaded to its signed URL.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PutError {
    /// The signature is invalid or has expired.
    #[error(
        "the store denies the upload to {place} ({problem}): the signed URL has expired after at most 7 days, or its signer may not write there"
    )]
    Refused {
        /// The object, without the signature.
        place: String,
        /// The store's message.
        problem: String,
    },
    /// No successful response after several attempts.
    #[error(
        "cannot upload to {place}: {problem} (after {attempts} attempts); pods must reach the store at the same address as the client"
    )]
    Failed {
        /// The object, without the signature.
        place: String,
        /// The last error.
        problem: String,
        /// The number of attempts.
        attempts: u32,
    },
    /// The data cannot be read.
    #[error("cannot read what to upload to {place}: {source}")]
    Read {
        /// The object, without the signature.
        place: String,
        /// The cause.
        source: io::Error,
    },
}

/// Uploads `size` bytes. Each attempt reads what `open` returns; that of the successful attempt is
/// returned. Does not need a runtime.
///
/// # Errors
/// See [`PutError`]. Temporary problems are retried.
pub fn put<R: Read + Send + 'static>(
    url: &SignedUrl,
    size: u64,
    retries: RetryPolicy,
    open: impl Fn() -> R + Sync,
) -> Result<R, PutError> {
    let failed = |problem: String| PutError::Failed {
        place: url.place(),
        problem,
        attempts: 0,
    };
    let send = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| failed(error.to_string()))?;
        runtime.block_on(send(url, size, retries, &open))
    };
    // On its own thread, because the caller may run in a runtime.
    let done = std::thread::scope(|scope| scope.spawn(send).join());
    done.unwrap_or_else(|_| Err(failed("the upload was interrupted".to_owned())))
}

async fn send<R: Read + Send + 'static>(
    url: &SignedUrl,
    size: u64,
    retries: RetryPolicy,
    open: impl Fn() -> R,
) -> Result<R, PutError> {
    let client = upload_client().map_err(|error| failed(url, innermost(&error), 0))?;
    let mut attempts = 0;
    loop {
        attempts += 1;
        let problem = match attempt(&client, url, size, open(), attempts).await? {
            Ok(sent) => return Ok(sent),
            Err(problem) => problem,
        };
        if attempts >= retries.attempts {
            return Err(problem);
        }
        let wait = retries.wait(attempts);
        tracing::warn!(%problem, ?wait, "trying again");
        tokio::time::sleep(wait).await;
    }
}

/// Sends the data once. The inner error is a temporary problem.
async fn attempt<R: Read + Send + 'static>(
    client: &reqwest::Client,
    url: &SignedUrl,
    size: u64,
    mut reader: R,
    attempts: u32,
) -> Result<Result<R, PutError>, PutError> {
    let (sender, receiver) = mpsc::channel::<io::Result<Bytes>>(AHEAD);
    let reading = tokio::task::spawn_blocking(move || {
        loop {
            let mut piece = vec![0; PIECE];
            let read = match reader.read(&mut piece) {
                Ok(0) => return Ok(reader),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Ok(count) => {
                    piece.truncate(count);
                    Ok(Bytes::from(piece))
                }
                Err(error) => {
                    let kind = error.kind();
                    let _ = sender.blocking_send(Err(kind.into()));
                    return Err(error);
                }
            };
            // The request has ended.
            if sender.blocking_send(read).is_err() {
                return Ok(reader);
            }
        }
    });
    let taken = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&taken);
    let body = futures::stream::unfold(receiver, move |mut receiver| {
        let counter = Arc::clone(&counter);
        async move {
            let piece = receiver.recv().await?;
            counter.fetch_add(1, Ordering::Relaxed);
            Some((piece, receiver))
        }
    });
    let request = client
        .put(url.secret())
        .header(CONTENT_LENGTH, size)
        // Azure requires it; the others ignore it.
        .header("x-ms-blob-type", "BlockBlob")
        .body(Body::wrap_stream(body));
    let mut sending = Box::pin(request.send());
    let mut known = 0;
    let response = loop {
        match tokio::time::timeout(SILENCE, &mut sending).await {
            Ok(response) => break response,
            Err(_) => {
                let now = taken.load(Ordering::Relaxed);
                if now == known {
                    let problem = format!("no response for {} s", SILENCE.as_secs());
                    return Ok(Err(failed(url, problem, attempts)));
                }
                known = now;
            }
        }
    };
    drop(sending);
    let refused = match response {
        Ok(response) if response.status().is_success() => None,
        Ok(response) => Some(refusal(url, response, attempts).await),
        Err(error) => Some(Ok(failed(url, innermost(&error), attempts))),
    };
    // The request has ended, so this ends, too.
    let read = reading
        .await
        .map_err(|error| failed(url, error.to_string(), attempts))?;
    let reader = read.map_err(|source| PutError::Read {
        place: url.place(),
        source,
    })?;
    match refused {
        None => Ok(Ok(reader)),
        Some(problem) => problem.map(Err),
    }
}

fn failed(url: &SignedUrl, problem: String, attempts: u32) -> PutError {
    PutError::Failed {
        place: url.place(),
        problem,
        attempts,
    }
}

/// Interprets an error status. `Ok` is a temporary problem.
async fn refusal(url: &SignedUrl, response: Response, attempts: u32) -> Result<PutError, PutError> {
    let Refusal { meaning, problem } = Refusal::read(response).await;
    match meaning {
        Meaning::Denied => Err(PutError::Refused {
            place: url.place(),
            problem,
        }),
        Meaning::Temporary => Ok(failed(url, problem, attempts)),
        Meaning::Missing | Meaning::Lasting => Err(failed(url, problem, attempts)),
    }
}
