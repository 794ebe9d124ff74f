//! Sends a bundle to an object store, in parts when it is large. A few parts
//! are in memory, never the whole. With a journal, the parts that an earlier
//! process sent are not sent again.

use std::{
    io::{self, Read},
    pin::Pin,
};

use bytes::Bytes;
use futures::{
    StreamExt,
    future::{Either, select},
    pin_mut,
    stream::FuturesUnordered,
};
use object_store::{
    ObjectStore, ObjectStoreExt, PutPayload,
    multipart::{MultipartStore, PartId},
    path::Path,
};

use super::{
    journal::{Journal, Unfinished},
    options::Sent,
    reason::{Cause, reason},
};

/// The size of a part. S3 takes no smaller ones than 5 MiB.
pub(super) const PART: u64 = 8 * 1024 * 1024;
/// How many parts are on their way at once.
const AT_ONCE: usize = 4;
/// S3 takes no more parts than 10,000.
const PARTS: u64 = 9_000;

/// Why a bundle did not arrive. Nothing of it is left, but for one that is lost.
#[derive(Debug)]
pub(super) enum UploadError {
    Read(io::Error),
    Store(object_store::Error),
    /// The store does not answer any more; the next process can go on.
    Lost(object_store::Error),
    Stopped,
}

impl From<object_store::Error> for UploadError {
    fn from(error: object_store::Error) -> Self {
        Self::Store(error)
    }
}

type Reader = Box<dyn Read + Send>;

/// Where a bundle goes.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) objects: &'a dyn ObjectStore,
    pub(super) multipart: &'a dyn MultipartStore,
    pub(super) path: &'a Path,
}

/// How a bundle is cut into parts.
#[derive(Debug, Clone, Copy)]
struct Cut {
    size: u64,
    part: u64,
}

impl Cut {
    fn of(size: u64) -> Self {
        const STEP: u64 = 1024 * 1024;
        let part = PART.max(size.div_ceil(PARTS).div_ceil(STEP) * STEP);
        Self { size, part }
    }

    fn parts(self) -> usize {
        usize::try_from(self.size.div_ceil(self.part)).unwrap_or(usize::MAX)
    }

    fn begin(self, part: usize) -> u64 {
        self.part.saturating_mul(part as u64).min(self.size)
    }

    fn length(self, part: usize) -> u64 {
        self.part.min(self.size - self.begin(part))
    }
}

/// An upload in parts, and those of them that have arrived.
struct Upload {
    id: String,
    arrived: Vec<Option<PartId>>,
    /// Whether another process has begun it.
    is_resumed: bool,
}

impl Upload {
    fn begun(id: String, cut: Cut) -> Self {
        Self {
            id,
            arrived: vec![None; cut.parts()],
            is_resumed: false,
        }
    }

    /// One that was begun for a bundle that is cut in the same way.
    fn resumed(found: Unfinished, cut: Cut) -> Option<Self> {
        let is_same = (found.total, found.part_size) == (cut.size, cut.part);
        let mut upload = is_same.then(|| Self::begun(found.upload, cut))?;
        for (part, content_id) in found.parts {
            *upload.arrived.get_mut(part)? = Some(PartId { content_id });
        }
        upload.is_resumed = true;
        Some(upload)
    }

    fn bytes(&self, cut: Cut) -> u64 {
        let parts = self.arrived.iter().enumerate();
        let parts = parts.filter(|(_, arrived)| arrived.is_some());
        parts.map(|(part, _)| cut.length(part)).sum()
    }
}

/// Sends `size` bytes of what `open` gives. When that fails, or `stop` ends first,
/// what was sent is taken back; but with a journal, what was sent before the store
/// was lost stays for the next.
pub(super) async fn upload(
    to: Place<'_>,
    open: impl Fn() -> io::Result<Reader>,
    size: u64,
    journal: impl FnOnce() -> Option<Journal>,
    progress: &(dyn Fn(Sent) + Send + Sync),
    stop: impl Future<Output = ()>,
) -> Result<(), UploadError> {
    pin_mut!(stop);
    let cut = Cut::of(size);
    if size <= cut.part {
        return at_once(to, open, size, progress, stop).await;
    }
    let mut journal = journal();
    let mut resumed = match journal.as_mut().and_then(Journal::found) {
        Some(found) => resume(to, found, cut).await,
        None => None,
    };
    let done = loop {
        let mut upload = match resumed.take() {
            Some(upload) => upload,
            None => match to.multipart.create_multipart(to.path).await {
                Ok(id) => {
                    if let Some(journal) = &mut journal {
                        journal.begin(&id, cut.part, cut.size);
                    }
                    Upload::begun(id, cut)
                }
                Err(error) => break Err(error.into()),
            },
        };
        let sent = {
            let sending = send(to, &mut upload, &open, cut, journal.as_mut(), progress);
            unless(stop.as_mut(), sending).await
        };
        let error = match sent {
            Ok(()) => match complete(to, &mut upload, cut).await {
                Ok(()) => break Ok(()),
                Err(error) => UploadError::Store(error),
            },
            Err(error) => error,
        };
        let is_kept = journal.as_ref().is_some_and(Journal::is_begun);
        let error = match error {
            UploadError::Store(error) => match reason(&error) {
                (cause, _) if cause.is_lost() && is_kept => return Err(UploadError::Lost(error)),
                // The store knows nothing of it, or the journal was wrong.
                (Cause::Missing | Cause::Other, problem) if upload.is_resumed => {
                    tracing::info!(path = %to.path, %problem, "the upload is begun anew");
                    let _ = to.multipart.abort_multipart(to.path, &upload.id).await;
                    continue;
                }
                _ => error.into(),
            },
            other => other,
        };
        if let Err(error) = to.multipart.abort_multipart(to.path, &upload.id).await {
            let (cause, problem) = reason(&error);
            tracing::warn!(path = %to.path, %problem, "parts of a failed upload are left in the store");
            if cause.is_lost() && is_kept {
                // The next process goes on with them, or takes them back.
                journal = None;
            }
        }
        break Err(error);
    };
    if let Some(journal) = journal {
        journal.remove();
    }
    done
}

/// What an earlier process began, if it is of use; else it is taken back.
async fn resume(to: Place<'_>, found: Unfinished, cut: Cut) -> Option<Upload> {
    let id = found.upload.clone();
    let upload = Upload::resumed(found, cut);
    if upload.is_none() {
        let _ = to.multipart.abort_multipart(to.path, &id).await;
    }
    upload
}

/// A small bundle, in one request.
async fn at_once(
    to: Place<'_>,
    open: impl Fn() -> io::Result<Reader>,
    size: u64,
    progress: &(dyn Fn(Sent) + Send + Sync),
    stop: Pin<&mut impl Future<Output = ()>>,
) -> Result<(), UploadError> {
    let put = async {
        let reader = open().map_err(UploadError::Read)?;
        let (_, bytes) = read(reader, 0, size).await.map_err(UploadError::Read)?;
        to.objects.put(to.path, bytes.into()).await?;
        Ok(())
    };
    unless(stop, put).await?;
    progress(Sent {
        bytes: size,
        total: size,
        ..Sent::default()
    });
    Ok(())
}

async fn unless(
    stop: Pin<&mut impl Future<Output = ()>>,
    work: impl Future<Output = Result<(), UploadError>>,
) -> Result<(), UploadError> {
    pin_mut!(work);
    match select(work, stop).await {
        Either::Left((done, _)) => done,
        Either::Right(_) => Err(UploadError::Stopped),
    }
}

/// Sends the parts that have not arrived.
async fn send(
    to: Place<'_>,
    upload: &mut Upload,
    open: impl Fn() -> io::Result<Reader>,
    cut: Cut,
    mut journal: Option<&mut Journal>,
    progress: &(dyn Fn(Sent) + Send + Sync),
) -> Result<(), UploadError> {
    let earlier = upload.bytes(cut);
    let mut sent = Sent {
        bytes: earlier,
        total: cut.size,
        earlier,
    };
    if earlier > 0 {
        progress(sent);
    }
    let arrived = upload.arrived.iter().enumerate();
    let missing = arrived.filter(|(_, part)| part.is_none());
    let missing: Vec<usize> = missing.map(|(part, _)| part).collect();
    let mut missing = missing.into_iter();
    let Some(mut next) = missing.next().map(Some) else {
        return Ok(());
    };
    let mut reader = open().map_err(UploadError::Read)?;
    let mut position = 0;
    let mut on_their_way = FuturesUnordered::new();
    loop {
        while let Some(part) = next
            && on_their_way.len() < AT_ONCE
        {
            let (begin, length) = (cut.begin(part), cut.length(part));
            let (rest, bytes) = read(reader, begin - position, length)
                .await
                .map_err(UploadError::Read)?;
            (reader, position, next) = (rest, begin + length, missing.next());
            let payload = PutPayload::from(bytes);
            let arrives = to.multipart.put_part(to.path, &upload.id, part, payload);
            on_their_way.push(async move { (part, arrives.await) });
        }
        let Some((part, arrived)) = on_their_way.next().await else {
            return Ok(());
        };
        let arrived = arrived?;
        if let Some(journal) = &mut journal {
            journal.arrived(part, &arrived.content_id);
        }
        upload.arrived[part] = Some(arrived);
        sent.bytes += cut.length(part);
        progress(sent);
    }
}

/// Makes an object of the parts.
async fn complete(to: Place<'_>, upload: &mut Upload, cut: Cut) -> Result<(), object_store::Error> {
    let parts = upload.arrived.drain(..).flatten().collect();
    let completed = to
        .multipart
        .complete_multipart(to.path, &upload.id, parts)
        .await;
    match completed {
        // When an answer is lost, the crate asks again, and the upload is no more.
        Err(error) if reason(&error).0 == Cause::Missing => match to.objects.head(to.path).await {
            Ok(found) if found.size == cut.size => Ok(()),
            _ => Err(error),
        },
        other => other.map(drop),
    }
}

/// Leaves out so many bytes and reads so many, without keeping others from their
/// work.
async fn read(mut reader: Reader, leave: u64, length: u64) -> io::Result<(Reader, Bytes)> {
    let length = usize::try_from(length).map_err(io::Error::other)?;
    let reading = tokio::task::spawn_blocking(move || {
        let left = io::copy(&mut reader.by_ref().take(leave), &mut io::sink())?;
        if left < leave {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut bytes = vec![0; length];
        reader.read_exact(&mut bytes)?;
        Ok((reader, bytes.into()))
    });
    reading.await.map_err(io::Error::other)?
}

#[cfg(test)]
#[path = "upload_tests.rs"]
mod tests;
