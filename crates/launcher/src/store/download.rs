//! Fetches a bundle by a signed URL: to a file, never into memory, going on
//! where a broken connection left off.

use std::{
    fs::File,
    io::{self, Seek, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use reqwest::{
    Response, StatusCode,
    header::{CONTENT_RANGE, RANGE},
};
use sha2::{Digest, Sha256};

use super::{
    SignedUrl,
    http::client,
    reason::{innermost, words},
};
use crate::bundle::hexadecimal;

/// As much of a refusal as is read.
const REFUSAL: usize = 64 * 1024;

/// Why a bundle cannot be fetched by its signed URL.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DownloadError {
    /// The signature is not valid, or not any more.
    #[error(
        "the store refuses to give the bundle {place} ({problem}): its signed URL has expired, or who signed it has lost the right; submit the run again"
    )]
    Refused {
        /// The bundle, without the signature.
        place: String,
        /// What the store says.
        problem: String,
    },
    /// The bundle is not there any more.
    #[error(
        "the bundle {place} is not in the store any more ({problem}); submit the run again: it is uploaded again"
    )]
    Missing {
        /// The bundle, without the signature.
        place: String,
        /// What the store says.
        problem: String,
    },
    /// Only the plan of a run was made, which sends nothing.
    #[error(
        "the bundle {place} was not sent: this run was written by --dry-run; submit it with `longshore run`"
    )]
    NotSent {
        /// Where it would be.
        place: String,
    },
    /// What is there has another size.
    #[error(
        "the bundle {place} is damaged: it has {found} bytes, not {expected}; submit the run again: it is uploaded again"
    )]
    WrongSize {
        /// The bundle, without the signature.
        place: String,
        /// How many bytes there are, or at least are.
        found: u64,
        /// How many there shall be.
        expected: u64,
    },
    /// No answer, or none that helps, after several tries.
    #[error(
        "cannot fetch the bundle {place}: {problem} (after {attempts} attempts); pods must reach the store by the same address as whoever submits the run"
    )]
    Failed {
        /// The bundle, without the signature.
        place: String,
        /// What happened last.
        problem: String,
        /// How often it was tried.
        attempts: u32,
    },
    /// There is no room for it.
    #[error(
        "no room for the bundle of {size} bytes at {}: the node's disk or the pod's ephemeral storage is full", path.display()
    )]
    Full {
        /// The file.
        path: PathBuf,
        /// The bundle's size.
        size: u64,
    },
    /// It cannot be kept.
    #[error("cannot write the bundle to {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// How long to try.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// How often in a row nothing may come.
    pub(crate) attempts: u32,
    /// How long to wait after the first of them; then twice as long each time.
    pub(crate) pause: Duration,
    /// The longest wait.
    pub(crate) longest: Duration,
}

impl Default for Patience {
    /// A minute and a half, about.
    fn default() -> Self {
        Self {
            attempts: 12,
            pause: Duration::from_millis(250),
            longest: Duration::from_secs(20),
        }
    }
}

impl Patience {
    /// How long to wait after so many attempts. Not exactly so long: tasks of a
    /// run that failed together shall not come again together.
    fn wait(&self, attempts: u32) -> Duration {
        let doubled = self
            .pause
            .saturating_mul(1 << attempts.saturating_sub(1).min(16));
        doubled
            .min(self.longest)
            .mul_f64(rand::random_range(0.5..1.0))
    }
}

/// Fetches a bundle of `size` bytes into `target`, and tells the sha256 of what
/// came. Needs no runtime around it.
pub(crate) fn download(
    url: &SignedUrl,
    size: u64,
    target: &Path,
    patience: Patience,
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
        runtime.block_on(fetch(url, size, target, patience))
    };
    // On a thread of its own: whoever calls may be in a runtime.
    let done = std::thread::scope(|scope| scope.spawn(fetch).join());
    done.unwrap_or_else(|_| Err(failed("the download broke off".to_owned())))
}

/// Whether the URL gives a bundle of this size. Fetches one byte of it.
pub(super) async fn check(url: &SignedUrl, size: u64) -> Result<(), DownloadError> {
    let patience = Patience {
        attempts: 3,
        ..Patience::default()
    };
    let client = client().map_err(|error| unanswered(url, &error, 0))?;
    let mut attempts = 0;
    loop {
        attempts += 1;
        let request = client.get(url.secret()).header(RANGE, "bytes=0-0");
        let problem = match request.send().await {
            Ok(response) if response.status().is_success() => {
                // Without ranges, the length is that of the whole.
                let whole = content_range(&response)
                    .map(|(_, whole)| whole)
                    .or_else(|| response.content_length());
                return match whole {
                    Some(found) if found != size => Err(wrong_size(url, found, size)),
                    _ => Ok(()),
                };
            }
            Ok(response) => refusal(url, response, attempts).await?,
            Err(error) => unanswered(url, &error, attempts),
        };
        if attempts >= patience.attempts {
            return Err(problem);
        }
        tokio::time::sleep(patience.wait(attempts)).await;
    }
}

async fn fetch(
    url: &SignedUrl,
    size: u64,
    target: &Path,
    patience: Patience,
) -> Result<String, DownloadError> {
    if !url.secret().starts_with("http") {
        return Err(DownloadError::NotSent { place: url.place() });
    }
    let client = client().map_err(|error| unanswered(url, &error, 0))?;
    let mut kept = Kept::new(target, size)?;
    let mut attempts = 0;
    loop {
        let before = kept.bytes;
        let problem = match attempt(&client, url, size, &mut kept, attempts + 1).await? {
            None => return kept.finish(),
            Some(problem) => problem,
        };
        // What comes in pieces comes.
        attempts = if kept.bytes > before { 1 } else { attempts + 1 };
        if attempts >= patience.attempts {
            return Err(problem);
        }
        let wait = patience.wait(attempts);
        tracing::warn!(%problem, ?wait, "trying again");
        tokio::time::sleep(wait).await;
    }
}

/// Asks for what is still missing. `Some` problem may pass.
async fn attempt(
    client: &reqwest::Client,
    url: &SignedUrl,
    size: u64,
    kept: &mut Kept,
    attempts: u32,
) -> Result<Option<DownloadError>, DownloadError> {
    let mut request = client.get(url.secret());
    if kept.bytes > 0 {
        request = request.header(RANGE, format!("bytes={}-", kept.bytes));
    }
    let mut response = match request.send().await {
        Ok(response) => response,
        Err(error) => return Ok(Some(unanswered(url, &error, attempts))),
    };
    if !response.status().is_success() {
        return refusal(url, response, attempts).await.map(Some);
    }
    let begins = content_range(&response).map_or(0, |(begins, _)| begins);
    // Ranges are a store's free choice.
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
        match response.chunk().await {
            Ok(Some(bytes)) => {
                let found = kept.bytes + bytes.len() as u64;
                if found > size {
                    return Err(wrong_size(url, found, size));
                }
                kept.write(&bytes)?;
            }
            Ok(None) if kept.bytes == size => return Ok(None),
            Ok(None) => {
                return Ok(Some(DownloadError::Failed {
                    place: url.place(),
                    problem: format!("the connection ended after {} of {size} bytes", kept.bytes),
                    attempts,
                }));
            }
            Err(error) => return Ok(Some(unanswered(url, &error, attempts))),
        }
    }
}

/// `bytes 7-9/10`: where it begins, and the size of the whole.
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

/// What a status other than success means. `Ok` is what may pass.
async fn refusal(
    url: &SignedUrl,
    mut response: Response,
    attempts: u32,
) -> Result<DownloadError, DownloadError> {
    let status = response.status();
    let mut body = Vec::new();
    while let Ok(Some(bytes)) = response.chunk().await {
        body.extend_from_slice(&bytes);
        if body.len() > REFUSAL {
            break;
        }
    }
    let said = words(&String::from_utf8_lossy(&body));
    let expired = said
        .as_deref()
        .is_some_and(|said| said.starts_with("ExpiredToken"));
    let place = url.place();
    let problem = match said {
        Some(said) => format!("{}, {said}", status.as_u16()),
        None => status.to_string(),
    };
    match status {
        StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => {
            Err(DownloadError::Refused { place, problem })
        }
        _ if expired => Err(DownloadError::Refused { place, problem }),
        StatusCode::NOT_FOUND | StatusCode::GONE => Err(DownloadError::Missing { place, problem }),
        _ => {
            let failed = DownloadError::Failed {
                place,
                problem,
                attempts,
            };
            let passes = status.is_server_error()
                || matches!(
                    status,
                    StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT
                );
            if passes { Ok(failed) } else { Err(failed) }
        }
    }
}

/// What has come, on the disk.
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
#[path = "download_tests.rs"]
mod tests;
