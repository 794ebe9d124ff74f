//! The Pod Security Standards, which limit pods in a namespace by the labels of the namespace.

mod baseline;
mod policy;
mod restricted;
mod template;

pub use policy::{Level, Policy, Standard, Version, label_problems};
pub use template::Template;

/// A violation of a standard by a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    reason: String,
    detail: String,
}

impl Violation {
    fn new(reason: &str, detail: String) -> Self {
        Self {
            reason: reason.to_owned(),
            detail,
        }
    }
}

/// A rule of a standard.
type Check = fn(&Template<'_>, Version) -> Option<Violation>;

/// Describes how a pod violates a standard, in the words of Kubernetes; `None` if it does not.
#[must_use]
pub fn violations(standard: Standard, pod: &Template<'_>) -> Option<String> {
    let checks: Vec<Check> = match standard.level {
        Level::Privileged => Vec::new(),
        Level::Baseline => baseline::CHECKS.iter().map(|(_, check)| *check).collect(),
        Level::Restricted => {
            let overridden = restricted::overridden(standard.version);
            let baseline = baseline::CHECKS.iter();
            let baseline = baseline.filter(|(name, _)| !overridden.contains(name));
            let all = baseline.map(|(_, check)| *check);
            all.chain(restricted::CHECKS.iter().copied()).collect()
        }
    };
    let found = checks
        .iter()
        .filter_map(|check| check(pod, standard.version));
    let texts = found.map(|Violation { reason, detail }| match &*detail {
        "" => reason,
        _ => format!("{reason} ({detail})"),
    });
    let texts: Vec<String> = texts.collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

#[cfg(test)]
mod tests;
