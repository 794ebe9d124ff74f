//! Downloads a bundle from a signed URL to a file, never into memory, and resumes after
//! connection failures.

use std::{
    fs::File,
    io::{self, Seek, Write},
    path::{Path, PathBuf},
    time::SystemTime,
};

use reqwest::{
    Response, StatusCode,
    header::{CONTENT_RANGE, ETAG, RANGE},
};
use sha2::{Digest, Sha256};

use super::{
    RetryPolicy, SignedUrl,
    http::client,
    reason::innermost,
    refusal::{Meaning, Refusal},
    retry::{Pauses, Temporary, retry_after},
};
use crate::bundle::hexadecimal;

/// An error of downloading a bundle from its signed URL.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DownloadError {
    /// The signature is invalid or has expired.
    #[error(
        "the store denies access to the bundle {place} ({problem}): the signed URL has expired, or its signer no longer has access; submit the run again"
    )]
    Refused {
        /// The bundle, without the signature.
        place: String,
        /// The store's message.
        problem: String,
    },
    /// The bundle no longer exists.
    #[error(
        "the bundle {place} no longer exists in the store ({problem}); submit the run again to upload it again"
    )]
    Missing {
        /// The bundle, without the signature.
        place: String,
        /// The store's message.
        problem: String,
    },
    /// The plan is the output of a dry run, which does not upload the bundle.
    #[error(
        "the bundle {place} was not uploaded: this run is the output of --dry-run; submit it with `longshore run`"
    )]
    NotSent {
        /// The planned location of the bundle.
        place: String,
    },
    /// The bundle in the store has another size.
    #[error(
        "the bundle {place} is damaged: it has {found} bytes, not {expected}; submit the run again to upload it again"
    )]
    WrongSize {
        /// The bundle, without the signature.
        place: String,
        /// The number of bytes found, or a lower bound.
        found: u64,
        /// The expected number of bytes.
        expected: u64,
    },
    /// The object differs from the signed one.
    #[error("{place} has changed; submit the run again")]
    Changed {
        /// The object, without the signature.
        place: String,
    },
    /// No successful response after several attempts.
    #[error(
        "cannot fetch the bundle {place}: {problem} (after {attempts} attempts); pods must reach the store at the same address as the client"
    )]
    Failed {
        /// The bundle, without the signature.
        place: String,
        /// The last error.
        problem: String,
        /// The number of attempts.
        attempts: u32,
    },
    /// The disk lacks space for the bundle.
    #[error(
        "no space for the bundle of {size} bytes at {}: the node's disk or the pod's ephemeral storage is full", path.display()
    )]
    Full {
        /// The file.
        path: PathBuf,
        /// The bundle's size.
        size: u64,
    },
    /// The bundle cannot be written.
    #[error("cannot write the bundle to {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// Downloads a bundle of `size` bytes into `target` and returns the sha256 of the data. Does
/// not need a runtime.
pub fn download(
    url: &SignedUrl,
    size: u64,
    target: &Path,
    retries: RetryPolicy,
) -> Result<String, DownloadError> {
    let failed = |problem: String| DownloadError::Failed {
        place: url.place(),
        problem,
        attempts: 0,
    };
    let fetch = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| failed(error.to_string()))?;
        runtime.block_on(fetch(url, size, target, retries))
    };
    // Uses its own thread, because the caller may be in a runtime.
    let done = std::thread::scope(|scope| scope.spawn(fetch).join());
    done.unwrap_or_else(|_| Err(failed("the download was interrupted".to_owned())))
}

/// Checks that the URL returns a bundle of this size. Downloads one byte of it.
pub(crate) async fn check(url: &SignedUrl, size: u64) -> Result<(), DownloadError> {
    let retries = RetryPolicy {
        attempts: 3,
        ..RetryPolicy::default()
    };
    let client = client().map_err(|error| unanswered(url, &error, 0))?;
    let (mut attempts, mut pauses) = (0, Pauses::default());
    loop {
        attempts += 1;
        let request = client.get(url.secret()).header(RANGE, "bytes=0-0");
        let problem = match request.send().await {
            Ok(response) if response.status().is_success() => {
                // Without range support, the response has the whole length.
                let whole = content_range(&response)
                    .map(|(_, whole)| whole)
                    .or_else(|| response.content_length());
                return match whole {
                    Some(found) if found != size => Err(wrong_size(url, found, size)),
                    _ => Ok(()),
                };
            }
            Ok(response) => refusal(url, response, attempts).await?,
            Err(error) => unanswered(url, &error, attempts).into(),
        };
        if attempts >= retries.attempts {
            return Err(problem.error);
        }
        let wait = pauses.next(&retries, attempts, problem.asked, &problem.error);
        tokio::time::sleep(wait).await;
    }
}

async fn fetch(
    url: &SignedUrl,
    size: u64,
    target: &Path,
    retries: RetryPolicy,
) -> Result<String, DownloadError> {
    let client = client().map_err(|error| unanswered(url, &error, 0))?;
    let wanted = Wanted {
        url,
        size,
        etag: None,
    };
    fetch_with(&client, wanted, target, retries).await
}

/// The object to download.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) url: &'a SignedUrl,
    pub(crate) size: u64,
    /// The ETag that the response must have, if it contains an ETag.
    pub(crate) etag: Option<&'a str>,
}

/// Downloads into `target`, and returns the sha256 of the data.
pub(crate) async fn fetch_with(
    client: &reqwest::Client,
    wanted: Wanted<'_>,
    target: &Path,
    retries: RetryPolicy,
) -> Result<String, DownloadError> {
    let Wanted { url, size, .. } = wanted;
    if !url.secret().starts_with("http") {
        return Err(DownloadError::NotSent { place: url.place() });
    }
    let mut kept = Kept::new(target, size)?;
    let (mut attempts, mut pauses) = (0, Pauses::default());
    loop {
        let before = kept.bytes;
        let problem = match attempt(client, wanted, &mut kept, attempts + 1, retries).await? {
            None => return kept.finish(),
            Some(problem) => problem,
        };
        // Partial data counts as progress.
        attempts = if kept.bytes > before { 1 } else { attempts + 1 };
        if attempts >= retries.attempts {
            return Err(problem.error);
        }
        let wait = pauses.next(&retries, attempts, problem.asked, &problem.error);
        tokio::time::sleep(wait).await;
    }
}

/// Requests the missing bytes. Returns a temporary problem, if any.
async fn attempt(
    client: &reqwest::Client,
    wanted: Wanted<'_>,
    kept: &mut Kept,
    attempts: u32,
    retries: RetryPolicy,
) -> Result<Option<Temporary<DownloadError>>, DownloadError> {
    let Wanted { url, size, etag } = wanted;
    let mut request = client.get(url.secret());
    if kept.bytes > 0 {
        request = request.header(RANGE, format!("bytes={}-", kept.bytes));
    }
    let stalled = || {
        let seconds = retries.silence.as_secs_f64();
        Temporary::from(DownloadError::Failed {
            place: url.place(),
            problem: format!("no data for {seconds:.0} s"),
            attempts,
        })
    };
    let mut response = match tokio::time::timeout(retries.silence, request.send()).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => return Ok(Some(unanswered(url, &error, attempts).into())),
        Err(_) => return Ok(Some(stalled())),
    };
    if !response.status().is_success() {
        return refusal(url, response, attempts).await.map(Some);
    }
    let found = response.headers().get(ETAG);
    if let (Some(etag), Some(found)) = (etag, found.and_then(|found| found.to_str().ok()))
        && bare(etag) != bare(found)
    {
        return Err(DownloadError::Changed { place: url.place() });
    }
    let begins = content_range(&response).map_or(0, |(begins, _)| begins);
    // A store does not have to support ranges.
    let goes_on = response.status() == StatusCode::PARTIAL_CONTENT && begins == kept.bytes;
    if kept.bytes > 0 && !goes_on {
        kept.begin_anew()?;
    }
    if let Some(length) = response.content_length()
        && kept.bytes + length != size
    {
        return Err(wrong_size(url, kept.bytes + length, size));
    }
    loop {
        let Ok(chunk) = tokio::time::timeout(retries.silence, response.chunk()).await else {
            return Ok(Some(stalled()));
        };
        match chunk {
            Ok(Some(bytes)) => {
                let found = kept.bytes + bytes.len() as u64;
                if found > size {
                    return Err(wrong_size(url, found, size));
                }
                kept.write(&bytes)?;
            }
            Ok(None) if kept.bytes == size => return Ok(None),
            Ok(None) => {
                let error = DownloadError::Failed {
                    place: url.place(),
                    problem: format!("the connection ended after {} of {size} bytes", kept.bytes),
                    attempts,
                };
                return Ok(Some(error.into()));
            }
            Err(error) => return Ok(Some(unanswered(url, &error, attempts).into())),
        }
    }
}

/// An ETag without its quotes, which some services omit.
fn bare(etag: &str) -> &str {
    etag.trim_start_matches("W/").trim_matches('"')
}

/// Parses `bytes 7-9/10`: the start, and the total size.
fn content_range(response: &Response) -> Option<(u64, u64)> {
    let text = response.headers().get(CONTENT_RANGE)?.to_str().ok()?;
    let (range, whole) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (begins, _) = range.split_once('-')?;
    Some((begins.parse().ok()?, whole.parse().ok()?))
}

fn wrong_size(url: &SignedUrl, found: u64, expected: u64) -> DownloadError {
    DownloadError::WrongSize {
        place: url.place(),
        found,
        expected,
    }
}

fn unanswered(url: &SignedUrl, error: &reqwest::Error, attempts: u32) -> DownloadError {
    DownloadError::Failed {
        place: url.place(),
        problem: innermost(error),
        attempts,
    }
}

/// Interprets an error status. `Ok` is a temporary problem.
async fn refusal(
    url: &SignedUrl,
    response: Response,
    attempts: u32,
) -> Result<Temporary<DownloadError>, DownloadError> {
    let asked = retry_after(response.headers(), SystemTime::now());
    let Refusal { meaning, problem } = Refusal::read(response).await;
    let place = url.place();
    let failed = |place, problem| DownloadError::Failed {
        place,
        problem,
        attempts,
    };
    match meaning {
        Meaning::Denied | Meaning::Expired => Err(DownloadError::Refused { place, problem }),
        Meaning::Missing => Err(DownloadError::Missing { place, problem }),
        Meaning::Temporary => Ok(Temporary {
            asked,
            ..failed(place, problem).into()
        }),
        Meaning::Full | Meaning::Lasting => Err(failed(place, problem)),
    }
}

/// The downloaded data on disk.
struct Kept {
    path: PathBuf,
    file: File,
    hash: Sha256,
    bytes: u64,
    size: u64,
}

impl Kept {
    fn new(path: &Path, size: u64) -> Result<Self, DownloadError> {
        match File::create(path) {
            Ok(file) => Ok(Self {
                path: path.to_owned(),
                file,
                hash: Sha256::new(),
                bytes: 0,
                size,
            }),
            Err(error) => Err(not_kept(path, size, error)),
        }
    }

    fn not_kept(&self, error: io::Error) -> DownloadError {
        not_kept(&self.path, self.size, error)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), DownloadError> {
        let written = self.file.write_all(bytes);
        written.map_err(|error| self.not_kept(error))?;
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    fn begin_anew(&mut self) -> Result<(), DownloadError> {
        let emptied = self.file.set_len(0).and_then(|()| self.file.rewind());
        emptied.map_err(|error| self.not_kept(error))?;
        self.hash = Sha256::new();
        self.bytes = 0;
        Ok(())
    }

    fn finish(self) -> Result<String, DownloadError> {
        Ok(hexadecimal(&self.hash.finalize()))
    }
}

fn not_kept(path: &Path, size: u64, error: io::Error) -> DownloadError {
    let path = path.to_owned();
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            DownloadError::Full { path, size }
        }
        _ => DownloadError::Write {
            path,
            source: error,
        },
    }
}

#[cfg(test)]
mod tests;
