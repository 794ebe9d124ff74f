//! The state that the controller keeps for each autoscaler.

use std::collections::BTreeMap;

use longshore_client::LabelSelector;
use parking_lot::Mutex;

use super::{history::History, pod::PodFacts};
use crate::key::Key;

#[derive(Debug)]
struct Entry {
    uid: String,
    generation: i64,
    /// The selector of the target's pods, if it is known.
    selector: Option<LabelSelector>,
    history: History,
}

/// The autoscalers.
#[derive(Debug, Default)]
pub(super) struct Tracked {
    entries: Mutex<BTreeMap<Key, Entry>>,
}

impl Tracked {
    /// Records an autoscaler. Returns true if the autoscaler is new or its spec has changed.
    pub(super) fn put(&self, key: &Key, uid: &str, generation: i64) -> bool {
        let mut entries = self.entries.lock();
        if let Some(entry) = entries.get_mut(key).filter(|entry| entry.uid == uid) {
            let is_changed = entry.generation != generation;
            entry.generation = generation;
            return is_changed;
        }
        let entry = Entry {
            uid: uid.to_owned(),
            generation,
            selector: None,
            history: History::default(),
        };
        entries.insert(key.clone(), entry);
        true
    }

    /// Removes an autoscaler.
    pub(super) fn remove(&self, key: &Key) {
        self.entries.lock().remove(key);
    }

    /// Records the selector of the target's pods.
    pub(super) fn select(&self, key: &Key, selector: LabelSelector) {
        if let Some(entry) = self.entries.lock().get_mut(key) {
            entry.selector = Some(selector);
        }
    }

    /// Returns the first two autoscalers that select one of the pods.
    pub(super) fn selecting(&self, namespace: &str, pods: &[PodFacts]) -> Vec<Key> {
        let entries = self.entries.lock();
        let entries = entries.range(Key::new(namespace, "")..);
        let entries = entries.take_while(|(key, _)| key.namespace == namespace);
        let selecting = entries.filter(|(_, entry)| {
            let selector = entry.selector.as_ref();
            selector.is_some_and(|selector| pods.iter().any(|pod| selector.matches(&pod.labels)))
        });
        selecting.map(|(key, _)| key.clone()).take(2).collect()
    }

    /// Calls a function with the history of an autoscaler, or with an empty history if the
    /// autoscaler was deleted.
    pub(super) fn history<T>(&self, key: &Key, work: impl FnOnce(&mut History) -> T) -> T {
        match self.entries.lock().get_mut(key) {
            Some(entry) => work(&mut entry.history),
            None => work(&mut History::default()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::autoscale::testing::{at, pod};

    #[test]
    fn only_changes_of_the_spec_are_new() {
        let (tracked, key) = (Tracked::default(), Key::new("a", "x"));
        assert!(tracked.put(&key, "u", 1));
        assert!(!tracked.put(&key, "u", 1));
        assert!(tracked.put(&key, "u", 2));
        tracked.history(&key, |history| history.begin(9, at(0)));
        let highest =
            |tracked: &Tracked| tracked.history(&key, |history| history.stabilize(1, 300, at(0)));
        assert_eq!(highest(&tracked), 9);
        // A new object with the same name has no history.
        assert!(tracked.put(&key, "v", 2));
        assert_eq!(highest(&tracked), 1);
    }

    #[test]
    fn autoscalers_that_select_the_same_pods() {
        let tracked = Tracked::default();
        for (namespace, name, selector) in [
            ("a", "x", "app=web"),
            ("a", "y", "app in (web,db)"),
            ("a", "z", "app=db"),
            ("b", "w", "app=web"),
        ] {
            let key = Key::new(namespace, name);
            tracked.put(&key, "u", 1);
            tracked.select(&key, selector.parse().unwrap());
        }
        let pods = [pod("p")];
        let found = |namespace| tracked.selecting(namespace, &pods);
        assert_eq!(found("a"), [Key::new("a", "x"), Key::new("a", "y")]);
        assert_eq!(found("b"), [Key::new("b", "w")]);
        tracked.remove(&Key::new("a", "x"));
        assert_eq!(found("a"), [Key::new("a", "y")]);
    }
}
