//! Objects of a store other than bundles, such as outputs of tasks: signed URLs to upload them,
//! and access to them with the client's credentials.

use std::{fmt, ops::Range, time::Duration};

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream::BoxStream};
use object_store::{GetOptions, GetRange, ObjectStore as _, ObjectStoreExt as _, path::Path};

use super::{
    Remote, SignedUrl, StoreError,
    listing::not_silent,
    options::LONGEST,
    reason::{Cause, is_interrupted, reason},
    remote::{Effort, Opened},
};

/// The number of repetitions of a request whose response was interrupted.
const REPETITIONS: u32 = 2;
/// The maximum number of objects in a folder that is listed.
const MOST_LISTED: usize = 1_000_000;

/// Access to objects of a store with the client's credentials.
pub struct StoreObjects {
    remote: Remote,
    opened: Opened,
}

impl fmt::Debug for StoreObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreObjects({})", self.remote)
    }
}

impl Remote {
    /// Access to the store's objects by their keys below its prefix. Sends no requests. `settings`
    /// override the environment's settings, by variable name.
    ///
    /// # Errors
    /// The settings of the store are invalid.
    pub fn objects(&self, settings: &[(String, String)]) -> Result<StoreObjects, StoreError> {
        Ok(StoreObjects {
            opened: self.open(Effort::Some, settings)?,
            remote: self.clone(),
        })
    }

    fn key(&self, key: &str) -> Path {
        match self.prefix.as_str() {
            "" => Path::from(key),
            prefix => Path::from(format!("{prefix}/{key}")),
        }
    }
}

/// Repeats a request whose response was interrupted. The crate repeats only requests without a
/// response.
async fn repeated<T, F>(request: impl Fn() -> F) -> object_store::Result<T>
where
    F: Future<Output = object_store::Result<T>>,
{
    let mut repetitions = 0;
    loop {
        match request().await {
            Err(error) if repetitions < REPETITIONS && is_interrupted(&error) => {
                repetitions += 1;
                tracing::warn!(problem = reason(&error).1, "trying again");
            }
            result => return result,
        }
    }
}

impl StoreObjects {
    /// Signed URLs to upload objects, each valid for at most seven days.
    ///
    /// # Errors
    /// The credentials are missing or cannot sign.
    pub async fn sign_uploads(
        &self,
        keys: &[String],
        validity: Duration,
    ) -> Result<Vec<SignedUrl>, StoreError> {
        let paths: Vec<Path> = keys.iter().map(|key| self.remote.key(key)).collect();
        let validity = validity.min(LONGEST);
        let signer = &self.opened.signer;
        let urls = signer
            .signed_urls(reqwest::Method::PUT, &paths, validity)
            .await;
        let urls = urls.map_err(|error| self.remote.no_object("sign URLs for outputs", &error))?;
        Ok(urls.into_iter().map(SignedUrl::new).collect())
    }

    /// The size of an object; `None` if it does not exist.
    ///
    /// # Errors
    /// The store does not answer. [`StoreError::NotListed`] if it denies the access. Without
    /// permission to list, S3 also denies access if the object does not exist.
    pub async fn size(&self, key: &str) -> Result<Option<u64>, StoreError> {
        match self.opened.objects.head(&self.remote.key(key)).await {
            Ok(found) => Ok(Some(found.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) if matches!(reason(&error).0, Cause::Denied) => Err(StoreError::NotListed {
                store: self.remote.to_string(),
                problem: reason(&error).1,
                remedy: self.remote.variables(),
            }),
            Err(error) => Err(self.remote.no_object("find outputs", &error)),
        }
    }

    /// The objects whose keys begin with a folder, with their sizes; `None` without the permission
    /// to list.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn list(&self, folder: &str) -> Result<Option<Vec<(String, u64)>>, StoreError> {
        let path = self.remote.key(folder);
        let list = || async {
            let found = not_silent(self.opened.objects.list(Some(&path)));
            // Reads one more object than allowed to detect the excess.
            found
                .take(MOST_LISTED + 1)
                .map_ok(|object| {
                    let below = object.location.as_ref().strip_prefix(path.as_ref());
                    let name = below.unwrap_or_default().trim_start_matches('/');
                    (name.to_owned(), object.size)
                })
                .try_collect::<Vec<_>>()
                .await
        };
        match repeated(list).await {
            Ok(found) if found.len() > MOST_LISTED => Err(StoreError::Object {
                action: "list outputs",
                store: self.remote.to_string(),
                problem: format!("{folder} has more than {MOST_LISTED} objects"),
                remedy: "delete objects that do not belong there".to_owned(),
            }),
            Ok(found) => Ok(Some(found)),
            Err(error) if matches!(reason(&error).0, Cause::Denied) => Ok(None),
            Err(error) => Err(self.remote.no_object("list outputs", &error)),
        }
    }

    /// A part of an object.
    ///
    /// # Errors
    /// The object does not exist, or the store does not answer.
    pub async fn read(&self, key: &str, range: Range<u64>) -> Result<Bytes, StoreError> {
        let path = self.remote.key(key);
        let read = || self.opened.objects.get_range(&path, range.clone());
        repeated(read)
            .await
            .map_err(|error| self.remote.no_object("read outputs", &error))
    }

    /// A part of an object as a stream.
    ///
    /// # Errors
    /// The same as [`read`](Self::read).
    pub async fn stream(
        &self,
        key: &str,
        range: Range<u64>,
    ) -> Result<BoxStream<'static, Result<Bytes, StoreError>>, StoreError> {
        let options = GetOptions {
            range: Some(GetRange::Bounded(range)),
            ..GetOptions::default()
        };
        let got = self
            .opened
            .objects
            .get_opts(&self.remote.key(key), options)
            .await;
        let got = got.map_err(|error| self.remote.no_object("read outputs", &error))?;
        let remote = self.remote.clone();
        let stream = got.into_stream();
        Ok(stream
            .map_err(move |error| remote.no_object("read outputs", &error))
            .boxed())
    }

    /// Deletes an object. Succeeds if it does not exist.
    ///
    /// # Errors
    /// The store does not answer, or denies the deletion.
    pub async fn delete(&self, key: &str) -> Result<(), StoreError> {
        match self.opened.objects.delete(&self.remote.key(key)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.remote.no_object("delete outputs", &error)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::{
        io::{BufRead as _, BufReader, Write as _},
        net::{TcpListener, TcpStream},
    };

    use crate::store::Store;

    use super::*;

    /// A store that sends these headers and then an endless body.
    fn endless(headers: &'static str) -> StoreObjects {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let answer = move |stream: TcpStream| {
            let mut lines = BufReader::new(&stream).lines();
            while lines.next()?.ok()?.len() > 2 {}
            let mut stream = &stream;
            stream.write_all(headers.as_bytes()).ok()?;
            let chunk = [b"10000\r\n", &[b' '; 0x10000][..], b"\r\n"].concat();
            while stream.write_all(&chunk).is_ok() {}
            Some(())
        };
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || answer(stream));
            }
        });
        opened(&url)
    }

    fn opened(url: &str) -> StoreObjects {
        let Store::Remote(remote) = Store::parse("s3://bucket/prefix").unwrap() else {
            unreachable!("the URL of a bucket");
        };
        let settings = [
            ("AWS_ENDPOINT_URL", url),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_ACCESS_KEY_ID", "id"),
            ("AWS_SECRET_ACCESS_KEY", "key"),
            ("AWS_REGION", "region"),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
        remote.objects(&settings).unwrap()
    }

    /// With redirects, the session token would be sent to the other server, and its response would
    /// be used.
    #[tokio::test]
    async fn redirects_are_not_followed() {
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        other.set_nonblocking(true).unwrap();
        let place = other.local_addr().unwrap();
        let headers = format!(
            "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://{place}/\r\n\
             content-length: 0\r\nconnection: close\r\n\r\n"
        );
        let error = endless(Box::leak(headers.into_boxed_str()))
            .list("outputs")
            .await;
        let error = error.unwrap_err().to_string();
        assert!(error.contains("redirects are not followed"), "{error}");
        let asked = other.accept().unwrap_err();
        assert_eq!(asked.kind(), std::io::ErrorKind::WouldBlock);
    }

    #[tokio::test]
    async fn a_store_cannot_fill_the_memory() {
        let chunked = "transfer-encoding: chunked\r\n\r\n";
        let listing = Box::leak(format!("HTTP/1.1 200 OK\r\n{chunked}").into_boxed_str());
        let error = endless(listing).list("outputs").await.unwrap_err();
        assert!(error.to_string().contains("longer"), "{error}");
        // The store claims a size that no machine has.
        let claim = "HTTP/1.1 200 OK\r\ncontent-length: 1000000000000000000\r\n\r\n";
        let error = endless(claim).list("outputs").await.unwrap_err();
        assert!(error.to_string().contains("longer"), "{error}");
        let part = "HTTP/1.1 206 Partial Content\r\ncontent-range: bytes 0-9/100\r\n\
                    last-modified: Thu, 01 Jan 2026 00:00:00 GMT\r\netag: \"a\"\r\n\
                    content-length: 1000000000000000000\r\n\r\n";
        let error = endless(part).read("key", 0..10).await.unwrap_err();
        assert!(error.to_string().contains("longer"), "{error}");
        let refusal = format!("HTTP/1.1 403 Forbidden\r\n{chunked}");
        let refusal = Box::leak(refusal.into_boxed_str());
        assert!(endless(refusal).size("key").await.is_err());
    }
}
