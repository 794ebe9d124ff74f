//! The command and images of a pod's containers.

use crate::escape::unescape;
use crate::evidence::RunPod as _;
use longshore_model::facts::PodFacts;

/// The command of the main container, without the bootstrap command before it.
pub(super) fn command(pod: &PodFacts) -> String {
    let main = pod
        .spec
        .containers
        .iter()
        .find(|container| container.name == pod.main_name());
    let words = main.map(|main| main.command.as_slice()).unwrap_or_default();
    let begin = words
        .iter()
        .position(|word| word == "--")
        .map_or(0, |place| place + 1);
    unescape(&words.get(begin..).unwrap_or_default().join(" "))
}

/// The image of a container.
pub(super) fn image(pod: &PodFacts, container: &str) -> String {
    let all = pod.spec.containers.iter().chain(&pod.spec.init_containers);
    let image = all
        .into_iter()
        .find(|known| known.name == container)
        .map(|known| &known.image);
    image.cloned().unwrap_or_default()
}
