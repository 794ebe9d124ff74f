//! The initial contents of a namespace.

use serde_json::json;

use super::{draft::draft_in_transaction, insert::insert};
use crate::{
    Error,
    machine::{Transaction, ownership::Author},
};

/// Creates the initial contents of a namespace: its service account.
pub(super) fn create_contents(tx: &mut Transaction<'_>, namespace: &str) -> Result<(), Error> {
    let Some(id) = tx.kinds().builtin_id("", "ServiceAccount") else {
        return Ok(());
    };
    let info = tx.kinds().entry(id).info.clone();
    let account = json!({"metadata": {"name": "default"}});
    let draft = draft_in_transaction(tx, &info, Some(namespace), account, Author::server(), None);
    match draft.and_then(|draft| insert(tx, draft)) {
        // Left over from a namespace of this name that a user finalized
        // manually.
        Ok(_) | Err(Error::AlreadyExists(_) | Error::StillThere(_)) => Ok(()),
        Err(error) => Err(error),
    }
}
