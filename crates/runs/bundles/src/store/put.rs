//! Uploads data of a known size to a signed URL, without credentials and without a copy of it.

use std::{
    io::{self, Read},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use reqwest::{Body, Response, header::CONTENT_LENGTH};
use tokio::sync::mpsc;

use super::{
    RetryPolicy, SignedUrl,
    http::upload_client,
    reason::innermost,
    refusal::{Meaning, Refusal},
    retry::{Pauses, Temporary, retry_after},
};

/// The number of bytes to read at once.
const PIECE: usize = 256 * 1024;
/// The number of pieces that are read ahead.
const AHEAD: usize = 4;
/// The number of attempts in which the store may take no data and send no response.
const MOST_STALLS: u32 = 3;

/// An error of uploading data to its signed URL.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PutError {
    /// The signature has expired.
    #[error(
        "the store denies the upload to {place} ({problem}): the signed URL has expired, after at most 7 days, or with the temporary credentials of the client that submitted the run; submit longer runs with other credentials, or with `outputs_every` or `outputs_claim`"
    )]
    Expired {
        /// The object, without the signature.
        place: String,
        /// The store's message.
        problem: String,
    },
    /// The store has no space.
    #[error(
        "the store is full: it does not take {place} ({problem}); delete objects that are no longer needed, or raise its quota, and run the task again"
    )]
    Full {
        /// The object, without the signature.
        place: String,
        /// The store's message.
        problem: String,
    },
    /// The signature is invalid.
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

/// Uploads `size` bytes. Each attempt calls `open` and reads the result; the reader of the
/// successful attempt is returned. Does not need a runtime.
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
    // Uses its own thread, because the caller may be in a runtime.
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
    let (mut attempts, mut stalls, mut pauses) = (0, 0, Pauses::default());
    loop {
        attempts += 1;
        let upload = Upload {
            url,
            size,
            attempts,
            silence: retries.silence,
        };
        let problem = match attempt(&client, upload, open()).await? {
            Ok(sent) => return Ok(sent),
            Err(problem) => problem,
        };
        stalls += u32::from(problem.is_stalled);
        if attempts >= retries.attempts || stalls >= MOST_STALLS {
            return Err(problem.error);
        }
        let wait = pauses.next(&retries, attempts, problem.asked, &problem.error);
        tokio::time::sleep(wait).await;
    }
}

/// An attempt to upload data.
#[derive(Clone, Copy)]
struct Upload<'a> {
    url: &'a SignedUrl,
    size: u64,
    /// The number of attempts so far, including this one.
    attempts: u32,
    /// The maximum time in which the store takes no data and sends no response.
    silence: Duration,
}

/// Sends the data once. The inner error is a temporary problem.
async fn attempt<R: Read + Send + 'static>(
    client: &reqwest::Client,
    upload: Upload<'_>,
    mut reader: R,
) -> Result<Result<R, Temporary<PutError>>, PutError> {
    let Upload {
        url,
        size,
        attempts,
        silence,
    } = upload;
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
            // The receiver is dropped when the request has ended.
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
        // Azure requires this header; the other services ignore it.
        .header("x-ms-blob-type", "BlockBlob")
        .body(Body::wrap_stream(body));
    let mut sending = Box::pin(request.send());
    let mut known = 0;
    let response = loop {
        match tokio::time::timeout(silence, &mut sending).await {
            Ok(response) => break response,
            Err(_) => {
                let now = taken.load(Ordering::Relaxed);
                if now == known {
                    let seconds = silence.as_secs_f64();
                    let problem = format!("it took no data for {seconds:.0} s");
                    return Ok(Err(Temporary {
                        is_stalled: true,
                        ..failed(url, problem, attempts).into()
                    }));
                }
                known = now;
            }
        }
    };
    drop(sending);
    let refused = match response {
        Ok(response) if response.status().is_success() => None,
        Ok(response) => Some(refusal(url, response, attempts).await),
        Err(error) => Some(Ok(failed(url, innermost(&error), attempts).into())),
    };
    // The request has ended, so the reading thread ends, too.
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
async fn refusal(
    url: &SignedUrl,
    response: Response,
    attempts: u32,
) -> Result<Temporary<PutError>, PutError> {
    let asked = retry_after(response.headers(), SystemTime::now());
    let Refusal { meaning, problem } = Refusal::read(response).await;
    let place = url.place();
    match meaning {
        Meaning::Denied => Err(PutError::Refused { place, problem }),
        Meaning::Expired => Err(PutError::Expired { place, problem }),
        Meaning::Full => Err(PutError::Full { place, problem }),
        Meaning::Temporary => Ok(Temporary {
            asked,
            ..failed(url, problem, attempts).into()
        }),
        Meaning::Missing | Meaning::Lasting => Err(failed(url, problem, attempts)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::{
        io::{Cursor, Write as _},
        net::{TcpListener, TcpStream},
        thread::JoinHandle,
        time::Instant,
    };

    use super::*;

    const POLICY: RetryPolicy = RetryPolicy {
        attempts: 5,
        pause: Duration::from_millis(1),
        longest: Duration::from_millis(2),
        silence: Duration::from_millis(400),
    };
    /// More bytes than the buffers of a connection hold.
    const SIZE: usize = 16 << 20;
    const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

    /// Reads a request: its header, and as much of the body as `most`. Returns the body's length.
    fn read(socket: &mut TcpStream, most: usize) -> usize {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            socket.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let mut piece = vec![0; 1 << 16];
        let mut count = 0;
        while count < most {
            match socket.read(&mut piece) {
                Ok(0) | Err(_) => break,
                Ok(read) => count += read,
            }
        }
        count
    }

    /// Handles one connection after the other.
    fn server<T: Send + 'static>(
        connections: Vec<fn(TcpStream) -> T>,
    ) -> (SignedUrl, JoinHandle<Vec<T>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/b/x?sig=hush", listener.local_addr().unwrap());
        let serve = move || {
            let handled = connections
                .into_iter()
                .map(|handle| handle(listener.accept().unwrap().0));
            handled.collect()
        };
        (SignedUrl::new(url), std::thread::spawn(serve))
    }

    fn upload(url: &SignedUrl, policy: RetryPolicy) -> Result<(), PutError> {
        let data = Arc::<[u8]>::from(vec![7; SIZE]);
        let sent = put(url, SIZE as u64, policy, || Cursor::new(Arc::clone(&data)));
        sent.map(drop)
    }

    fn whole(mut socket: TcpStream) -> usize {
        let count = read(&mut socket, SIZE);
        socket.write_all(OK.as_bytes()).unwrap();
        count
    }

    #[test]
    fn a_connection_that_ends_in_the_middle_is_repeated_from_the_beginning() {
        let half = |mut socket: TcpStream| read(&mut socket, SIZE / 2).min(SIZE / 2);
        let (url, server) = server(vec![half, whole]);
        upload(&url, POLICY).unwrap();
        assert_eq!(server.join().unwrap(), [SIZE / 2, SIZE]);
    }

    #[test]
    fn a_store_that_takes_no_data_is_given_up() {
        let stall = |mut socket: TcpStream| {
            read(&mut socket, 1);
            socket
        };
        let (url, server) = server(vec![stall, stall, stall]);
        let begin = Instant::now();
        let error = upload(&url, POLICY).unwrap_err();
        assert!(
            matches!(&error, PutError::Failed { attempts: 3, .. }),
            "{error:?}"
        );
        assert!(error.to_string().contains("took no data"), "{error}");
        assert!(begin.elapsed() < Duration::from_secs(20));
        drop(server.join().unwrap());
    }

    #[test]
    fn a_store_that_takes_data_slowly_is_not_given_up() {
        let slow = |mut socket: TcpStream| {
            let mut count = read(&mut socket, 1);
            let mut piece = vec![0; 1 << 16];
            while count < SIZE {
                let before = count;
                while count < SIZE && count - before < SIZE / 8 {
                    count += socket.read(&mut piece).unwrap();
                }
                std::thread::sleep(Duration::from_millis(300));
            }
            socket.write_all(OK.as_bytes()).unwrap();
        };
        let (url, server) = server(vec![slow]);
        let policy = RetryPolicy {
            attempts: 1,
            // Shorter than the upload takes, but longer than sending the rest in the buffers of the
            // connection.
            silence: Duration::from_millis(1600),
            ..POLICY
        };
        upload(&url, policy).unwrap();
        server.join().unwrap();
    }

    #[test]
    fn the_pause_that_a_store_asks_for_is_kept() {
        let busy = |mut socket: TcpStream| {
            read(&mut socket, SIZE);
            let answer = "HTTP/1.1 503 Busy\r\nretry-after: 2\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            socket.write_all(answer.as_bytes()).unwrap();
            0
        };
        let (url, server) = server(vec![busy, whole]);
        let begin = Instant::now();
        upload(&url, POLICY).unwrap();
        assert!(begin.elapsed() >= Duration::from_secs(2));
        assert_eq!(server.join().unwrap(), [0, SIZE]);
    }

    #[test]
    fn a_full_store_and_an_expired_url_are_named_after_one_attempt() {
        let full = |mut socket: TcpStream| {
            read(&mut socket, SIZE);
            let answer = "HTTP/1.1 507 Full\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            socket.write_all(answer.as_bytes()).unwrap();
        };
        let expired = |mut socket: TcpStream| {
            read(&mut socket, SIZE);
            let body = "<Code>AccessDenied</Code><Message>Request has expired</Message>";
            let head = format!("content-length: {}\r\nconnection: close", body.len());
            let answer = format!("HTTP/1.1 403 Forbidden\r\n{head}\r\n\r\n{body}");
            socket.write_all(answer.as_bytes()).unwrap();
        };
        let (url, served) = server(vec![full]);
        let error = upload(&url, POLICY).unwrap_err();
        assert!(matches!(error, PutError::Full { .. }), "{error:?}");
        served.join().unwrap();
        let (url, served) = server(vec![expired]);
        let error = upload(&url, POLICY).unwrap_err();
        assert!(matches!(error, PutError::Expired { .. }), "{error:?}");
        assert!(!format!("{error} {error:?}").contains("hush"), "{error:?}");
        served.join().unwrap();
    }
}
