//! Parses the URL of a store. Pure.

use std::{fmt, path::PathBuf};

use super::{Store, StoreError, address};

/// The service of an object store, given by the URL scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Service {
    /// `s3://`: Amazon S3 and compatible servers.
    S3,
    /// `gs://`: Google Cloud Storage.
    Gcs,
    /// `az://`: Azure Blob Storage.
    Azure,
}

impl Service {
    fn of_scheme(scheme: &str) -> Option<Self> {
        match scheme {
            "s3" => Some(Self::S3),
            "gs" => Some(Self::Gcs),
            "az" => Some(Self::Azure),
            _ => None,
        }
    }

    fn scheme(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Gcs => "gs",
            Self::Azure => "az",
        }
    }
}

/// A location in an object store: a bucket (Azure: a container) and a prefix. Endpoint and
/// credentials come from the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    pub(super) service: Service,
    pub(super) bucket: String,
    pub(super) prefix: String,
}

impl Remote {
    /// The service.
    #[must_use]
    pub fn service(&self) -> Service {
        self.service
    }

    /// The bucket's or the container's name.
    #[must_use]
    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    /// The path of objects in the bucket.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// A path in the bucket from a path below the prefix.
    pub(crate) fn within(&self, path: &str) -> String {
        match self.prefix.as_str() {
            "" => path.to_owned(),
            prefix => format!("{prefix}/{path}"),
        }
    }

    /// A bundle's path within the bucket.
    #[must_use]
    pub fn path(&self, sha256: &str) -> String {
        self.within(&address(sha256))
    }

    /// A bundle's human-readable URL, which does not grant access.
    #[must_use]
    pub fn place(&self, sha256: &str) -> String {
        let (scheme, bucket) = (self.service.scheme(), &self.bucket);
        format!("{scheme}://{bucket}/{}", self.path(sha256))
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.service.scheme(), self.bucket)?;
        match self.prefix.as_str() {
            "" => Ok(()),
            prefix => write!(f, "/{prefix}"),
        }
    }
}

impl Store {
    /// Reads a store's URL: `file:///an/absolute/path`, `s3://bucket/prefix`,
    /// `gs://bucket/prefix` or `az://container/prefix`.
    ///
    /// # Errors
    /// [`StoreError::Url`].
    ///
    /// ```
    /// use longshore_bundles::Store;
    /// assert_eq!(Store::parse("file:///srv/b").unwrap(), Store::Folder("/srv/b".into()));
    /// assert!(matches!(Store::parse("s3://bucket/prefix"), Ok(Store::Remote(_))));
    /// assert!(Store::parse("ftp://x").is_err());
    /// ```
    pub fn parse(url: &str) -> Result<Self, StoreError> {
        let refuse = |problem: &str| StoreError::Url {
            url: shown(url),
            problem: problem.to_owned(),
        };
        let (scheme, rest) = url
            .split_once("://")
            .ok_or_else(|| refuse("has no scheme"))?;
        if scheme == "file" {
            return match rest.starts_with('/') {
                true => Ok(Self::Folder(PathBuf::from(rest))),
                false => Err(refuse(
                    "has no absolute path: file:// is followed by a third /",
                )),
            };
        }
        let service = Service::of_scheme(scheme);
        let service = service.ok_or_else(|| refuse("has an unknown scheme"))?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err(refuse("names no bucket"));
        }
        if bucket.contains(['@', ':']) {
            return Err(refuse(
                "has more than a bucket's name before the path: endpoint and credentials are read from the environment",
            ));
        }
        let usual = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '$');
        if !bucket.chars().all(usual) {
            return Err(refuse("has an invalid bucket name"));
        }
        let prefix = prefix.trim_end_matches('/');
        if prefix.contains(['?', '#']) {
            return Err(refuse("has more than a path after the bucket"));
        }
        if object_store::path::Path::parse(prefix).is_err() {
            return Err(refuse("has a path with empty parts, `.` or `..`"));
        }
        Ok(Self::Remote(Remote {
            service,
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
        }))
    }
}

/// The URL without possible secrets.
fn shown(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    match url.split_once("://") {
        Some((scheme, rest)) => match rest.rsplit_once('@') {
            Some((_, place)) => format!("{scheme}://…@{place}"),
            None => url.to_owned(),
        },
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_scheme_has_its_service() {
        let schemes = [
            ("s3", Service::S3),
            ("gs", Service::Gcs),
            ("az", Service::Azure),
        ];
        for (scheme, service) in schemes {
            let Store::Remote(remote) =
                Store::parse(&format!("{scheme}://my-bucket/a/b/")).unwrap()
            else {
                panic!("{scheme} is a remote store");
            };
            assert_eq!(remote.service(), service);
            assert_eq!(remote.bucket(), "my-bucket");
            assert_eq!(remote.path("ab12"), "a/b/bundles/ab12.tar.gz");
            assert_eq!(
                remote.place("ab12"),
                format!("{scheme}://my-bucket/a/b/bundles/ab12.tar.gz")
            );
            assert_eq!(remote.to_string(), format!("{scheme}://my-bucket/a/b"));
        }
        let bare = Store::parse("s3://b").unwrap();
        let Store::Remote(bare) = bare else { panic!() };
        assert_eq!(bare.path("ab12"), "bundles/ab12.tar.gz");
        assert_eq!(bare.to_string(), "s3://b");
        assert_eq!(
            Store::parse("file:///srv/b").unwrap(),
            Store::Folder("/srv/b".into())
        );
    }

    #[test]
    fn other_urls_are_rejected_with_the_known_schemes() {
        let refused = [
            ("/srv/b", "has no scheme"),
            ("ftp://x/y", "an unknown scheme"),
            ("https://s3.example/b", "an unknown scheme"),
            ("file://srv/b", "no absolute path"),
            ("s3://", "names no bucket"),
            ("s3:///prefix", "names no bucket"),
            ("s3://b/../c", "`..`"),
            ("s3://b/a//c", "empty parts"),
            ("s3://b/c?versionId=1", "more than a path"),
            ("s3://bü/c", "an invalid bucket name"),
            ("s3://host:9000/c", "read from the environment"),
        ];
        for (url, problem) in refused {
            let error = Store::parse(url).unwrap_err().to_string();
            assert!(error.contains(problem), "{url}: {error}");
            for scheme in ["file:///", "s3://", "gs://", "az://"] {
                assert!(error.contains(scheme), "{url}: {error}");
            }
        }
    }

    #[test]
    fn secrets_in_a_url_are_not_repeated() {
        for url in [
            "s3://key:hush@bucket/p",
            "s3://b/p?token=hush",
            "x://u:hush@h/p#hush",
        ] {
            let error = Store::parse(url).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("hush"), "{error:?}");
        }
    }
}
