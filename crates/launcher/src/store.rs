//! Where bundles go: a Secret while they are small, a folder otherwise.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use bytes::Bytes;

use crate::bundle::Bundle;

/// The most bytes of a bundle that travel in a Secret: Kubernetes takes 1 MiB,
/// and the object around it needs room.
pub const SECRET_LIMIT: u64 = 960 * 1024;

/// A bundle as the plan sees it: what it is, and how the pods get it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleInfo {
    /// The sha256 of the archive, in hexadecimal.
    pub sha256: String,
    /// Its size in bytes.
    pub size: u64,
    /// How the pods get it.
    pub delivery: Delivery,
}

/// How the pods get a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// In a Secret that holds these bytes.
    Secret(Bytes),
    /// In a folder that every node sees at the same path.
    Folder {
        /// The store's folder.
        root: PathBuf,
    },
}

/// A place for bundles that are too large for a Secret, or that shall not
/// travel through the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Store {
    /// `file:///path`: a folder that every node sees.
    Folder(PathBuf),
}

/// Why a bundle cannot be stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The URL is none that is understood.
    #[error("the store {0:?} is not understood: use file:///an/absolute/path")]
    Url(String),
    /// The bundle is too large for a Secret, and no store is given.
    #[error(
        "the bundle has {size} bytes, more than the {SECRET_LIMIT} that fit a Secret: set `store` (file:///…), or leave large files out with .longshoreignore; the largest: {largest}"
    )]
    TooLarge {
        /// Its size in bytes.
        size: u64,
        /// The largest files in it.
        largest: String,
    },
    /// The folder cannot be written.
    #[error("cannot write {} in the store: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl Store {
    /// Reads a store's URL.
    ///
    /// # Errors
    /// [`StoreError::Url`].
    ///
    /// ```
    /// use longshore_launcher::Store;
    /// assert_eq!(Store::parse("file:///srv/b").unwrap(), Store::Folder("/srv/b".into()));
    /// assert!(Store::parse("ftp://x").is_err());
    /// ```
    pub fn parse(url: &str) -> Result<Self, StoreError> {
        let path = url
            .strip_prefix("file://")
            .filter(|path| path.starts_with('/'));
        path.map(|path| Self::Folder(PathBuf::from(path)))
            .ok_or_else(|| StoreError::Url(url.to_owned()))
    }

    /// Puts a bundle under its content address, unless it is there. The file
    /// appears complete or not at all.
    ///
    /// # Errors
    /// [`StoreError::Write`].
    pub fn put(&self, bundle: &Bundle) -> Result<PathBuf, StoreError> {
        let Self::Folder(root) = self;
        let path = root.join(address(&bundle.sha256));
        let error = |source| StoreError::Write {
            path: path.clone(),
            source,
        };
        if fs::metadata(&path).is_ok_and(|found| found.is_file() && found.len() == bundle.size) {
            return Ok(path);
        }
        let folder = path.parent().unwrap_or(root);
        fs::create_dir_all(folder).map_err(error)?;
        // A temporary file removes itself on every way out but the last.
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(error)?;
        let mut reader = bundle.open().map_err(error)?;
        io::copy(&mut reader, &mut file).map_err(error)?;
        file.as_file().sync_all().map_err(error)?;
        readable(file.path()).map_err(error)?;
        file.persist(&path).map_err(|failed| error(failed.error))?;
        Ok(path)
    }
}

/// Pods may run as another user than the one who packs.
fn readable(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644))
}

/// The path of a bundle within a store.
#[must_use]
pub fn address(sha256: &str) -> String {
    format!("bundles/{sha256}.tar.gz")
}

/// Decides how a bundle travels, and uploads it where that is needed: to the
/// store when one is given, else in a Secret when it fits.
///
/// # Errors
/// [`StoreError::TooLarge`] and [`StoreError::Write`].
pub fn deliver(bundle: &Bundle, store: Option<&Store>) -> Result<BundleInfo, StoreError> {
    let delivery = match store {
        Some(store @ Store::Folder(root)) => {
            store.put(bundle)?;
            Delivery::Folder { root: root.clone() }
        }
        None if bundle.size <= SECRET_LIMIT => {
            let bytes = bundle.bytes().map_err(|source| StoreError::Write {
                path: PathBuf::from("the bundle"),
                source,
            })?;
            Delivery::Secret(bytes)
        }
        None => {
            let largest: Vec<String> = bundle
                .report
                .largest
                .iter()
                .take(3)
                .map(|(path, size)| format!("{} ({size} bytes)", path.display()))
                .collect();
            return Err(StoreError::TooLarge {
                size: bundle.size,
                largest: largest.join(", "),
            });
        }
    };
    Ok(BundleInfo {
        sha256: bundle.sha256.clone(),
        size: bundle.size,
        delivery,
    })
}
