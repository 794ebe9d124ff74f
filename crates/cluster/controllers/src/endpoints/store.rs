//! The observed Services, and the pods that they select. Pure.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use super::{pod::PodFacts, service::Service};
use crate::key::Key;

/// The last state of a pod that was read.
#[derive(Debug)]
struct Known {
    version: String,
    facts: Arc<PodFacts>,
}

/// The Services with a selector, and the pods that at least one of them selects.
#[derive(Debug, Default)]
pub(super) struct Store {
    services: BTreeMap<Key, Arc<Service>>,
    pods: HashMap<Key, Known>,
}

impl Store {
    /// Stores or removes a Service.
    pub(super) fn put_service(&mut self, key: &Key, service: Option<Service>) {
        match service {
            Some(service) => self.services.insert(key.clone(), Arc::new(service)),
            None => self.services.remove(key),
        };
    }

    /// Returns a Service.
    pub(super) fn service(&self, key: &Key) -> Option<Arc<Service>> {
        self.services.get(key).cloned()
    }

    /// Returns true if no Service of the namespace has a selector.
    pub(super) fn is_unused(&self, namespace: &str) -> bool {
        self.in_namespace(namespace).next().is_none()
    }

    fn in_namespace<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a Arc<Service>> {
        let services = self.services.range(Key::new(namespace, "")..);
        let services = services.take_while(move |(key, _)| key.namespace == namespace);
        services.map(|(_, service)| service)
    }

    /// Returns the Services that select labels.
    pub(super) fn selecting(&self, namespace: &str, labels: &BTreeMap<String, String>) -> Vec<Key> {
        let services = self.in_namespace(namespace);
        let services = services.filter(|service| service.selects(labels));
        services.map(|service| service.key.clone()).collect()
    }

    /// Returns a pod if this version was read.
    pub(super) fn pod(&self, key: &Key, uid: &str, version: &str) -> Option<Arc<PodFacts>> {
        let known = self.pods.get(key)?;
        let same = known.facts.uid == uid && known.version == version;
        same.then(|| known.facts.clone())
    }

    /// Stores a pod that a Service selects. Returns the Services to reconcile, which is empty if
    /// the published fields have not changed.
    pub(super) fn put_pod(&mut self, key: &Key, version: &str, facts: PodFacts) -> Vec<Key> {
        let mut affected = self.selecting(&key.namespace, &facts.labels);
        let known = self.pods.get(key);
        if let Some(known) = known {
            if *known.facts == facts {
                affected.clear();
            } else {
                affected.extend(self.selecting(&key.namespace, &known.facts.labels));
            }
        }
        let known = Known {
            version: version.to_owned(),
            facts: Arc::new(facts),
        };
        self.pods.insert(key.clone(), known);
        affected
    }

    /// Removes a pod that was deleted or that no Service selects. Returns the Services to
    /// reconcile.
    pub(super) fn remove_pod(&mut self, key: &Key) -> Vec<Key> {
        let known = self.pods.remove(key);
        known.map_or_else(Vec::new, |known| {
            self.selecting(&key.namespace, &known.facts.labels)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoints::testing::{pod, service};

    #[test]
    fn a_pod_affects_the_services_that_select_or_selected_it() {
        let mut store = Store::default();
        let web = service();
        let mut db = service();
        db.key = Key::new("a", "db");
        db.selector = [("app".to_owned(), "db".to_owned())].into();
        let (web_key, db_key) = (web.key.clone(), db.key.clone());
        assert!(store.is_unused("a"));
        store.put_service(&web_key, Some(web));
        store.put_service(&db_key, Some(db));
        assert!(store.is_unused("b") && !store.is_unused("a"));

        let key = Key::new("a", "p");
        let one = pod("p");
        let same = std::slice::from_ref(&web_key);
        assert_eq!(store.put_pod(&key, "1", one.clone()), same);
        assert!(store.pod(&key, "p", "1").is_some() && store.pod(&key, "p", "2").is_none());
        assert!(store.put_pod(&key, "2", one.clone()).is_empty());
        let mut other = one;
        other.labels.insert("app".to_owned(), "db".to_owned());
        assert_eq!(store.put_pod(&key, "3", other), [db_key.clone(), web_key]);
        assert_eq!(store.remove_pod(&key), [db_key]);
        assert!(store.remove_pod(&key).is_empty());
    }
}
