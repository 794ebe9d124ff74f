//! Results and inputs of tasks: outputs and metrics in a store or a claim, and data, for pods that
//! have no credentials.

use std::fs;

use serde_json::{Value, json};

use crate::{
    machine::Answer,
    s3::{BUCKET, S3},
    stage::{Stage, said},
};

/// Writes files and metrics, and fails or waits.
const TRAIN: &str = "mkdir -p out; echo weights > out/model.bin; echo $LONGSHORE_INDEX > m.json\n\
     echo '{\"loss\": 0.5}' >> \"$LONGSHORE_METRICS\"\n\
     test -z \"$1\" && exit ${FAIL:-0}\n\
     trap 'echo last > out/last; exit 1' TERM; echo ready\n\
     while true; do sleep 0.1; done\n";

/// A cluster and a store that its pods reach.
struct Place {
    stage: Stage,
    server: S3,
}

impl Place {
    fn new(settings: &str) -> Self {
        let stage = Stage::new();
        let server = S3::start_at(stage.machine());
        stage.machine.write("train.sh", TRAIN);
        let settings = format!("name = 'train'\nstore = 's3://{BUCKET}/team'\n{settings}");
        stage.machine.write("longshore.toml", &settings);
        Self { stage, server }
    }

    fn run(&self, words: &[&str]) -> Answer {
        let mut command = self.stage.run_command(words);
        Answer::new(&command.envs(self.server.settings()).output().unwrap())
    }

    fn about(&self, words: &[&str]) -> Answer {
        let place = ["--context", "real", "--namespace", &self.stage.name];
        let mut command = self.stage.command(&[words, &place].concat());
        Answer::new(&command.envs(self.server.settings()).output().unwrap())
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.stage.machine.code().join(path)).unwrap()
    }
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn outputs_of_a_failed_run_are_uploaded_without_credentials_and_fetched() {
    let place = Place::new("outputs = ['out/**', '*.json']\n");
    let words = ["--env", "FAIL=3", "--fetch=got", "--role", "main=2"];
    let answer = place.run(&[&words[..], &["--", "sh", "train.sh"]].concat());
    let answer = answer.expect(3);
    assert_eq!(place.read("got/main-1/m.json"), "1\n", "{}", answer.err);
    assert_eq!(place.read("got/main-0/out/model.bin"), "weights\n");
    let metrics = place.about(&["metrics", "last", "--output", "json"]);
    let metrics = metrics.expect(0).json();
    for task in metrics["tasks"].as_array().unwrap() {
        assert_eq!(task["metrics"], json!({"loss": 0.5}), "{metrics}");
    }
    let pods = place
        .stage
        .kubectl(&["get", "pods,jobs", "--output", "yaml"]);
    assert!(!pods.contains("X-Amz-Signature"), "a signature is in a pod");
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_running_task_uploads_on_request_and_a_cancelled_one_within_its_grace_period() {
    let place = Place::new("outputs = ['out/**']\n");
    let words = ["--detach", "--", "sh", "train.sh", "wait"];
    let run = place.run(&words).expect(0).out.trim().to_owned();
    place.stage.eventually("the task is ready", || {
        place.about(&["logs", &run]).out.contains("ready")
    });
    place.about(&["outputs", &run, "--to", "now"]).expect(0);
    assert_eq!(place.read("now/out/model.bin"), "weights\n");
    place.about(&["cancel", &run]).expect(0);
    place.stage.eventually("the last files are uploaded", || {
        let list = place.about(&["outputs", &run, "--list"]);
        list.out.contains("out/last")
    });
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn outputs_in_a_claim_are_fetched_through_a_pod() {
    let stage = Stage::new();
    let name = &stage.name;
    let folder = stage.state(&format!("claim-{name}"));
    stage.apply(&json!({"apiVersion": "v1", "kind": "List", "items": [
        {
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
            "spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"],
                "persistentVolumeReclaimPolicy": "Retain", "storageClassName": name,
                "hostPath": {"path": folder, "type": "DirectoryOrCreate"},
            },
        },
        {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "results"},
            "spec": {
                "accessModes": ["ReadWriteMany"], "storageClassName": name,
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
    ]}));
    stage.machine.write("train.sh", TRAIN);
    let settings = "outputs_claim = 'results'\noutputs = ['out/**', '*.json']\n";
    stage.machine.write("longshore.toml", settings);
    let words = ["--fetch=got", "--role", "main=2", "--", "sh", "train.sh"];
    let answer = stage.run(&words).expect(0);
    let read = |path: &str| fs::read_to_string(stage.machine.code().join(path));
    let (first, second) = (read("got/main-0/m.json"), read("got/main-1/m.json"));
    assert_eq!(first.unwrap(), "0\n", "{}", answer.err);
    assert_eq!(second.unwrap(), "1\n", "{}", answer.err);
    stage.kubectl(&["delete", "persistentvolume", name, "--wait=false"]);
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn the_failed_combinations_of_a_sweep_are_run_again() {
    let place = Place::new("");
    let words = ["--name", "sweep", "--sweep", "n=1..3", "--metric", "loss"];
    let answer = place.run(
        &[
            &words[..],
            &["--", "sh", "-c", "echo loss={n}; test {n} != 2"],
        ]
        .concat(),
    );
    assert_ne!(answer.code, 0, "{}", answer.err);
    let table = || -> Value {
        let table = place.about(&["sweep", "last", "--output", "json"]);
        table.expect(0).json()
    };
    let states = |table: &Value| -> Vec<String> {
        let rows = table["combinations"].as_array().unwrap().iter();
        rows.map(|row| row["state"].as_str().unwrap().to_owned())
            .collect()
    };
    let first = table();
    assert_eq!(states(&first), ["succeeded", "failed", "succeeded"]);
    assert_eq!(first["combinations"][2]["metrics"], json!({"loss": 3}));
    let retry = place.about(&["retry", "last"]);
    assert_ne!(retry.code, 0, "{}", retry.err);
    assert!(retry.err.contains("1 combination"), "{}", retry.err);
    assert_eq!(table()["retries"].as_array().unwrap().len(), 1);
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn data_is_read_only_and_copied_by_difference() {
    let place = Place::new("");
    let folder = place.stage.machine.code().join("data");
    fs::create_dir(&folder).unwrap();
    for index in 0..20 {
        fs::write(folder.join(format!("{index}.txt")), format!("file {index}")).unwrap();
    }
    let script = "cat \"$LONGSHORE_DATA_TRAIN/7.txt\"; echo; touch \"$LONGSHORE_DATA_TRAIN/x\" 2> /dev/null || echo kept";
    let words = ["--data", "train=data", "--", "sh", "-c", script];
    let answer = place.run(&words).expect(0);
    assert_eq!(said(&answer), "file 7\nkept\n", "{}", answer.err);
    fs::write(folder.join("7.txt"), "changed").unwrap();
    let answer = place.run(&words).expect(0);
    assert_eq!(said(&answer), "changed\nkept\n", "{}", answer.err);
}
