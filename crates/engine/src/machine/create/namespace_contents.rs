//! What comes with a new namespace.

use serde_json::json;

use super::{draft::draft_here, insert::insert};
use crate::{
    Error,
    machine::{Transaction, ownership::Author},
};

/// Makes what comes with a new namespace: its service account.
pub(super) fn create_contents(tx: &mut Transaction<'_>, namespace: &str) -> Result<(), Error> {
    let Some(id) = tx.kinds().builtin_id("", "ServiceAccount") else {
        return Ok(());
    };
    let info = tx.kinds().entry(id).info.clone();
    let account = json!({"metadata": {"name": "default"}});
    let draft = draft_here(tx, &info, Some(namespace), account, Author::server());
    match draft.and_then(|draft| insert(tx, draft)) {
        // Left over from a namespace of this name that was finalized by hand.
        Ok(_) | Err(Error::AlreadyExists(_) | Error::StillThere(_)) => Ok(()),
        Err(error) => Err(error),
    }
}
