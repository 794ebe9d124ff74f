//! Images that nodes are pulling. This is not an error, but it may take minutes.

use std::collections::BTreeMap;

use jiff::Timestamp;
use longshore_model::facts::PodFacts;

use super::ClusterEvidence;
use crate::evidence::RunPod as _;

/// The image that a node is pulling for a pod, and the time when the pull began.
fn pulled_for(pod: &PodFacts, cluster: &ClusterEvidence) -> Option<(String, Timestamp)> {
    if pod.is_over() || pod.has_started() {
        return None;
    }
    let events = cluster.of_pod(&pod.metadata);
    let pull = events.iter().find(|event| event.reason == "Pulling")?;
    let (since, image) = (pull.last_seen()?, pull.message.split('"').nth(1)?);
    let quoted = format!("{image:?}");
    let is_over = events.iter().any(|event| {
        event.reason != "Pulling"
            && event.message.contains(&quoted)
            && event.last_seen().is_some_and(|at| at >= since)
    });
    (!is_over).then(|| (image.to_owned(), since))
}

/// The images that nodes are pulling for the pods of a run, as a text: `pulling the image
/// "trainer:1" for 40 s`.
#[must_use]
pub fn pulling<'a>(
    pods: impl IntoIterator<Item = &'a PodFacts>,
    cluster: &ClusterEvidence,
    now: Timestamp,
) -> Option<String> {
    let mut images: BTreeMap<String, Timestamp> = BTreeMap::new();
    for (image, since) in pods.into_iter().filter_map(|pod| pulled_for(pod, cluster)) {
        let known = images.entry(image).or_insert(since);
        *known = since.min(*known);
    }
    let (image, since) = images.iter().min_by_key(|(_, since)| **since)?;
    let seconds = now.duration_since(*since).as_secs().max(0);
    let others = match images.len() {
        1 => String::new(),
        2 => ", and another image".to_owned(),
        count => format!(", and {} other images", count - 1),
    };
    Some(format!(
        "pulling the image {image:?} for {seconds} s{others}"
    ))
}
