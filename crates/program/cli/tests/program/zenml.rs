//! ZenML's backend on an embedded cluster, with a package that stands in for ZenML: the pod
//! has the program, the code and the config, and the result is returned.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use longshore::{
    Cluster,
    launcher::{Event, Follow, FollowOptions, Outcome, Run, runs},
    zenml::{Launched, OrchestratorKubernetesBackend, PipelineConfig, ZenmlError},
};
use serde_json::{Value, json};

use crate::{
    machine::Machine,
    s3::{BUCKET, S3},
};

pub(crate) const UUID: &str = "8c0b0e94-3c1f-4a65-9d57-2f6d1c4b7a10";
pub(crate) const SECRET: &str = "hunter2-in-the-config";

/// A machine with a cluster, a repository and an artifact store.
pub(crate) struct Fixture {
    pub(crate) machine: Machine,
    pub(crate) repository: PathBuf,
    pub(crate) artifacts: PathBuf,
    backend: OrchestratorKubernetesBackend,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let machine = Machine::new();
        machine.longshore(&["up"]).expect(0);
        let repository = machine.code();
        let stand_in =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../runs/zenml/tests/stand_in/.");
        let mut copy = Command::new("cp");
        let copied = copy.arg("-r").arg(stand_in).arg(&repository).status();
        assert!(copied.unwrap().success());
        for (folder, file) in [(".zenml", ".zenml_config"), ("venv", "pyvenv.cfg")] {
            fs::create_dir(repository.join(folder)).unwrap();
            fs::write(repository.join(folder).join(file), "x").unwrap();
        }
        let artifacts = repository.join("../artifacts");
        fs::create_dir(&artifacts).unwrap();
        let backend = OrchestratorKubernetesBackend {
            kubernetes_config_path: machine.data().join("kubeconfig"),
            ..OrchestratorKubernetesBackend::default()
        };
        let artifacts = artifacts.canonicalize().unwrap();
        Self {
            machine,
            repository,
            artifacts,
            backend,
        }
    }

    fn config(&self, pipeline: &str) -> Value {
        json!({
            "version": "1",
            "artifact_store": self.artifacts,
            "metadata": {"type": "mysql", "args": {"password": SECRET}},
            "backend": {"type": "orchestrator", "source": "zenml.backends.X@zenml_0.3.8", "args": {}},
            "pipeline": {
                "args": {"name": format!("{pipeline}_{UUID}")},
                "source": "digits.pipeline.run",
                "datasource": {"id": "0e4a"},
                "steps": {"b": 1, "a": {"factor": 0.1}},
            },
        })
    }

    async fn run(&self, cluster: &Cluster, config: &Value) -> Result<Launched, ZenmlError> {
        let config = PipelineConfig::from_value(config.clone()).unwrap();
        self.backend.run(cluster, &self.repository, &config).await
    }

    /// The report that the pipeline wrote about itself.
    pub(crate) fn report(&self) -> Value {
        let file = self.artifacts.join("report.json");
        let report = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        fs::remove_file(file).unwrap();
        report
    }
}

async fn end(cluster: &Cluster, run: &Run) -> (Vec<String>, Outcome) {
    let mut follow = Follow::start(cluster, run, FollowOptions::default())
        .await
        .unwrap();
    let mut lines = Vec::new();
    while let Some(event) = follow.next().await {
        match event.unwrap() {
            Event::Log(line) => lines.push(line.line),
            Event::Finished(outcome) => return (lines, outcome),
            _ => {}
        }
    }
    panic!("no final event: {lines:?}");
}

fn files(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipeline_is_a_run_like_any_other() {
    let fixture = Fixture::new();
    let cluster = fixture.backend.connect().await.unwrap();
    let config = fixture.config("training_digits");
    let launched = fixture.run(&cluster, &config).await.unwrap();
    let name = format!("zenml-training-digits-{UUID}");
    assert_eq!(launched.run.name.as_str(), name);
    let (lines, outcome) = end(&cluster, &launched.run).await;
    assert_eq!(outcome.exit_code, 0, "{lines:?}\n{outcome:?}");
    assert_eq!(
        lines.last().unwrap(),
        &format!("ran training_digits_{UUID}")
    );

    // The pipeline got its config, and the code without ZenML's own state.
    let report = fixture.report();
    assert_eq!(report["config"], config);
    assert_eq!(
        (&report["folder"], &report["repository"]),
        (&"/longshore/work".into(), &"/longshore/work".into())
    );
    assert_eq!(
        report["files"],
        json!([".git", ".zenml", "digits", "zenml"])
    );
    assert_eq!(
        report["path"].as_array().unwrap().last().unwrap(),
        "/longshore/work"
    );
    let around = [&report["arguments"], &report["environment"]]
        .map(Value::to_string)
        .concat();
    assert!(!around.contains(SECRET), "{around}");
    let job = cluster
        .jobs()
        .in_namespace("default")
        .unwrap()
        .fetch(&name)
        .await
        .unwrap();
    assert!(!job.raw().unwrap().to_string().contains(SECRET));

    // The artifact store has the code, under its digest, and nothing else.
    let staged = fixture.artifacts.join("staging/bundles");
    let tar_path = launched.tar_path.clone().unwrap();
    assert_eq!(Path::new(&tar_path).parent().unwrap(), staged);
    assert_eq!(files(&staged).len(), 1);
    assert_eq!(
        launched.config.value()["backend"]["args"]["tar_path"],
        tar_path
    );
    assert_eq!(
        files(&fixture.repository),
        [".zenml", "digits", "venv", "zenml"]
    );

    let show = |words: &[&str]| fixture.machine.longshore(words).expect(0).out;
    let runs: Value = serde_json::from_str(&show(&["runs", "--output", "json"])).unwrap();
    assert_eq!(
        (&runs[0]["name"], &runs[0]["state"]),
        (&json!(name), &json!("succeeded"))
    );
    assert!(show(&["logs", &name]).contains(&format!("ran training_digits_{UUID}")));
    assert!(show(&["why", &name]).contains("succeeded"));
    assert!(show(&["attach", &name]).contains("ran training"));

    // A second run of the same pipeline is rejected without side effects.
    let again = fixture.run(&cluster, &config).await.unwrap_err();
    assert!(matches!(again, ZenmlError::Exists { .. }), "{again}");
    assert!(
        again
            .to_string()
            .contains(&format!("`longshore rm {name}`"))
    );
    fixture.machine.longshore(&["rm", &name]).expect(0);
    let secrets = cluster.secrets().in_namespace("default").unwrap();
    assert!(secrets.list().await.unwrap().items.is_empty());

    // Runs it again with the uploaded code.
    let again = fixture
        .backend
        .launch_job(&cluster, &launched.config)
        .await
        .unwrap();
    assert_eq!(end(&cluster, &again.run).await.1.exit_code, 0);
    assert_eq!(
        fixture.report()["config"],
        config,
        "without the launcher's settings"
    );
    assert_eq!(files(&staged).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_exit_code_is_returned_after_a_retry() {
    let fixture = Fixture::new();
    let cluster = fixture.backend.connect().await.unwrap();
    let mut config = fixture.config("training_Fails");
    config["pipeline"]["args"]["exit"] = json!(7);
    let run = fixture.run(&cluster, &config).await.unwrap().run;
    let (_, outcome) = end(&cluster, &run).await;
    assert_eq!(outcome.exit_code, 7, "{outcome:?}");
    let why = fixture.machine.longshore(&["why", run.name.as_str()]);
    assert!(why.out.contains("exit code 7"), "{}", why.out);
    let pods = cluster
        .pods()
        .in_namespace("default")
        .unwrap()
        .list()
        .await
        .unwrap();
    assert_eq!(pods.items.len(), 2, "backoffLimit is 1");
}

#[tokio::test(flavor = "multi_thread")]
async fn blockers_of_a_pipeline_are_reported() {
    let mut fixture = Fixture::new();
    let cluster = fixture.backend.connect().await.unwrap();

    // An unwritable store: neither a Job nor a file is created.
    let mut config = fixture.config("training_nowhere");
    let file = fixture.artifacts.join("file");
    fs::write(&file, "").unwrap();
    config["artifact_store"] = json!(file);
    let refused = fixture.run(&cluster, &config).await.unwrap_err();
    assert!(matches!(refused, ZenmlError::Store(_)), "{refused}");
    assert_eq!(files(&fixture.artifacts), ["file"]);
    assert_eq!(
        files(&fixture.repository),
        [".zenml", "digits", "venv", "zenml"]
    );

    fixture.backend.namespace = Some("nowhere".into());
    let refused = fixture
        .run(&cluster, &fixture.config("training_nowhere"))
        .await
        .unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("the cluster has no namespace \"nowhere\""),
        "{refused}"
    );
    assert_eq!(files(&fixture.artifacts), ["file"], "nothing was uploaded");
    assert!(cluster.jobs().list().await.unwrap().items.is_empty());

    // An image without ZenML is reported.
    fixture.backend.namespace = None;
    fixture.backend.settings.run.retries = Some(0);
    fs::remove_dir_all(fixture.repository.join("zenml")).unwrap();
    let run = fixture
        .run(&cluster, &fixture.config("training_bare"))
        .await
        .unwrap()
        .run;
    let (lines, outcome) = end(&cluster, &run).await;
    assert_eq!(outcome.exit_code, 1);
    assert!(
        lines
            .last()
            .unwrap()
            .starts_with("longshore: the image has no ZenML 0.3 ("),
        "{lines:?}"
    );
}

const CHILD: &str = "LONGSHORE_TEST_ZENML";

/// The next test starts this one in a process with a store's credentials in its
/// environment.
#[test]
#[ignore = "another test starts it"]
fn child() {
    let Some(words) = env::var_os(CHILD) else {
        return;
    };
    let words: Value = serde_json::from_str(words.to_str().unwrap()).unwrap();
    let backend = OrchestratorKubernetesBackend {
        kubernetes_config_path: words["kubeconfig"].as_str().unwrap().into(),
        ..OrchestratorKubernetesBackend::default()
    };
    let config = PipelineConfig::from_value(words["config"].clone()).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let code = runtime.block_on(async {
        let cluster = backend.connect().await.unwrap();
        let repository = words["repository"].as_str().unwrap();
        let launched = backend
            .run(&cluster, repository.as_ref(), &config)
            .await
            .unwrap();
        let tar_path = launched.tar_path.unwrap();
        assert!(tar_path.starts_with("s3://"), "{tar_path}");
        assert_eq!(end(&cluster, &launched.run).await.1.exit_code, 0);
        // Runs it again with the bundle in the store.
        runs::remove(&cluster, &launched.run).await.unwrap();
        let again = backend
            .launch_job(&cluster, &launched.config)
            .await
            .unwrap();
        end(&cluster, &again.run).await.1.exit_code
    });
    assert_eq!(code, 0);
}

#[test]
fn code_is_uploaded_to_an_object_store_and_downloaded_without_credentials() {
    let server = S3::start();
    let fixture = Fixture::new();
    let mut config = fixture.config("training_far");
    config["artifact_store"] = json!(format!("s3://{BUCKET}/team"));
    // The pipeline cannot write where nothing is mounted.
    let pipeline = "import os\n\ndef run(config, repository):\n    assert not [name for name in os.environ if name.startswith('AWS_')]\n";
    fs::write(fixture.repository.join("digits/pipeline.py"), pipeline).unwrap();
    let words = json!({
        "kubeconfig": fixture.machine.data().join("kubeconfig"),
        "repository": fixture.repository,
        "config": config,
    });
    let child = Command::new(env::current_exe().unwrap())
        .args(["zenml::child", "--exact", "--ignored", "--nocapture"])
        .env(CHILD, words.to_string())
        .envs(server.settings())
        .output()
        .unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&child.stdout),
        String::from_utf8_lossy(&child.stderr),
    );
    assert!(child.status.success(), "{out}\n{err}");
    assert_eq!(files(&server.file("team/staging/bundles")).len(), 1);
    let seen = server.seen();
    let sent = seen.iter().filter(|line| line.starts_with("PUT ")).count();
    assert_eq!(sent, 1, "{seen:#?}");
}
