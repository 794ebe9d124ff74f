//! The observed Jobs and their pods, and the controller's own actions that the
//! watch has not reported yet. Pure.
//!
//! The controller chooses a pod's name and records it before it creates the pod, so
//! that a stale cache cannot lead to a duplicate.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};

use k8s_openapi::api::batch::v1::Job;

use super::{backoff::Failures, claim::selects, facts::PodFacts};
use crate::key::Key;

/// The time to wait for a pod if it is unknown whether the pod was created.
const CREATION_TIMEOUT: Duration = Duration::from_secs(30);

/// The observed Jobs and pods.
#[derive(Debug, Default)]
pub(crate) struct Store {
    jobs: HashMap<Key, Arc<Job>>,
    /// Pods are shared with snapshots: a Job can have thousands of pods, and each change requires a
    /// decision.
    pods: HashMap<Key, Arc<PodFacts>>,
    /// The names of a Job's pods, by the Job's UID.
    owned: HashMap<String, BTreeSet<Key>>,
    /// The pods without a controller.
    orphans: HashSet<Key>,
    expected: HashMap<String, HashMap<Key, Expected>>,
    failures: HashMap<String, Failures>,
}

#[derive(Debug)]
struct Expected {
    until: Instant,
    /// True if the watch has reported the pod's deletion, possibly before the response to its
    /// creation arrived.
    gone: bool,
}

/// The observed state of a Job.
pub(crate) struct Snapshot {
    pub(crate) job: Arc<Job>,
    pub(crate) pods: Vec<Arc<PodFacts>>,
    /// The pods without a controller that the Job selects.
    pub(crate) orphans: Vec<Arc<PodFacts>>,
    pub(crate) failures: Failures,
    /// The time to wait for pending pod creations, unless the watch reports a pod earlier.
    pub(crate) wait: Option<Duration>,
}

fn version(job: &Job) -> Option<u64> {
    job.metadata.resource_version.as_ref()?.parse().ok()
}

fn uid(job: &Job) -> &str {
    job.metadata.uid.as_deref().unwrap_or_default()
}

/// Returns true if `new` is not older than `old`. Versions that are not numbers cannot be compared;
/// the later message is then current.
fn is_current(new: Option<u64>, old: Option<u64>) -> bool {
    new.zip(old).is_none_or(|(new, old)| new >= old)
}

impl Store {
    /// Stores a Job from the watch or a response.
    pub(crate) fn put_job(&mut self, key: &Key, job: Job) {
        let known = self.jobs.get(key);
        let outdated = known.is_some_and(|known| {
            uid(known) == uid(&job) && !is_current(version(&job), version(known))
        });
        if !outdated {
            self.jobs.insert(key.clone(), Arc::new(job));
        }
    }

    /// Stores a Job from a response. It is ignored if the Job has been deleted in
    /// the meantime.
    pub(crate) fn put_job_response(&mut self, key: &Key, job: Job) {
        if self
            .jobs
            .get(key)
            .is_some_and(|known| uid(known) == uid(&job))
        {
            self.put_job(key, job);
        }
    }

    /// Removes a Job. Returns its pods that still have the finalizer.
    pub(crate) fn remove_job(&mut self, key: &Key, removed_uid: &str) -> Vec<Key> {
        if self
            .jobs
            .get(key)
            .is_some_and(|known| uid(known) == removed_uid)
        {
            self.jobs.remove(key);
        }
        self.expected.remove(removed_uid);
        self.failures.remove(removed_uid);
        let pods = self.owned.get(removed_uid).into_iter().flatten();
        pods.filter(|pod| self.pods.get(pod).is_some_and(|pod| pod.tracked))
            .cloned()
            .collect()
    }

    /// Returns true if the Job with this key has this UID.
    pub(crate) fn has_job(&self, key: &Key, expected_uid: &str) -> bool {
        self.jobs
            .get(key)
            .is_some_and(|job| uid(job) == expected_uid)
    }

    /// Returns the Jobs in a namespace that select pods with these labels.
    pub(crate) fn selecting(&self, namespace: &str, labels: &BTreeMap<String, String>) -> Vec<Key> {
        let jobs = self.jobs.iter();
        let jobs = jobs.filter(|(key, job)| key.namespace == namespace && selects(job, labels));
        jobs.map(|(key, _)| key.clone()).collect()
    }

    /// Returns a pod.
    pub(crate) fn pod(&self, key: &Key) -> Option<&Arc<PodFacts>> {
        self.pods.get(key)
    }

    /// Stores a pod from the watch.
    pub(crate) fn put_pod(&mut self, mut pod: PodFacts) {
        let key = Key::new(&pod.namespace, &pod.name);
        if let Some(known) = self.pods.get(&key)
            && known.uid == pod.uid
        {
            if !is_current(pod.version, known.version) {
                return;
            }
            // The deletion was requested, but the watch has not reported it yet.
            pod.deleting |= known.deleting;
        }
        self.forget(&key);
        if let Some(owner) = &pod.owner {
            self.owned
                .entry(owner.uid.clone())
                .or_default()
                .insert(key.clone());
            if let Some(expected) = self.expected.get_mut(&owner.uid) {
                expected.remove(&key);
            }
        } else if !pod.is_foreign {
            self.orphans.insert(key.clone());
        }
        self.pods.insert(key, Arc::new(pod));
    }

    /// Stores a pod from a response. It is ignored if the pod has been deleted in
    /// the meantime.
    pub(crate) fn put_pod_response(&mut self, pod: PodFacts) {
        let key = Key::new(&pod.namespace, &pod.name);
        if self
            .pods
            .get(&key)
            .is_some_and(|known| known.uid == pod.uid)
        {
            self.put_pod(pod);
        }
    }

    /// Removes a pod that the watch has reported as deleted.
    pub(crate) fn remove_pod(&mut self, key: &Key, removed_uid: &str) {
        for expected in self.expected.values_mut() {
            if let Some(expected) = expected.get_mut(key) {
                expected.gone = true;
            }
        }
        if self.pods.get(key).is_some_and(|pod| pod.uid == removed_uid) {
            self.forget(key);
        }
    }

    fn forget(&mut self, key: &Key) {
        let Some(pod) = self.pods.remove(key) else {
            return;
        };
        self.orphans.remove(key);
        let Some(owner) = &pod.owner else { return };
        if let Some(list) = self.owned.get_mut(&owner.uid) {
            list.remove(key);
            if list.is_empty() {
                self.owned.remove(&owner.uid);
            }
        }
    }

    /// Marks a pod whose deletion the server has accepted.
    pub(crate) fn mark_deleting(&mut self, key: &Key, uid: &str) {
        if let Some(pod) = self.pods.get_mut(key)
            && pod.uid == uid
        {
            Arc::make_mut(pod).deleting = true;
        }
    }

    /// Marks a pod whose finalizer has been removed.
    pub(crate) fn mark_released(&mut self, key: &Key, uid: &str) {
        if let Some(pod) = self.pods.get_mut(key)
            && pod.uid == uid
        {
            Arc::make_mut(pod).tracked = false;
        }
    }

    /// Records that a pod of the Job is about to be created.
    pub(crate) fn expect(&mut self, job_uid: &str, pod: Key, now: Instant) {
        let expected = Expected {
            until: now + CREATION_TIMEOUT,
            gone: false,
        };
        self.expected
            .entry(job_uid.to_owned())
            .or_default()
            .insert(pod, expected);
    }

    /// Records that the pod has been created.
    pub(crate) fn created(&mut self, job_uid: &str, pod: PodFacts) {
        let key = Key::new(&pod.namespace, &pod.name);
        let expected = self
            .expected
            .get_mut(job_uid)
            .and_then(|pods| pods.remove(&key));
        // If the pod is no longer expected, the watch has already reported newer
        // data.
        if expected.is_some_and(|expected| !expected.gone) {
            self.put_pod(pod);
        }
    }

    /// Records that the pod has not been created.
    pub(crate) fn not_created(&mut self, job_uid: &str, pod: &Key) {
        if let Some(expected) = self.expected.get_mut(job_uid) {
            expected.remove(pod);
        }
    }

    /// Stores the consecutive failures of a Job.
    pub(crate) fn keep_failures(&mut self, job_uid: &str, failures: Failures) {
        self.failures.insert(job_uid.to_owned(), failures);
    }

    /// Returns the observed state of a Job.
    pub(crate) fn snapshot(&mut self, key: &Key, now: Instant) -> Option<Snapshot> {
        let job = self.jobs.get(key)?.clone();
        let expected = self.expected.entry(uid(&job).to_owned()).or_default();
        expected.retain(|_, expected| !expected.gone && expected.until > now);
        let wait = expected.values().map(|expected| expected.until - now).max();
        if expected.is_empty() {
            self.expected.remove(uid(&job));
        }
        let keys = self.owned.get(uid(&job)).into_iter().flatten();
        let in_namespace = keys.filter(|pod| pod.namespace == key.namespace);
        let orphans = self.orphans.iter();
        let orphans = orphans.filter(|pod| pod.namespace == key.namespace);
        let orphans = orphans.filter_map(|pod| self.pods.get(pod));
        let orphans = orphans.filter(|pod| selects(&job, &pod.labels));
        Some(Snapshot {
            orphans: orphans.cloned().collect(),
            pods: in_namespace
                .filter_map(|key| self.pods.get(key))
                .cloned()
                .collect(),
            failures: self.failures.get(uid(&job)).copied().unwrap_or_default(),
            wait,
            job,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;
    use crate::job::testing::{job, pod, running};

    fn store() -> (Store, Key) {
        let mut store = Store::default();
        let key = Key::new("a", "train");
        store.put_job(&key, job(json!({}), json!({})));
        (store, key)
    }

    fn names(store: &mut Store, key: &Key) -> Vec<String> {
        let snapshot = store.snapshot(key, Instant::now()).unwrap();
        snapshot.pods.iter().map(|pod| pod.name.clone()).collect()
    }

    fn newer(pod: PodFacts, version: u64) -> PodFacts {
        PodFacts {
            version: Some(version),
            ..pod
        }
    }

    #[test]
    fn an_older_version_is_ignored() {
        let (mut store, key) = store();
        store.put_pod(newer(
            PodFacts {
                tracked: false,
                ..running("p")
            },
            7,
        ));
        store.put_pod(newer(running("p"), 6));
        assert!(!store.snapshot(&key, Instant::now()).unwrap().pods[0].tracked);

        let mut late = job(json!({"parallelism": 2}), json!({}));
        late.metadata.resource_version = Some("0".into());
        store.put_job(&key, late);
        let snapshot = store.snapshot(&key, Instant::now()).unwrap();
        assert_eq!(snapshot.job.spec.as_ref().unwrap().parallelism, None);
    }

    #[test]
    fn pending_creations_delay_decisions() {
        let (mut store, key) = store();
        let now = Instant::now();
        store.expect("j1", Key::new("a", "p"), now);
        assert_eq!(
            store.snapshot(&key, now).unwrap().wait,
            Some(CREATION_TIMEOUT)
        );
        store.created("j1", pod("p"));
        assert_eq!(store.snapshot(&key, now).unwrap().wait, None);
        assert_eq!(names(&mut store, &key), ["p"]);

        store.expect("j1", Key::new("a", "q"), now);
        store.not_created("j1", &Key::new("a", "q"));
        assert_eq!(store.snapshot(&key, now).unwrap().wait, None);

        // Without a response, the pod is expected until the watch reports it or a
        // timeout passes.
        store.expect("j1", Key::new("a", "r"), now);
        store.put_pod(pod("r"));
        assert_eq!(store.snapshot(&key, now).unwrap().wait, None);
        store.expect("j1", Key::new("a", "s"), now);
        assert_eq!(
            store.snapshot(&key, now + CREATION_TIMEOUT).unwrap().wait,
            None
        );
    }

    #[test]
    fn a_pod_deleted_before_the_create_response_is_not_added() {
        let (mut store, key) = store();
        let now = Instant::now();
        store.expect("j1", Key::new("a", "p"), now);
        store.remove_pod(&Key::new("a", "p"), "p");
        store.created("j1", pod("p"));
        assert!(names(&mut store, &key).is_empty());

        store.expect("j1", Key::new("a", "q"), now);
        store.put_pod(pod("q"));
        store.remove_pod(&Key::new("a", "q"), "q");
        store.created("j1", pod("q"));
        store.put_pod_response(pod("q"));
        assert!(names(&mut store, &key).is_empty());
    }

    #[test]
    fn a_reused_name_is_another_pod() {
        let (mut store, key) = store();
        store.put_pod(newer(pod("p"), 9));
        store.put_pod(PodFacts {
            uid: "other".into(),
            ..newer(pod("p"), 2)
        });
        store.remove_pod(&Key::new("a", "p"), "p");
        assert_eq!(names(&mut store, &key), ["p"]);
        store.remove_pod(&Key::new("a", "p"), "other");
        assert!(names(&mut store, &key).is_empty());
    }

    #[test]
    fn a_requested_deletion_is_remembered() {
        let (mut store, key) = store();
        store.put_pod(running("p"));
        store.mark_deleting(&Key::new("a", "p"), "p");
        store.put_pod(newer(running("p"), 2));
        assert!(store.snapshot(&key, Instant::now()).unwrap().pods[0].deleting);
    }

    #[test]
    fn removing_a_job_returns_its_tracked_pods() {
        let (mut store, key) = store();
        store.put_pod(running("p"));
        store.put_pod(PodFacts {
            tracked: false,
            ..running("q")
        });
        assert!(store.has_job(&key, "j1") && !store.has_job(&key, "j2"));
        assert_eq!(store.remove_job(&key, "j1"), [Key::new("a", "p")]);
        assert!(store.snapshot(&key, Instant::now()).is_none());
        store.put_job_response(&key, job(json!({}), json!({})));
        assert!(store.snapshot(&key, Instant::now()).is_none());
    }
}
