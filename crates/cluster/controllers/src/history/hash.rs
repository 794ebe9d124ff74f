//! Hashes of templates and names of ControllerRevisions.

use longshore_model::name::SUFFIX_LETTERS;
use serde_json::Value;

/// The maximum length of the owner's name in the name of a revision, as in Kubernetes.
const MAX_PREFIX_LENGTH: usize = 223;

/// Returns the hash of a revision: FNV-1 over the text of its data and the collision
/// count, in the characters that Kubernetes uses.
pub(crate) fn hash(data: &Value, collisions: i64) -> String {
    let text = data.to_string();
    let salt = collisions.to_string();
    let hash = text
        .bytes()
        .chain(salt.bytes())
        .fold(0x811c_9dc5_u32, |hash, byte| {
            hash.wrapping_mul(0x0100_0193) ^ u32::from(byte)
        });
    let letters = hash.to_string();
    let letters = letters
        .bytes()
        .map(|byte| usize::from(byte) % SUFFIX_LETTERS.len());
    letters
        .filter_map(|index| SUFFIX_LETTERS.get(index))
        .map(|letter| char::from(*letter))
        .collect()
}

/// Returns the name of a revision.
pub(super) fn name(owner: &str, hash: &str) -> String {
    let prefix = owner.get(..MAX_PREFIX_LENGTH).unwrap_or(owner);
    format!("{prefix}-{hash}")
}
