//! Images that can be pulled, and images that cannot.

use crate::stage::{Stage, said};

/// Starts a run with this image and waits for the cause. The text output names the same
/// cause.
#[track_caller]
fn assert_cause(image: &str, settings: &str, kind: &str, described: &str) {
    let stage = Stage::new();
    stage.machine.write("longshore.toml", settings);
    let run = stage.detach(&["--image", image, "--", "true"]);
    let why = stage.eventually_why(&run, kind);
    assert!(why["explanation"]["remedy"].is_string(), "{why:#}");
    stage.eventually(described, || stage.describe().contains(described));
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn an_image_that_the_registry_does_not_have() {
    let stage = Stage::new();
    let image = stage.images()[0].replace(":1", ":no-such-tag");
    assert_cause(&image, "", "image-not-found", "not found");
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn an_image_that_needs_a_password() {
    let stage = Stage::new();
    assert_cause(
        stage.images()[1],
        "",
        "image-unauthorized",
        "no basic auth credentials",
    );
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn an_unreachable_registry() {
    let stage = Stage::new();
    let image = stage.images()[0].replace(":5000", ":5999");
    assert_cause(&image, "", "registry-unreachable", "connection refused");
    assert_cause(
        "registry.invalid/train:1",
        "",
        "registry-unreachable",
        "registry.invalid",
    );
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn an_image_with_an_invalid_name() {
    assert_cause("Not/An/Image:1", "", "image-name", "InvalidImageName");
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn an_image_that_must_not_be_pulled() {
    let stage = Stage::new();
    assert_cause(
        &stage.images()[0].replace(":1", ":2"),
        "image_pull_policy = \"Never\"",
        "image-never-pulled",
        "ErrImageNeverPull",
    );
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn an_image_without_the_program() {
    let stage = Stage::new();
    let words = [
        "run",
        "--context",
        "real",
        "--namespace",
        &stage.name,
        "--detach",
    ];
    // Preflight cannot know the contents of this image.
    let image = ["--image", "localhost/longshore/pause:1", "--", "true"];
    let run = stage.longshore(&[&words[..], &image].concat()).expect(0);
    stage.eventually_why(run.out.trim(), "launcher-missing");
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_pull_secret_authenticates_to_the_private_registry() {
    let stage = Stage::new();
    let image = stage.images()[1];
    let (registry, _) = image.split_once('/').unwrap();
    stage.kubectl(&[
        "create",
        "secret",
        "docker-registry",
        "puller",
        &format!("--docker-server={registry}"),
        &format!("--docker-username={}", stage.facts("user")),
        &format!("--docker-password={}", stage.facts("password")),
    ]);
    stage.machine.write(
        "longshore.toml",
        "image_pull_secrets = [\"puller\"]\nimage_pull_policy = \"Always\"\n",
    );
    let words = ["run", "--context", "real", "--namespace", &stage.name];
    let words = [
        &words[..],
        &["--image", image, "--", "longshore", "--version"],
    ]
    .concat();
    let answer = stage.longshore(&words).expect(0);
    assert!(said(&answer).starts_with("longshore "), "{}", answer.out);
    let described = stage.describe();
    assert!(
        described.contains("Successfully pulled image"),
        "{described}"
    );
}
