//! The contents of a cache at one time: a persistent map, so that readers keep their
//! version while the next one is created, and an index of labels.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher, RandomState},
    ops::Bound,
    sync::Arc,
};

use imbl::{OrdMap, OrdSet};
use longshore_model::LabelSelector;

use longshore_snapshots::Snapshot;

/// Namespace and name, in this order, separated by a byte that no name contains. Shared by
/// the map and the index.
pub(super) type Key = Arc<str>;

const BETWEEN: char = '\0';

fn key(namespace: Option<&str>, name: &str) -> String {
    let namespace = namespace.unwrap_or_default();
    let mut key = String::with_capacity(namespace.len() + 1 + name.len());
    key.push_str(namespace);
    key.push(BETWEEN);
    key.push_str(name);
    key
}

/// Returns the key of an object.
pub(super) fn key_of(snapshot: &Snapshot) -> String {
    key(snapshot.namespace(), snapshot.name())
}

#[derive(Clone, Default)]
pub(super) struct Table {
    items: OrdMap<Key, Arc<Snapshot>>,
    /// The hash of each label of each object, with the object's key.
    labels: OrdSet<(u64, Key)>,
    hasher: RandomState,
}

impl Table {
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn get(&self, namespace: Option<&str>, name: &str) -> Option<&Arc<Snapshot>> {
        self.items.get(key(namespace, name).as_str())
    }

    pub(super) fn at(&self, key: &str) -> Option<&Arc<Snapshot>> {
        self.items.get(key)
    }

    /// Returns all objects, ordered by namespace and name.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Key, &Arc<Snapshot>)> {
        self.items.iter()
    }

    /// Returns the first object after a key.
    pub(super) fn after(&self, key: &str) -> Option<(&Key, &Arc<Snapshot>)> {
        let behind = (Bound::Excluded(key), Bound::Unbounded);
        self.items
            .range::<(Bound<&str>, Bound<&str>), str>(behind)
            .next()
    }

    pub(super) fn by_namespace(&self, namespace: &str) -> impl Iterator<Item = &Arc<Snapshot>> {
        let first = key(Some(namespace), "");
        let own = move |key: &Key| {
            let mut parts = key.split(BETWEEN);
            parts.next() == Some(namespace)
        };
        self.items
            .range(Key::from(first)..)
            .take_while(move |(key, _)| own(key))
            .map(|(_, snapshot)| snapshot)
    }

    /// Returns the objects with a label, ordered by namespace and name.
    pub(super) fn by_label(&self, name: &str, value: &str) -> impl Iterator<Item = &Arc<Snapshot>> {
        let hash = self.hash(name, value);
        self.labels
            .range((hash, Key::from(""))..)
            .take_while(move |(found, _)| *found == hash)
            .filter_map(|(_, key)| self.items.get(key))
            // Another label may have the same hash.
            .filter(move |snapshot| snapshot.labels().get(name).is_some_and(|v| v == value))
    }

    /// Returns the objects whose labels match, ordered by namespace and name.
    pub(super) fn matching(&self, selector: &LabelSelector) -> Vec<&Arc<Snapshot>> {
        let matches = |snapshot: &&Arc<Snapshot>| selector.matches(&snapshot.labels());
        match selector.narrowest() {
            None if selector.is_everything() => self.items.values().collect(),
            None => self.items.values().filter(matches).collect(),
            Some((name, [value])) => self.by_label(name, value).filter(matches).collect(),
            Some((name, values)) => {
                let found: BTreeMap<_, _> = values
                    .iter()
                    .flat_map(|value| self.by_label(name, value))
                    .filter(matches)
                    .map(|snapshot| ((snapshot.namespace(), snapshot.name()), snapshot))
                    .collect();
                found.into_values().collect()
            }
        }
    }

    /// Returns the object that had this name before.
    pub(super) fn insert(&mut self, snapshot: Arc<Snapshot>) -> Option<Arc<Snapshot>> {
        let key = key_of(&snapshot);
        let known = self.items.get_key_value(key.as_str());
        let (key, before) = match known {
            Some((key, before)) => (key.clone(), Some(before.clone())),
            None => (Key::from(key), None),
        };
        let same = before
            .as_ref()
            .is_some_and(|before| before.labels_text() == snapshot.labels_text());
        if !same {
            if let Some(before) = &before {
                self.unindex(&key, before);
            }
            for (name, value) in &snapshot.labels() {
                self.labels.insert((self.hash(name, value), key.clone()));
            }
        }
        self.items.insert(key, snapshot);
        before
    }

    pub(super) fn remove(&mut self, key: &str) -> Option<Arc<Snapshot>> {
        let (key, snapshot) = self.items.remove_with_key(key)?;
        self.unindex(&key, &snapshot);
        Some(snapshot)
    }

    fn unindex(&mut self, key: &Key, snapshot: &Snapshot) {
        for (name, value) in &snapshot.labels() {
            self.labels.remove(&(self.hash(name, value), key.clone()));
        }
    }

    fn hash(&self, name: &str, value: &str) -> u64 {
        self.hasher.hash_one((name, value))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use bytes::Bytes;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn pod(namespace: &str, name: &str, labels: &BTreeMap<String, String>) -> Arc<Snapshot> {
        let metadata = json!({"namespace": namespace, "name": name, "labels": labels});
        let text = json!({ "metadata": metadata }).to_string();
        Arc::new(Snapshot::parse(&Bytes::from(text), "a pod").unwrap())
    }

    fn names<'a>(found: impl IntoIterator<Item = &'a Arc<Snapshot>>) -> Vec<String> {
        let name = |s: &Arc<Snapshot>| format!("{}/{}", s.namespace().unwrap(), s.name());
        found.into_iter().map(name).collect()
    }

    type Step = (usize, usize, Option<BTreeMap<String, String>>);

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let labels = prop::collection::btree_map("[ab]", "[xyz]", 0..3);
        prop::collection::vec((0..3_usize, 0..6_usize, prop::option::of(labels)), 0..60)
    }

    proptest! {
        #[test]
        fn agrees_with_plain_maps(steps in steps()) {
            let mut table = Table::default();
            let mut plain: BTreeMap<(String, String), BTreeMap<String, String>> = BTreeMap::new();
            for (namespace, name, labels) in steps {
                // The name of one namespace is a prefix of another's, and sorts before its slash.
                let namespace = ["n", "n-1", "o"][namespace].to_owned();
                let name = format!("p{name}");
                match labels {
                    Some(labels) => {
                        let before = table.insert(pod(&namespace, &name, &labels));
                        prop_assert_eq!(before.is_some(), plain.insert((namespace, name), labels).is_some());
                    }
                    None => {
                        let before = table.remove(&key(Some(&namespace), &name));
                        prop_assert_eq!(before.is_some(), plain.remove(&(namespace, name)).is_some());
                    }
                }
            }
            let expected = |test: &dyn Fn(&str, &BTreeMap<String, String>) -> bool| -> Vec<String> {
                let found = plain.iter().filter(|((namespace, _), labels)| test(namespace, labels));
                found.map(|((namespace, name), _)| format!("{namespace}/{name}")).collect()
            };
            prop_assert_eq!(table.len(), plain.len());
            prop_assert_eq!(names(table.iter().map(|(_, s)| s)), expected(&|_, _| true));
            prop_assert_eq!(table.labels.len(), plain.values().map(BTreeMap::len).sum::<usize>());
            for namespace in ["n", "n-1", "o", ""] {
                prop_assert_eq!(names(table.by_namespace(namespace)), expected(&|n, _| n == namespace));
            }
            for value in ["x", "y", "none"] {
                let has = |labels: &BTreeMap<String, String>| labels.get("a").is_some_and(|v| v == value);
                prop_assert_eq!(names(table.by_label("a", value)), expected(&|_, l| has(l)));
            }
            for selector in ["a in (x,y),b!=z", "a", "!b", "a=x,b=y", ""] {
                let selector: LabelSelector = selector.parse().unwrap();
                prop_assert_eq!(names(table.matching(&selector)), expected(&|_, l| selector.matches(l)));
            }
        }
    }

    #[test]
    fn a_clone_stays_as_it_was() {
        let mut table = Table::default();
        let labels = BTreeMap::from([("a".to_owned(), "x".to_owned())]);
        table.insert(pod("n", "one", &labels));
        let before = table.clone();
        table.insert(pod("n", "two", &labels));
        table.remove(&key(Some("n"), "one"));
        assert_eq!(names(before.by_label("a", "x")), ["n/one"]);
        assert_eq!(names(table.by_label("a", "x")), ["n/two"]);
    }
}
