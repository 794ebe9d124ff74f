//! Tests of the decisions.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::{
    choose::{Choice, Live, choose, surplus},
    hash::{hash, name},
    revision::{Revision, data, sort, template},
    testing,
};

fn names(revisions: &[Arc<Revision>]) -> Vec<&str> {
    revisions.iter().map(|one| one.uid.as_str()).collect()
}

#[test]
fn data_restores_the_template() {
    let one = testing::template("v1");
    let patch = data(&one);
    assert_eq!(patch["spec"]["template"]["$patch"], "replace");
    assert_eq!(template(&patch), one);
}

/// Kubernetes gives this name to a revision with these data. The hash is FNV-1, not FNV-1a.
#[test]
fn hashes_depend_on_the_data_and_the_collisions() {
    assert_eq!(hash(&json!({}), 0), hash(&json!({}), 0));
    assert_ne!(hash(&json!({}), 0), hash(&json!({}), 1));
    assert_ne!(hash(&json!({}), 0), hash(&json!({"a": 1}), 0));
    assert_eq!(name("web", "abc"), "web-abc");
    assert_eq!(name(&"w".repeat(300), "abc").len(), 227);
}

#[test]
fn a_new_template_creates_a_revision_and_an_old_one_becomes_the_newest() {
    let wanted = |image| data(&testing::template(image));
    assert_eq!(choose(&[], &wanted("v1")), Choice::Create(1));
    let (one, two) = (testing::revision(1, "v1"), testing::revision(2, "v2"));
    let all = [one.clone(), two.clone()];
    assert_eq!(choose(&all, &wanted("v3")), Choice::Create(3));
    assert_eq!(choose(&all, &wanted("v2")), Choice::Keep(two));
    assert_eq!(choose(&all, &wanted("v1")), Choice::Renumber(one, 3));
}

#[test]
fn revisions_in_use_are_kept() {
    let all: Vec<_> = (1..=4)
        .map(|number| testing::revision(number, &format!("v{number}")))
        .collect();
    let live = |revision: &Revision| revision.uid == "v1";
    assert_eq!(names(&surplus(&all, 2, Live::Ignored, live)), ["v2"]);
    assert_eq!(names(&surplus(&all, 2, Live::Counts, live)), ["v2", "v3"]);
    assert_eq!(
        names(&surplus(&all, 0, Live::Counts, live)),
        ["v2", "v3", "v4"]
    );
    assert!(surplus(&all, 9, Live::Counts, live).is_empty());
}

proptest! {
    /// Templates can alternate any number of times: each has one revision, the numbers differ, and
    /// the newest revision has the current template.
    #[test]
    fn each_template_has_one_revision(images in prop::collection::vec(0_u8..5, 1..40)) {
        let mut revisions: Vec<Arc<Revision>> = Vec::new();
        for image in images {
            let image = format!("v{image}");
            match choose(&revisions, &data(&testing::template(&image))) {
                Choice::Keep(_) => {}
                Choice::Renumber(found, number) => {
                    revisions.retain(|one| one.uid != found.uid);
                    revisions.push(testing::revision(number, &image));
                }
                Choice::Create(number) => revisions.push(testing::revision(number, &image)),
            }
            sort(&mut revisions);
            prop_assert_eq!(&revisions.last().map(|one| one.uid.clone()), &Some(image));
            let mut numbers: Vec<_> = revisions.iter().map(|one| one.number).collect();
            numbers.dedup();
            prop_assert_eq!(numbers.len(), revisions.len());
        }
        let mut uids = names(&revisions);
        uids.sort_unstable();
        uids.dedup();
        prop_assert_eq!(uids.len(), revisions.len());
    }
}
