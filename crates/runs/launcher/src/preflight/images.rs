//! Checks that images whose command is `longshore` can contain the program.

use std::collections::BTreeSet;

use longshore_diagnosis::{explain::Cause, names};
use longshore_model::facts::PodSpec;

use super::{Finding, Needs, Report};

/// The default registry and owner of image names.
const OFFICIAL: &str = "docker.io/library/";
/// Owners of public images that do not contain the program.
const PUBLISHERS: [&str; 12] = [
    "docker.io/pytorch/",
    "docker.io/tensorflow/",
    "docker.io/rayproject/",
    "docker.io/huggingface/",
    "docker.io/nvidia/",
    "docker.io/continuumio/",
    "docker.io/condaforge/",
    "docker.io/jupyter/",
    "docker.io/horovod/",
    "nvcr.io/nvidia/",
    "ghcr.io/astral-sh/",
    "gcr.io/deeplearning-platform-release/",
];

/// The images of a pod's containers that execute the program by name, without an init container
/// that provides it.
pub(super) fn of(spec: &PodSpec) -> impl Iterator<Item = &str> {
    let containers = spec.containers.iter().chain(&spec.init_containers);
    let own = containers.filter(|container| {
        container
            .command
            .first()
            .is_some_and(|word| word == "longshore")
            && container.name != names::INSTALL
    });
    own.map(|container| container.image.as_str())
}

/// Reports images that cannot contain the program, on a cluster that pulls images.
pub(super) fn check(needs: &Needs, is_embedded: Option<bool>, report: &mut Report) {
    if is_embedded == Some(true) {
        return;
    }
    let images: BTreeSet<&str> = needs
        .roles
        .iter()
        .flat_map(|role| of(&role.spec))
        .filter(|image| is_published(image))
        .collect();
    if images.is_empty() {
        return;
    }
    let names: Vec<String> = images.iter().map(|image| format!("{image:?}")).collect();
    let (word, do_not) = match names.len() {
        1 => ("image", "does"),
        _ => ("images", "do"),
    };
    let finding = Finding::new(
        Cause::LauncherMissing,
        format!(
            "the {word} {} {do_not} not contain the program longshore, and no launcher image provides it",
            names.join(", ")
        ),
        "build an image of the program with docker/Dockerfile (no release publishes one yet), push it to a registry that the nodes can pull from, and name it with --launcher-image or `launcher_image` in longshore.toml; or name an --image that contains longshore",
    );
    match is_embedded {
        Some(_) => report.refusals.push(finding),
        // If the nodes are not visible, only warn.
        None => report.warnings.push(finding),
    }
}

/// Returns true if an image is one of the public images.
fn is_published(image: &str) -> bool {
    let name = full(image);
    name.starts_with(OFFICIAL) || PUBLISHERS.iter().any(|owner| name.starts_with(owner))
}

/// The name with its registry: `docker.io/library/python:3-slim` for `python:3-slim`.
fn full(image: &str) -> String {
    let is_registry = |part: &str| part.contains(['.', ':']) || part == "localhost";
    match image.split_once('/') {
        None => format!("{OFFICIAL}{image}"),
        Some((first, _)) if is_registry(first) => {
            image.replacen("index.docker.io/", "docker.io/", 1)
        }
        Some(_) => format!("docker.io/{image}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_images() {
        for image in [
            "python:3-slim",
            "ubuntu",
            "docker.io/library/python@sha256:00",
            "pytorch/pytorch:2.4.0",
            "index.docker.io/pytorch/pytorch",
            "nvcr.io/nvidia/pytorch:24.01-py3",
        ] {
            assert!(is_published(image), "{image}");
        }
        for image in [
            "registry.example/python",
            "localhost/python:3",
            "localhost:5000/python",
            "team/trainer:1",
            "ghcr.io/team/trainer",
        ] {
            assert!(!is_published(image), "{image}");
        }
    }
}
