//! Tests of the store and of the decisions about ownership.
#![allow(clippy::unwrap_used)]

use longshore_client::{Error, Item, kinds::Any};
use proptest::prelude::*;
use serde_json::Value;

use super::{
    claim::{Claims, claim},
    kind::{Kind, Meta, Workload},
    store::Store,
    testing::{meta, pod},
};
use crate::{history::testing::revision, key::Key, pod_facts::PodFacts};

/// A workload whose pods have names that start with its own.
#[derive(Debug)]
struct Web(Meta);

impl Workload for Web {
    const KIND: Kind = Kind {
        kind: "StatefulSet",
        what: "statefulset",
        component: "statefulset-controller",
        releases_revisions: true,
    };

    fn of(item: &Item<Any>) -> Result<Self, Error> {
        Meta::of(item).map(Self)
    }

    fn meta(&self) -> &Meta {
        &self.0
    }

    fn hashed(data: &Value) -> &Value {
        data
    }

    fn accepts_name(&self, pod: &str) -> bool {
        pod.starts_with("web-")
    }
}

fn store() -> Store<Web> {
    let mut store = Store::default();
    store.owned.put(Web(meta()));
    store
}

fn claims(store: &Store<Web>) -> Claims {
    claim(&store.snapshot(&Key::new("a", "web")).unwrap())
}

fn names(pods: &[std::sync::Arc<PodFacts>]) -> Vec<&str> {
    pods.iter().map(|pod| pod.key.name.as_str()).collect()
}

fn bare(name: &str) -> PodFacts {
    PodFacts {
        owner: None,
        ..pod(name)
    }
}

#[test]
fn matching_objects_are_adopted_and_others_released() {
    let mut store = store();
    let mut other = pod("web-other");
    other.labels.clear();
    let mut foreign = pod("web-foreign");
    foreign.owner.as_mut().unwrap().uid = "s2".into();
    let deleting = |pod: PodFacts| PodFacts {
        deleting: true,
        ..pod
    };
    for pod in [
        pod("web-own"),
        bare("web-orphan"),
        bare("misnamed"),
        other,
        deleting(pod("web-going")),
        deleting(bare("web-late")),
        foreign,
    ] {
        store.owned.put_pod(pod);
    }
    let mut orphan = (*revision(1, "v1")).clone();
    orphan.owner = None;
    let mut unlabelled = (*revision(2, "v2")).clone();
    unlabelled.labels.clear();
    for revision in [orphan, unlabelled, (*revision(3, "v3")).clone()] {
        store.put_revision(revision);
    }
    let found = claims(&store);
    assert!(found.has_changes());
    assert_eq!(names(&found.pods), ["web-going", "web-own"]);
    assert_eq!(names(&found.adopt), ["web-orphan"]);
    assert_eq!(names(&found.release), ["web-other"]);
    let uids = |list: &[std::sync::Arc<crate::history::Revision>]| -> Vec<String> {
        list.iter().map(|one| one.uid.clone()).collect()
    };
    assert_eq!(uids(&found.revisions), ["v3"]);
    assert_eq!(uids(&found.adopt_revisions), ["v1"]);
    assert_eq!(uids(&found.release_revisions), ["v2"]);

    let mut gone = meta();
    (gone.deleting, gone.version) = (true, "2".into());
    store.owned.put(Web(gone));
    let found = claims(&store);
    assert!(!found.has_changes());
    assert_eq!(names(&found.pods), ["web-going", "web-own"]);
}

#[test]
fn a_pod_deleted_before_the_create_response_is_not_added() {
    let mut store = store();
    let key = Key::new("a", "web-0");
    store.owned.begin_creating("s1");
    assert_eq!(store.owned.put_pod(pod("web-0")), [Key::new("a", "web")]);
    assert_eq!(
        store.owned.remove_pod(&key, "web-0"),
        [Key::new("a", "web")]
    );
    store.owned.created("s1", pod("web-0"));
    store.owned.end_creating("s1");
    assert!(claims(&store).pods.is_empty());
    // A late message of the watch does not undo an accepted deletion.
    store.owned.put_pod(pod("web-0"));
    store.owned.mark_deleting(&key, "web-0");
    store.owned.put_pod(PodFacts {
        version: Some(2),
        ..pod("web-0")
    });
    assert!(claims(&store).pods[0].deleting);
}

proptest! {
    /// Messages can be delayed, duplicated or reordered. After the last state of each object is
    /// known, the store contains exactly these states.
    #[test]
    fn any_order_of_messages_results_in_the_same_state(
        order in Just((0_u64..24).collect::<Vec<_>>()).prop_shuffle()
    ) {
        let mut store = store();
        for step in order {
            let (index, version) = (step % 4, step / 4 + 1);
            store.owned.put_pod(PodFacts {
                version: Some(version),
                owner: pod("").owner.filter(|_| version % 2 == 0),
                ..pod(&format!("web-{index}"))
            });
            let mut one = (*revision(1, &format!("v{index}"))).clone();
            one.version = version.to_string();
            one.number = i64::try_from(version).unwrap();
            store.put_revision(one);
        }
        let found = claims(&store);
        prop_assert_eq!(names(&found.pods), ["web-0", "web-1", "web-2", "web-3"]);
        prop_assert!(!found.has_changes());
        prop_assert!(found.revisions.iter().all(|one| one.number == 6));
    }
}
