//! What a write checks or sets by the other objects of the cluster, as the
//! admission plugins and allocators of Kubernetes do.

use longshore_builtin::{Admission, KindRules};
use longshore_model::KindInfo;

use super::{JsonObject, Transaction, priority, runtime_class, service, storage_class};
use crate::{Error, kinds::KindId, state::State};

/// Applies the classes that a new object names, before its defaults.
pub(super) fn apply_classes(
    state: &State,
    rules: &KindRules,
    info: &KindInfo,
    object: &mut JsonObject,
) -> Result<(), Error> {
    match rules.admission {
        Admission::PodClasses => {
            priority::apply_to_pod(state, info, object)?;
            runtime_class::apply_to_pod(state, info, object)
        }
        Admission::ClaimClass => {
            storage_class::apply_to_claim(state, object);
            Ok(())
        }
        Admission::None | Admission::ServiceAddresses | Admission::SingleDefault => Ok(()),
    }
}

/// Allocates and checks what must be unique, in the writer's turn. `before` is
/// the previous state, if there is one.
pub(super) fn admit(
    tx: &Transaction<'_>,
    kind: KindId,
    object: &mut JsonObject,
    before: Option<&JsonObject>,
) -> Result<(), Error> {
    let info = &tx.kinds().entry(kind).info;
    match tx.rules(kind).admission {
        Admission::ServiceAddresses => service::allocate(tx, kind, info, object, before),
        Admission::SingleDefault => priority::check_single_default(tx, info, object),
        Admission::None | Admission::PodClasses | Admission::ClaimClass => Ok(()),
    }
}

/// Checks a valid change of an object by the other objects, in the writer's turn.
pub(super) fn check_change(
    tx: &Transaction<'_>,
    kind: KindId,
    before: &JsonObject,
    object: &JsonObject,
) -> Result<(), Error> {
    match tx.rules(kind).admission {
        Admission::ClaimClass => {
            let info = &tx.kinds().entry(kind).info;
            storage_class::check_expansion(tx, info, before, object)
        }
        Admission::None
        | Admission::PodClasses
        | Admission::ServiceAddresses
        | Admission::SingleDefault => Ok(()),
    }
}
