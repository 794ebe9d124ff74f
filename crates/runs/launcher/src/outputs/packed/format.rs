//! The end of the stream: the list of files with their positions, and the trailer. Pure.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::super::{Manifest, manifest::is_sha256};
use super::MOST_PARTS;
use crate::bundle::hexadecimal;

/// The size of the trailer in bytes.
pub(crate) const TRAILER: u64 = 128;
/// The maximum size of the list.
const LONGEST_LIST: u64 = 256 << 20;
const MARK: &str = "longshore-outputs-1";

/// The list of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PackedManifest {
    /// The files.
    pub(crate) manifest: Manifest,
    /// The positions of the files' contents, in the order of the files.
    pub(crate) offsets: Vec<u64>,
    /// The size of the contents in each object.
    pub(crate) parts: Vec<u64>,
}

/// The position of the list. The trailer is the end of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trailer {
    /// The size of the list in bytes.
    pub(crate) length: u64,
    /// The sha256 of the list.
    sha256: String,
}

impl Trailer {
    /// Creates the trailer of a list.
    pub(crate) fn of(list: &[u8]) -> Self {
        Self {
            length: list.len() as u64,
            sha256: hexadecimal(&Sha256::digest(list)),
        }
    }

    /// The trailer as text of fixed size.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let text = format!("{MARK} {} {}", self.length, self.sha256);
        let width = usize::try_from(TRAILER).unwrap_or_default() - 1;
        format!("{text:<width$}\n").into_bytes()
    }

    /// Parses the last bytes of a stream of this size.
    pub(crate) fn parse(bytes: &[u8], stream: u64) -> Result<Self, String> {
        let wrong = || "it does not end as outputs do".to_owned();
        let text = std::str::from_utf8(bytes).map_err(|_| wrong())?;
        let mut words = text.split_ascii_whitespace();
        let (mark, length, sha256) = (words.next(), words.next(), words.next());
        let length: Option<u64> = length.and_then(|length| length.parse().ok());
        let (Some(MARK), Some(length), Some(sha256)) = (mark, length, sha256) else {
            return Err(wrong());
        };
        let fits = length <= LONGEST_LIST && length.saturating_add(TRAILER) <= stream;
        if !fits || !is_sha256(sha256) {
            return Err(wrong());
        }
        Ok(Self {
            length,
            sha256: sha256.to_owned(),
        })
    }

    /// Parses the list.
    pub(crate) fn read(&self, list: &[u8]) -> Result<PackedManifest, String> {
        let found = hexadecimal(&Sha256::digest(list));
        if found != self.sha256 {
            return Err(format!("the sha256 of its list is {found}"));
        }
        let packed: PackedManifest =
            serde_json::from_slice(list).map_err(|error| error.to_string())?;
        packed.check()?;
        Ok(packed)
    }
}

impl PackedManifest {
    /// Checks that all contents are in the stream.
    fn check(&self) -> Result<(), String> {
        self.manifest.check()?;
        if self.parts.len() as u64 > MOST_PARTS {
            return Err(format!("it has more than {MOST_PARTS} parts"));
        }
        let total = self
            .parts
            .iter()
            .try_fold(0_u64, |sum, part| sum.checked_add(*part));
        let total = total.ok_or("its parts are too large")?;
        if self.offsets.len() != self.manifest.files.len() {
            return Err("a file has no position".to_owned());
        }
        for (file, offset) in self.manifest.files.iter().zip(&self.offsets) {
            if offset.checked_add(file.size).is_none_or(|end| end > total) {
                return Err(format!("{:?} is not in it", file.path));
            }
        }
        Ok(())
    }
}
