//! Decides which quotas a change of an object affects. Pure.

use std::collections::{BTreeMap, HashSet};

use longshore_model::quota::{Evaluator, Quota};

use crate::key::Key;

/// The quotas of all namespaces, and the pods that have ended.
#[derive(Debug, Default)]
pub(super) struct Watched {
    quotas: BTreeMap<Key, Quota>,
    /// The UIDs of pods in namespaces with quotas whose end has been noticed.
    ended: HashSet<String>,
}

/// A change that may reduce the usage of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Freed<'a> {
    /// The object was deleted.
    Deleted,
    /// The object may use less than before.
    Changed,
    /// The pod with this UID has ended.
    Ended(&'a str),
}

impl Watched {
    /// Stores a quota. Returns true if it must be counted. A change of the usage alone, which the
    /// server writes, does not require it.
    pub(super) fn put(&mut self, key: &Key, quota: Quota) -> bool {
        let before = self.quotas.get(key);
        let is_complete = quota.hard == quota.spec_hard && quota.used.keys().eq(quota.hard.keys());
        let is_same = before.is_some_and(|before| {
            before.spec_hard == quota.spec_hard && before.scopes == quota.scopes
        });
        self.quotas.insert(key.clone(), quota);
        !(is_complete && is_same)
    }

    /// Forgets a quota.
    pub(super) fn remove(&mut self, key: &Key) {
        self.quotas.remove(key);
        if self.quotas.is_empty() {
            self.ended.clear();
        }
    }

    /// Forgets a deleted pod.
    pub(super) fn forget_pod(&mut self, uid: &str) {
        self.ended.remove(uid);
    }

    /// Returns true if a namespace has quotas.
    pub(super) fn has_quotas(&self, namespace: &str) -> bool {
        !self.quotas.is_empty() && self.in_namespace(namespace).next().is_some()
    }

    fn in_namespace<'a>(
        &'a self,
        namespace: &'a str,
    ) -> impl Iterator<Item = (&'a Key, &'a Quota)> {
        let quotas = self.quotas.range(Key::new(namespace, "")..);
        quotas.take_while(move |(key, _)| key.namespace == namespace)
    }

    /// Returns the quotas of a namespace to count after a change of an object that the
    /// evaluator counts.
    pub(super) fn freed(
        &mut self,
        namespace: &str,
        evaluator: &Evaluator,
        freed: Freed<'_>,
    ) -> Vec<Key> {
        match freed {
            Freed::Ended(uid) => {
                if !self.ended.insert(uid.to_owned()) {
                    return Vec::new();
                }
            }
            Freed::Deleted | Freed::Changed => {}
        }
        let quotas = self.in_namespace(namespace);
        let quotas = quotas.filter(|(_, quota)| {
            let mut names = quota.spec_hard.keys();
            names.any(|name| evaluator.counts(name))
        });
        quotas.map(|(key, _)| key.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use longshore_model::quantity::Amount;

    use super::*;

    fn quota(hard: i64, used: Option<i64>) -> Quota {
        let amounts = |number| [("pods".to_owned(), Amount::of(number))].into();
        Quota {
            name: "q".to_owned(),
            spec_hard: amounts(hard),
            hard: used.map(|_| amounts(hard)).unwrap_or_default(),
            used: used.map(amounts).unwrap_or_default(),
            scopes: Vec::new(),
        }
    }

    #[test]
    fn charges_of_the_server_are_not_counted_again() {
        let (mut watched, key) = (Watched::default(), Key::new("a", "q"));
        assert!(watched.put(&key, quota(2, None)));
        assert!(!watched.put(&key, quota(2, Some(0))));
        assert!(!watched.put(&key, quota(2, Some(1))));
        assert!(watched.put(&key, quota(3, Some(1))));
    }

    #[test]
    fn each_end_of_a_pod_is_counted_once() {
        let (mut watched, key) = (Watched::default(), Key::new("a", "q"));
        watched.put(&key, quota(2, Some(1)));
        let mut freed = |namespace: &str, evaluator: &Evaluator, freed| {
            watched.freed(namespace, evaluator, freed).len()
        };
        assert_eq!(freed("a", &Evaluator::Pods, Freed::Ended("u")), 1);
        assert_eq!(freed("a", &Evaluator::Pods, Freed::Ended("u")), 0);
        assert_eq!(freed("a", &Evaluator::Pods, Freed::Deleted), 1);
        assert_eq!(freed("b", &Evaluator::Pods, Freed::Deleted), 0);
        assert_eq!(freed("a", &Evaluator::Services, Freed::Changed), 0);
        watched.forget_pod("u");
        assert!(watched.ended.is_empty());
    }
}
