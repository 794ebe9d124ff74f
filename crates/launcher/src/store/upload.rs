//! Sends a bundle to an object store, in parts when it is large. A few parts
//! are in memory, never the whole.

use std::io::{self, Read};

use bytes::Bytes;
use futures::{StreamExt, future::Either, pin_mut, stream::FuturesUnordered};
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload, path::Path};

use super::Sent;

/// The size of a part. S3 takes no smaller ones than 5 MiB.
pub(super) const PART: u64 = 8 * 1024 * 1024;
/// How many parts are on their way at once.
const AT_ONCE: usize = 4;
/// S3 takes no more parts than 10,000.
const PARTS: u64 = 9_000;

/// Why a bundle did not arrive. Nothing of it is left.
#[derive(Debug)]
pub(super) enum UploadError {
    Read(io::Error),
    Store(object_store::Error),
    Stopped,
}

impl From<object_store::Error> for UploadError {
    fn from(error: object_store::Error) -> Self {
        Self::Store(error)
    }
}

type Reader = Box<dyn Read + Send>;

/// The size of the parts of a bundle.
fn part_size(size: u64) -> u64 {
    const STEP: u64 = 1024 * 1024;
    PART.max(size.div_ceil(PARTS).div_ceil(STEP) * STEP)
}

/// Sends `size` bytes of `reader`. When that fails, or `stop` ends first, what
/// was sent is taken back.
pub(super) async fn upload(
    objects: &dyn ObjectStore,
    path: &Path,
    reader: Reader,
    size: u64,
    progress: &(dyn Fn(Sent) + Send + Sync),
    stop: impl Future<Output = ()>,
) -> Result<(), UploadError> {
    pin_mut!(stop);
    let part = part_size(size);
    if size <= part {
        let put = async {
            let (_, bytes) = read(reader, size).await.map_err(UploadError::Read)?;
            objects.put(path, bytes.into()).await?;
            Ok(())
        };
        pin_mut!(put);
        let done = match futures::future::select(put, stop).await {
            Either::Left((done, _)) => done,
            Either::Right(_) => Err(UploadError::Stopped),
        };
        if done.is_ok() {
            progress(Sent {
                bytes: size,
                total: size,
            });
        }
        return done;
    }
    let mut parts = objects.put_multipart(path).await?;
    let sent = {
        let sending = send(parts.as_mut(), reader, size, part, progress);
        pin_mut!(sending);
        match futures::future::select(sending, stop).await {
            Either::Left((sent, _)) => sent,
            Either::Right(_) => Err(UploadError::Stopped),
        }
    };
    let done = match sent {
        Ok(()) => parts.complete().await.map(drop).map_err(Into::into),
        failed => failed,
    };
    if done.is_err()
        && let Err(error) = parts.abort().await
    {
        let (_, problem) = super::reason::reason(&error);
        tracing::warn!(%path, %problem, "parts of a failed upload are left in the store");
    }
    done
}

async fn send(
    parts: &mut dyn MultipartUpload,
    mut reader: Reader,
    size: u64,
    part: u64,
    progress: &(dyn Fn(Sent) + Send + Sync),
) -> Result<(), UploadError> {
    let mut on_their_way = FuturesUnordered::new();
    let (mut begun, mut sent) = (0, 0);
    loop {
        while begun < size && on_their_way.len() < AT_ONCE {
            let length = part.min(size - begun);
            let (rest, bytes) = read(reader, length).await.map_err(UploadError::Read)?;
            reader = rest;
            begun += length;
            let arrives = parts.put_part(PutPayload::from(bytes));
            on_their_way.push(async move { arrives.await.map(|()| length) });
        }
        match on_their_way.next().await {
            Some(length) => sent += length?,
            None => return Ok(()),
        }
        progress(Sent {
            bytes: sent,
            total: size,
        });
    }
}

/// Reads so many bytes, without keeping others from their work.
async fn read(mut reader: Reader, length: u64) -> io::Result<(Reader, Bytes)> {
    let length = usize::try_from(length).map_err(io::Error::other)?;
    let reading = tokio::task::spawn_blocking(move || {
        let mut bytes = vec![0; length];
        reader.read_exact(&mut bytes)?;
        Ok((reader, bytes.into()))
    });
    reading.await.map_err(io::Error::other)?
}

#[cfg(test)]
#[path = "upload_tests.rs"]
mod tests;
