//! Uploads a bundle to an object store, in parts if it is large. Only a few parts are in memory.
//! With a journal, parts that an earlier process uploaded are not uploaded again.

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

/// The size of a part. S3 requires at least 5 MiB.
pub(super) const PART: u64 = 8 * 1024 * 1024;
/// The number of concurrent part uploads.
const AT_ONCE: usize = 4;
/// The maximum number of parts. S3 allows 10,000.
const PARTS: u64 = 9_000;

/// The reason why an upload failed. All its parts were removed, except in case of `Lost`.
#[derive(Debug)]
pub(crate) enum UploadError {
    Read(io::Error),
    Store(object_store::Error),
    /// The store no longer answers. The next process can resume the upload.
    Lost(object_store::Error),
    Stopped,
}

impl From<object_store::Error> for UploadError {
    fn from(error: object_store::Error) -> Self {
        Self::Store(error)
    }
}

type Reader = Box<dyn Read + Send>;

/// The destination of an upload.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(super) objects: &'a dyn ObjectStore,
    pub(super) multipart: &'a dyn MultipartStore,
    pub(super) path: &'a Path,
}

/// The division of a bundle into parts.
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

/// A multipart upload and its uploaded parts.
struct Upload {
    id: String,
    arrived: Vec<Option<PartId>>,
    /// True if another process started the upload.
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

    /// Resumes an upload if its bundle is split in the same way.
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

/// Uploads `size` bytes of the result of `open`. If this fails, or `stop` completes first, the
/// uploaded parts are removed. With a journal, they are kept if the store stops answering.
pub(crate) async fn upload(
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
                // The store no longer has the upload, or the journal was wrong.
                (Cause::Missing | Cause::Other, problem) if upload.is_resumed => {
                    tracing::info!(path = %to.path, %problem, "restarting the upload");
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
                // The next process resumes the upload or removes its parts.
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

/// The upload of an earlier process, if it can be resumed. Otherwise it is aborted.
async fn resume(to: Place<'_>, found: Unfinished, cut: Cut) -> Option<Upload> {
    let id = found.upload.clone();
    let upload = Upload::resumed(found, cut);
    if upload.is_none() {
        let _ = to.multipart.abort_multipart(to.path, &id).await;
    }
    upload
}

/// Uploads a small bundle in one request.
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

/// Does the work unless `stop` completes first. If both are ready, the work is stopped.
async fn unless(
    stop: Pin<&mut impl Future<Output = ()>>,
    work: impl Future<Output = Result<(), UploadError>>,
) -> Result<(), UploadError> {
    pin_mut!(work);
    match select(stop, work).await {
        Either::Left(_) => Err(UploadError::Stopped),
        Either::Right((done, _)) => done,
    }
}

/// Uploads the missing parts.
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

/// Completes the upload: combines the parts into the object.
async fn complete(to: Place<'_>, upload: &mut Upload, cut: Cut) -> Result<(), object_store::Error> {
    let parts = upload.arrived.drain(..).flatten().collect();
    let completed = to
        .multipart
        .complete_multipart(to.path, &upload.id, parts)
        .await;
    match completed {
        // If the response is lost, the crate retries, and the upload no longer exists.
        Err(error) if reason(&error).0 == Cause::Missing => match to.objects.head(to.path).await {
            Ok(found) if found.size == cut.size => Ok(()),
            _ => Err(error),
        },
        other => other.map(drop),
    }
}

/// Skips `leave` bytes and reads `length` bytes, on a blocking thread.
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
mod tests;
