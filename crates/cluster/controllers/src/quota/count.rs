//! Counts the usage of a quota.
//!
//! Objects are read from the server after the quota instead of from caches. An object that is
//! missing was then created after this version of the quota, and the update of the quota fails.

use std::collections::BTreeMap;

use jiff::Timestamp;
use longshore_client::{Cluster, Error, kinds::Any};
use longshore_model::{
    KindInfo,
    kind::BUILTIN,
    quantity::{Amount, Amounts},
    quota::{Evaluator, Quota},
};
use serde_json::Value;

/// A kind whose objects a quota counts.
#[derive(Debug, PartialEq)]
pub(super) struct Counted {
    pub(super) evaluator: Evaluator,
    /// The kind; `None` if it is not built in.
    pub(super) kind: Option<&'static KindInfo>,
    /// The plural and the group, such as `jobs.batch`.
    pub(super) resource: String,
}

/// Returns the kinds that a quota with these limits counts.
pub(super) fn counted(hard: &Amounts) -> Vec<Counted> {
    let mut found: BTreeMap<String, Counted> = BTreeMap::new();
    let builtin = BUILTIN.iter().filter(|kind| kind.is_namespaced());
    let of_kinds: Vec<_> = builtin
        .filter_map(|kind| Some((kind, Evaluator::of(&kind.gvk.group, &kind.plural)?)))
        .collect();
    for name in hard.keys() {
        let mut is_known = false;
        for (kind, evaluator) in of_kinds.iter().filter(|(_, one)| one.counts(name)) {
            is_known = true;
            let resource = kind.qualified();
            found.entry(resource.clone()).or_insert_with(|| Counted {
                evaluator: evaluator.clone(),
                kind: Some(kind),
                resource,
            });
        }
        // Objects of custom kinds.
        if let Some(resource) = name.strip_prefix("count/").filter(|_| !is_known) {
            let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
            if let Some(evaluator) = Evaluator::of(group, plural) {
                found.insert(
                    resource.to_owned(),
                    Counted {
                        evaluator,
                        kind: None,
                        resource: resource.to_owned(),
                    },
                );
            }
        }
    }
    found.into_values().collect()
}

/// Adds the usage of an object.
fn add(used: &mut Amounts, usage: Amounts) {
    for (name, amount) in usage {
        if let Some(sum) = used.get_mut(&name) {
            *sum = *sum + amount;
        }
    }
}

/// Returns the usage of a quota in its namespace. Resources that cannot be counted keep their
/// usage.
pub(super) async fn usage(
    cluster: &Cluster,
    namespace: &str,
    quota: &Quota,
    now: Timestamp,
) -> Result<Amounts, Error> {
    let kept = quota.used.iter();
    let kept = kept.filter(|(name, _)| quota.spec_hard.contains_key(*name));
    let mut used: Amounts = kept.map(|(name, amount)| (name.clone(), *amount)).collect();
    for counted in counted(&quota.spec_hard) {
        let view = match counted.kind {
            Some(kind) => cluster.view_of::<Any>(kind.clone()),
            None => match cluster.kind(&counted.resource).await {
                Ok(view) => view,
                // The kind is not served, so nothing is counted.
                Err(Error::Invalid(_)) => continue,
                Err(error) => return Err(error),
            },
        };
        let names = quota.spec_hard.keys();
        for name in names.filter(|name| counted.evaluator.counts(name)) {
            used.insert(name.clone(), Amount::ZERO);
        }
        for item in view.in_namespace(namespace)?.list().await?.items {
            let Value::Object(object) = item.raw()? else {
                continue;
            };
            if counted.evaluator.is_in_scope(quota, &object) {
                add(&mut used, counted.evaluator.usage(&object, now));
            }
        }
    }
    Ok(used)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counted_kinds_follow_from_the_names_of_the_limits() {
        let resources = |names: &[&str]| -> Vec<String> {
            let hard = names.iter().map(|name| ((*name).to_owned(), Amount::of(1)));
            let found = counted(&hard.collect());
            found.into_iter().map(|one| one.resource).collect()
        };
        assert_eq!(
            resources(&["pods", "limits.cpu", "requests.x.com/gpu"]),
            ["pods"]
        );
        assert_eq!(
            resources(&["count/jobs.batch", "services"]),
            ["jobs.batch", "services"]
        );
        assert_eq!(
            resources(&["configmaps", "count/configmaps"]),
            ["configmaps"]
        );
        assert_eq!(
            resources(&["gold.storageclass.storage.k8s.io/requests.storage"]),
            ["persistentvolumeclaims"]
        );
        assert_eq!(
            resources(&["count/shoes.example.com"]),
            ["shoes.example.com"]
        );
        assert_eq!(
            resources(&["count/events", "unknown"]),
            Vec::<String>::new()
        );
    }
}
