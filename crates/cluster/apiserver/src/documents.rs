//! Cached documents about the served kinds (discovery, OpenAPI), valid until
//! the set of kinds changes.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

/// Cached documents about the served kinds, valid until the set of kinds
/// changes.
#[derive(Debug, Default)]
pub(crate) struct Documents {
    epoch: u64,
    by_name: BTreeMap<String, Document>,
}

/// A document and its `ETag`, each computed once.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub(crate) bytes: Bytes,
    pub(crate) tag: Arc<str>,
}

impl Document {
    pub(crate) fn new(bytes: Bytes) -> Self {
        let digest = Sha256::digest(&bytes);
        let hex: String = digest.iter().map(|byte| format!("{byte:02X}")).collect();
        let tag = format!("\"{hex}\"").into();
        Self { bytes, tag }
    }
}

impl Documents {
    pub(crate) fn get(&self, epoch: u64, name: &str) -> Option<Document> {
        let known = self.by_name.get(name).filter(|_| self.epoch == epoch);
        known.cloned()
    }

    pub(crate) fn put(&mut self, epoch: u64, name: &str, document: Document) {
        if self.epoch < epoch {
            self.by_name.clear();
            self.epoch = epoch;
        }
        if self.epoch == epoch {
            self.by_name.insert(name.to_owned(), document);
        }
    }
}
