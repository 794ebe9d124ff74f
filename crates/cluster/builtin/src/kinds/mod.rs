//! The table of the built-in kinds: one entry per kind, one file per family.

mod core;
mod devices;
mod networking;
mod policies;
mod registrations;
mod storage;
mod workloads;

use longshore_model::Gvk;

use crate::{KindRules, OtherVersion};

const FAMILIES: [&[KindRules]; 7] = [
    core::KINDS,
    devices::KINDS,
    networking::KINDS,
    policies::KINDS,
    registrations::KINDS,
    storage::KINDS,
    workloads::KINDS,
];

/// The rules of all built-in kinds.
pub fn all() -> impl Iterator<Item = &'static KindRules> {
    FAMILIES.into_iter().flatten()
}

/// The rules of a built-in kind.
///
/// ```
/// use longshore_builtin::{Lifecycle, find};
/// assert_eq!(find("", "Pod").unwrap().lifecycle, Lifecycle::GracePeriod);
/// assert!(find("example.com", "Pod").is_none());
/// ```
#[must_use]
pub fn find(group: &str, kind: &str) -> Option<&'static KindRules> {
    all().find(|rules| rules.group == group && rules.kind == kind)
}

/// The rules of a built-in kind in any version in which it is served.
///
/// ```
/// use longshore_model::Gvk;
/// let event = Gvk::from_api_version("events.k8s.io/v1", "Event");
/// assert_eq!(longshore_builtin::find_served(&event).unwrap().group, "");
/// ```
#[must_use]
pub fn find_served(gvk: &Gvk) -> Option<&'static KindRules> {
    let is_other_version = |rules: &&KindRules| {
        let version = rules.other_version.map(OtherVersion::api_version);
        rules.kind == gvk.kind && version == Some(gvk.api_version().as_str())
    };
    find(&gvk.group, &gvk.kind).or_else(|| all().find(is_other_version))
}

#[cfg(test)]
mod tests {
    use longshore_model::kind::BUILTIN;

    use super::*;

    #[test]
    fn exactly_the_served_kinds_have_an_entry() {
        let mut entries: Vec<_> = all().map(|rules| (rules.group, rules.kind)).collect();
        let mut served: Vec<_> = BUILTIN
            .iter()
            .map(|info| (&*info.gvk.group, &*info.gvk.kind))
            .collect();
        entries.sort_unstable();
        served.sort_unstable();
        assert_eq!(entries, served);
    }
}
