//! `longshore zenml run`: pipelines from ZenML's config files, with a package that stands in for
//! ZenML.

use std::fs;

use serde_json::Value;

use crate::{
    machine::Machine,
    zenml::{Fixture, SECRET, UUID},
};

/// Stands in for PyYAML, which ZenML requires: mappings in block style, with JSON's scalars.
const YAML: &str = r##"import json


class FullLoader:
    pass


def load(text, Loader):
    levels = [(-1, {})]
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        depth = len(line) - len(line.lstrip())
        key, _, value = line.strip().partition(":")
        while levels[-1][0] >= depth:
            levels.pop()
        parent = levels[-1][1]
        parent[key] = json.loads(value) if value else {}
        levels.append((depth, parent[key]))
    return levels[0][1]
"##;

/// A config in YAML. `backend` is its block, and `args` are further arguments of the pipeline.
fn config(artifacts: &str, name: &str, backend: &str, args: &str) -> String {
    format!(
        r#"# Written by ZenML.
version: "1"
artifact_store: "{artifacts}"
metadata:
  type: "mysql"
  args:
    password: "{SECRET}"
{backend}pipeline:
  args:
    name: "{name}_{UUID}"
    enable_cache: true
{args}  source: "digits.pipeline.run"
  datasource:
    id: "0e4a"
    name: "digits"
    source: "zenml.datasources.csv_datasource.CSVDatasource@zenml_0.3.6.1"
  steps:
    trainer:
      source: "digits.trainer.Trainer"
      args:
        rate: 0.1
"#
    )
}

const KUBERNETES: &str = "zenml.backends.orchestrator.kubernetes.orchestrator_kubernetes_backend.OrchestratorKubernetesBackend@zenml_0.3.6.1";

#[test]
fn a_pipeline_runs_from_its_config_file() {
    let fixture = Fixture::new();
    let machine = &fixture.machine;
    fs::create_dir(fixture.repository.join("yaml")).unwrap();
    fs::write(fixture.repository.join("yaml/__init__.py"), YAML).unwrap();
    let folder = fixture.repository.join("pipelines");
    fs::create_dir(&folder).unwrap();
    let artifacts = fixture.artifacts.display().to_string();
    let kubeconfig = machine.data().join("kubeconfig");
    let backend = format!(
        "backend:
  type: \"orchestrator\"
  source: \"{KUBERNETES}\"
  args:
    image: \"registry.example/team/zenml:1\"
    job_prefix: \"team-\"
    extra_labels:
      team: \"vision\"
    extra_annotations: null
    namespace: null
    image_pull_policy: \"Never\"
    kubernetes_config_path: {kubeconfig:?}
"
    );
    let text = config(&artifacts, "training_digits", &backend, "");
    fs::write(folder.join("digits.yaml"), text).unwrap();
    // The command runs in a folder below the repository.
    let answer = machine
        .command(&["zenml", "run", "digits.yaml"])
        .current_dir(&folder)
        .output()
        .unwrap();
    let answer = crate::machine::Answer::new(&answer).expect(0);
    let line = format!("ran training_digits_{UUID}");
    assert!(answer.out.contains(&line), "{}\n{}", answer.out, answer.err);

    let report = fixture.report();
    let given = &report["config"];
    assert_eq!(given["metadata"]["args"]["password"], SECRET);
    assert_eq!(given["pipeline"]["steps"]["trainer"]["args"]["rate"], 0.1);
    let files = report["files"].as_array().unwrap();
    assert!(files.contains(&"digits".into()), "{files:?}");
    assert!(!report["arguments"].to_string().contains(SECRET));

    let name = format!("team-training-digits-{UUID}");
    let job = machine.longshore(&["get", "job", &name, "-o", "json"]);
    let job = job.expect(0).json();
    assert_eq!(job["metadata"]["labels"]["team"], "vision");
    let container = &job["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "registry.example/team/zenml:1");
    assert_eq!(container["imagePullPolicy"], "Never");
    assert!(!job.to_string().contains(SECRET));
}

#[test]
fn the_exit_code_of_a_pipeline_is_returned_and_options_override_the_config() {
    let fixture = Fixture::new();
    let machine = &fixture.machine;
    fs::create_dir(fixture.repository.join("yaml")).unwrap();
    fs::write(fixture.repository.join("yaml/__init__.py"), YAML).unwrap();
    machine.write("longshore.toml", "retries = 0\n[env]\nSTAGE = 'test'\n");
    let artifacts = fixture.artifacts.display().to_string();
    // Without a backend, on the cluster of the commands.
    let text = config(&artifacts, "training_fails", "", "    exit: 7\n");
    machine.write("fails.yaml", &text);
    let answer = machine.longshore(&["zenml", "run", "fails.yaml", "--image", "mine:1"]);
    assert_eq!(answer.code, 7, "{}\n{}", answer.out, answer.err);
    let report = fixture.report();
    assert_eq!(report["environment"]["STAGE"], "test");
    let local = &report["config"]["backend"]["source"];
    assert!(local.as_str().unwrap().ends_with("OrchestratorBaseBackend"));

    // A dry run creates nothing.
    let text = config(&artifacts, "training_dry", "", "");
    machine.write("dry.yaml", &text);
    let answer = machine
        .longshore(&["zenml", "run", "dry.yaml", "--dry-run"])
        .expect(0);
    assert!(answer.out.contains("kind: Job"), "{}", answer.out);
    let runs: Value = machine.longshore(&["runs", "-o", "json"]).expect(0).json();
    assert_eq!(runs.as_array().unwrap().len(), 1, "{runs}");

    // Events, as by `longshore run`.
    let text = config(&artifacts, "training_events", "", "");
    machine.write("events.yaml", &text);
    let answer = machine
        .longshore(&["zenml", "run", "events.yaml", "-o", "json"])
        .expect(0);
    let last: Value = serde_json::from_str(answer.out.lines().last().unwrap()).unwrap();
    assert_eq!(last["event"], "finished");
    let again = machine
        .longshore(&["zenml", "run", "events.yaml", "-o", "json"])
        .expect(4);
    assert!(again.err.contains("already exists"), "{}", again.err);
    let last: Value = serde_json::from_str(again.out.lines().last().unwrap()).unwrap();
    assert_eq!(last["ending"], "notStarted");
}

/// Each mistake is reported with the key and a remedy, and starts nothing.
#[test]
fn mistakes_in_a_config_are_reported() {
    let machine = Machine::new();
    let backend = |class: &str, args: &str| {
        format!("backend:\n  source: \"{class}\"\n  args:\n    image: \"a:1\"\n{args}")
    };
    let valid = || config("/srv/artifacts", "training_a", "", "");
    let cases = [
        (
            valid().replace("pipeline:", "pipelines:"),
            "unknown key \"pipelines\"; did you mean \"pipeline\"?",
        ),
        (
            valid().replace("  steps:", "  step:"),
            "unknown key \"pipeline.step\"; did you mean \"steps\"?",
        ),
        (
            valid().replace("      source:", "      sauce:"),
            "\"pipeline.steps.trainer.sauce\"",
        ),
        (
            valid().replace("artifact_store", "artefact_store"),
            "did you mean \"artifact_store\"?",
        ),
        (
            valid().replace("version: \"1\"", "version: \"2\""),
            "version \"2\"",
        ),
        (
            valid().replace("  type: \"mysql\"", ""),
            "no \"metadata.type\"",
        ),
        (
            valid().replace(&format!("    name: \"training_a_{UUID}\"\n"), ""),
            "no \"pipeline.args.name\"",
        ),
        (
            config(
                "/srv/artifacts",
                "training_a",
                &backend(KUBERNETES, "    imgae: \"b\"\n"),
                "",
            ),
            "unknown key \"backend.args.imgae\"; did you mean \"image\"?",
        ),
        (
            config(
                "/srv/artifacts",
                "training_a",
                &backend(KUBERNETES, "    namespace: 3\n"),
                "",
            ),
            "\"backend.args.namespace\" of the pipeline's config must be a text, but is a number",
        ),
        (
            config(
                "/srv/artifacts",
                "training_a",
                &backend(KUBERNETES, "    image_pull_policy: \"never\"\n"),
                "",
            ),
            "choose one of Always, Never, IfNotPresent",
        ),
        (
            config(
                "/srv/artifacts",
                "training_a",
                &backend(
                    "zenml.backends.orchestrator.gcp.orchestrator_gcp_backend.OrchestratorGCPBackend",
                    "",
                ),
                "",
            ),
            "does not run pipelines on Kubernetes; set \"backend.source\"",
        ),
        (
            config(
                "/srv/artifacts",
                "training_a",
                &backend(
                    KUBERNETES,
                    "    kubernetes_config_path: \"/nowhere/config\"\n",
                ),
                "",
            ),
            "/nowhere/config",
        ),
        ("a: [".to_owned(), "is not YAML"),
        (
            "- a\n".to_owned(),
            "\"config\" of the pipeline's config must be a mapping, but is a list",
        ),
        ("a: &a [1]\nb: *a\n".to_owned(), "unknown key \"a\""),
    ];
    for (text, expected) in cases {
        machine.write("pipeline.yaml", &text);
        let answer = machine.longshore(&["zenml", "run", "pipeline.yaml", "--dry-run"]);
        let shown = format!("{expected}\n{text}\n{}", answer.err);
        assert!(matches!(answer.code, 2 | 3), "{shown}");
        assert!(answer.err.contains(expected), "{shown}");
        assert!(!answer.err.contains(SECRET), "{shown}");
    }
    let answer = machine
        .longshore(&["zenml", "run", "nowhere.yaml"])
        .expect(2);
    assert!(
        answer.err.contains("cannot read nowhere.yaml"),
        "{}",
        answer.err
    );
    assert_eq!(machine.pid(), None, "nothing was started");

    // Other clusters need an image.
    machine.write("pipeline.yaml", &valid());
    let kubeconfig = "apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: 'https://127.0.0.1:9'}}]\n\
                      users: [{name: a, user: {}}]\ncontexts: [{name: a, context: {cluster: a, user: a}}]\ncurrent-context: a\n";
    machine.write("kubeconfig", kubeconfig);
    let words = [
        "zenml",
        "run",
        "pipeline.yaml",
        "--dry-run",
        "--kubeconfig",
        "kubeconfig",
    ];
    let answer = machine.longshore(&words).expect(2);
    assert!(answer.err.contains("use --image"), "{}", answer.err);
}
