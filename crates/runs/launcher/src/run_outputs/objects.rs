//! The location of the objects with a run's outputs: a store, or a claim that a pod mounts.

use std::{fmt, ops::Range};

use bytes::Bytes;
use futures::{
    FutureExt as _, StreamExt as _, TryStreamExt as _, future::BoxFuture, stream::BoxStream,
};

use crate::{outputs::OutputsError, store::StoreObjects};

/// A part of an object as a stream.
pub type ObjectStream = BoxStream<'static, Result<Bytes, OutputsError>>;

/// The result of an access.
pub type ObjectFuture<'a, T> = BoxFuture<'a, Result<T, OutputsError>>;

/// The names and sizes of objects. `None` if listing is not permitted.
pub type ObjectList = Option<Vec<(String, u64)>>;

/// Access to objects by their keys.
pub trait Objects: fmt::Debug + Send + Sync {
    /// The names and sizes of the objects in a folder. `None` if listing is not permitted.
    fn list<'a>(&'a self, folder: &'a str) -> ObjectFuture<'a, ObjectList>;

    /// The size of an object. `None` if it does not exist.
    fn size<'a>(&'a self, key: &'a str) -> ObjectFuture<'a, Option<u64>>;

    /// A part of an object as a stream.
    fn stream<'a>(&'a self, key: &'a str, range: Range<u64>) -> ObjectFuture<'a, ObjectStream>;

    /// Deletes an object.
    fn delete<'a>(&'a self, key: &'a str) -> ObjectFuture<'a, ()>;
}

impl Objects for StoreObjects {
    fn list<'a>(&'a self, folder: &'a str) -> ObjectFuture<'a, ObjectList> {
        async move { Ok(self.list(folder).await?) }.boxed()
    }

    fn size<'a>(&'a self, key: &'a str) -> ObjectFuture<'a, Option<u64>> {
        async move { Ok(self.size(key).await?) }.boxed()
    }

    fn stream<'a>(&'a self, key: &'a str, range: Range<u64>) -> ObjectFuture<'a, ObjectStream> {
        async move {
            let stream = self.stream(key, range).await?;
            Ok(stream.map_err(OutputsError::from).boxed())
        }
        .boxed()
    }

    fn delete<'a>(&'a self, key: &'a str) -> ObjectFuture<'a, ()> {
        async move { Ok(self.delete(key).await?) }.boxed()
    }
}

/// Reads a part of an object.
pub(super) async fn read(
    objects: &dyn Objects,
    key: &str,
    range: Range<u64>,
) -> Result<Bytes, OutputsError> {
    let size = range.end.saturating_sub(range.start);
    if size == 0 {
        return Ok(Bytes::new());
    }
    let mut stream = objects.stream(key, range).await?;
    let mut read = Vec::new();
    // A store may send more bytes than requested.
    while let Some(bytes) = stream.try_next().await? {
        read.extend_from_slice(&bytes);
        if read.len() as u64 > size {
            return Err(OutputsError::Damaged {
                path: key.to_owned(),
                problem: format!("it has more than the requested {size} bytes"),
            });
        }
    }
    match read.len() as u64 == size {
        true => Ok(read.into()),
        false => Err(OutputsError::Damaged {
            path: key.to_owned(),
            problem: format!("it ended after {} of {size} bytes", read.len()),
        }),
    }
}
