//! Creates objects. Decoding, defaults and validation need no lock on the state
//! and run before the writer's turn. The writer checks the namespace and the
//! name, and allocates values that must be unique.

mod draft;
mod insert;
mod namespace_contents;

use std::sync::Arc;

use longshore_model::KindInfo;
use serde_json::Value;

pub(super) use draft::draft;
pub(crate) use draft::{Draft, admit};

use self::{draft::draft_in_transaction, insert::insert, namespace_contents::create_contents};
use super::{Transaction, ownership::Author};
use crate::{Create, Error, Written};

/// The writer's part of a creation.
pub(crate) fn create(tx: &mut Transaction<'_>, draft: Draft) -> Result<Written, Error> {
    let is_namespace = draft.is_namespace();
    let written = insert(tx, draft)?;
    if is_namespace && tx.state().creates_accounts {
        create_contents(tx, written.object.name())?;
    }
    Ok(written)
}

/// Executes a creation that admission outside of the engine reviews.
pub(crate) fn create_reviewed(tx: &mut Transaction<'_>, request: Create) -> Result<Written, Error> {
    let reviews = tx.reviews();
    let draft = draft(tx.state(), tx.ids(), request, None, reviews.as_deref())?;
    create(tx, draft)
}

/// Creates an object within the writer's turn, for objects that accompany
/// others.
pub(super) fn create_in_transaction(
    tx: &mut Transaction<'_>,
    kind: &Arc<KindInfo>,
    namespace: Option<&str>,
    object: Value,
    author: Author,
) -> Result<Written, Error> {
    let reviews = tx.reviews();
    let draft = draft_in_transaction(tx, kind, namespace, object, author, reviews.as_deref())?;
    create(tx, draft)
}
