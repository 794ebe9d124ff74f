//! Checks and defaults of a write that depend on other objects of the cluster, like Kubernetes'
//! admission plugins and allocators.

use longshore_builtin::{Admission, KindRules};
use longshore_model::KindInfo;

use super::{
    JsonObject, Transaction, limit_range, mountable_secrets, pod_resize, pod_security, priority,
    quota, runtime_class, service, service_account, storage_class, topology_labels,
};
use crate::{Error, Object, Subresource, kinds::KindId, options::Ids, state::State};

/// Applies the limits of the namespace and the classes that a new object names, before its
/// defaults.
pub(super) fn apply_classes(
    state: &State,
    rules: &KindRules,
    info: &KindInfo,
    ids: &dyn Ids,
    object: &mut JsonObject,
) -> Result<(), Error> {
    match rules.admission {
        Admission::PodClasses => {
            limit_range::apply_defaults(state, object);
            service_account::apply_to_pod(state, info, ids, object)?;
            topology_labels::apply_to_pod(state, object);
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

/// Allocates and checks values that must be unique, in the writer's turn. `before` is the previous
/// state, if the object existed.
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

/// Checks a valid change of an object against other objects, in the writer's turn.
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

/// The checks of a valid object, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Check {
    /// The LimitRanges of the namespace.
    LimitRange,
    /// The resources of the pod's node.
    NodeCapacity,
    /// The Secrets that the pod's service account permits.
    MountableSecrets,
    /// The Pod Security Standards of the namespace.
    PodSecurity,
    /// The ResourceQuotas of the namespace.
    Quota,
}

/// The checks of a write, by the subresource that it writes. Kubernetes' admission plugins select
/// writes in the same way. Each check knows the kinds that it concerns.
fn checks(subresource: Subresource) -> &'static [Check] {
    use Check::{LimitRange, MountableSecrets, NodeCapacity, PodSecurity, Quota};
    match subresource {
        Subresource::None => &[LimitRange, MountableSecrets, PodSecurity, Quota],
        Subresource::EphemeralContainers => &[MountableSecrets, PodSecurity],
        Subresource::Resize => &[LimitRange, NodeCapacity, PodSecurity, Quota],
        Subresource::Status => &[Quota],
        Subresource::Scale | Subresource::Finalize | Subresource::Approval => &[],
    }
}

/// Checks a valid object against the limits, the Pod Security Standards and the quotas of its
/// namespace.
pub(super) fn enforce_limits(
    tx: &mut Transaction<'_>,
    kind: KindId,
    object: &JsonObject,
    before: Option<&JsonObject>,
    subresource: Subresource,
) -> Result<(), Error> {
    let info = tx.kinds().entry(kind).info.clone();
    if !info.is_namespaced() {
        return Ok(());
    }
    let is_resize = subresource == Subresource::Resize;
    for check in checks(subresource) {
        match (check, before) {
            (Check::LimitRange, Some(before)) if is_resize => {
                limit_range::check_resize(tx.state(), &info, object, before)?;
            }
            (Check::LimitRange, _) => limit_range::check(tx.state(), &info, object, before)?,
            (Check::NodeCapacity, Some(before)) => {
                pod_resize::check(tx.state(), &info, object, before)?;
            }
            (Check::NodeCapacity, None) => {}
            (Check::MountableSecrets, _) => {
                mountable_secrets::check(tx.state(), &info, object, before)?;
            }
            (Check::PodSecurity, _) => pod_security::enforce(tx.state(), &info, object, before)?,
            (Check::Quota, _) => quota::charge(tx, &info, object, before, subresource)?,
        }
    }
    Ok(())
}

/// The warning about a new object.
pub(super) fn warning(tx: &Transaction<'_>, kind: KindId, object: &JsonObject) -> Option<String> {
    let info = &tx.kinds().entry(kind).info;
    pod_security::warning(tx.state(), info, object, None)
}

/// The warning about a changed object.
pub(super) fn update_warning(
    tx: &Transaction<'_>,
    kind: KindId,
    (old, new): (&Object, &Object),
    subresource: Subresource,
) -> Option<String> {
    let info = &tx.kinds().entry(kind).info;
    let applies = || pod_security::applies(tx.state(), new.namespace().unwrap_or_default());
    if !checks(subresource).contains(&Check::PodSecurity) || !applies() {
        return None;
    }
    pod_security::warning(tx.state(), info, &new.map(), Some(&old.map()))
}
