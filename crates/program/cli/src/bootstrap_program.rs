//! The path of this program in the containers of a run, which its pods name.

use longshore::client::{Item, kinds::Pod};
use serde::Deserialize;

/// The fields of a pod that name it.
#[derive(Deserialize)]
struct Commands {
    spec: Spec,
}

#[derive(Deserialize)]
struct Spec {
    containers: Vec<Container>,
}

#[derive(Deserialize)]
struct Container {
    name: String,
    #[serde(default)]
    command: Vec<String>,
}

/// The program that runs the command of the container; `None` if the container was not made by
/// this program.
pub(crate) fn program_of(pod: &Item<Pod>, container: &str) -> Option<String> {
    let pod = pod.typed::<Commands>().ok()?;
    let mut containers = pod.spec.containers.into_iter();
    let found = containers.find(|found| found.name == container)?;
    match &found.command[..] {
        [program, verb, ..] if verb == "bootstrap" => Some(program.clone()),
        _ => None,
    }
}
