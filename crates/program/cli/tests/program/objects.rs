//! The commands for any object: create, apply, get, label, wait, watch, delete.

use std::io::{BufRead as _, BufReader, Write as _};

use std::process::Stdio;

use crate::machine::Machine;

const TWO: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: colours, labels: {app: shop}}
data: {door: red}
---
apiVersion: batch/v1
kind: Job
metadata: {name: quick, labels: {app: shop}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: any, command: [sh, -c, 'echo done']}]
";

#[test]
fn objects_are_created_listed_changed_and_deleted() {
    let machine = Machine::new();
    machine.write("two.yaml", TWO);
    let tried = machine
        .longshore(&["create", "-f", "two.yaml", "--dry-run"])
        .expect(0);
    assert!(
        tried.out.contains("configmap/colours created (dry run)"),
        "{}",
        tried.out
    );

    let made = machine.longshore(&["create", "-f", "two.yaml"]).expect(0);
    assert_eq!(
        made.out,
        "configmap/colours created\njob.batch/quick created\n"
    );
    let again = machine.longshore(&["create", "-f", "two.yaml"]).expect(1);
    assert!(
        again.err.contains("configmaps \"colours\" already exists"),
        "{}",
        again.err
    );

    let waited = machine
        .longshore(&["wait", "job", "quick", "--until", "finished"])
        .expect(0);
    assert_eq!(waited.out, "job.batch/quick finished\n");

    let table = machine.longshore(&["get", "jobs"]).expect(0).out;
    assert!(
        table.starts_with("NAME") && table.contains("quick") && table.contains("1/1"),
        "{table}"
    );
    let rows = machine.longshore(&["get", "jobs", "--no-headers"]);
    let rows = rows.expect(0).out;
    assert!(
        rows.starts_with("quick ") && rows.lines().count() == 1,
        "{rows}"
    );
    let names = ["get", "configmap", "colours", "-o", "name"];
    assert_eq!(
        machine.longshore(&names).expect(0).out,
        "configmap/colours\n"
    );
    let by_slash = machine
        .longshore(&["get", "cm/colours", "-o", "json"])
        .expect(0)
        .json();
    assert_eq!(by_slash["data"]["door"], "red");
    let by_field = [
        "get",
        "pods",
        "--field-selector",
        "status.phase=Succeeded",
        "-o",
        "json",
    ];
    let pods = machine.longshore(&by_field).expect(0).json();
    assert_eq!(pods["items"].as_array().unwrap().len(), 1);
    let selected = ["get", "cm", "-l", "app=shop", "-o", "name"];
    assert_eq!(
        machine.longshore(&selected).expect(0).out,
        "configmap/colours\n"
    );

    let label = ["label", "cm", "colours", "tier=front", "app-"];
    assert_eq!(
        machine.longshore(&label).expect(0).out,
        "configmap/colours labelled\n"
    );
    let refused = machine
        .longshore(&["label", "cm", "colours", "tier=back"])
        .expect(2);
    assert!(
        refused
            .err
            .contains("configmap/colours has tier=front already"),
        "{}",
        refused.err
    );
    assert!(refused.err.contains("--overwrite"), "{}", refused.err);
    machine
        .longshore(&["label", "cm", "colours", "tier=back", "--overwrite"])
        .expect(0);

    let deleted = machine.longshore(&["delete", "cm", "colours"]).expect(0);
    assert_eq!(deleted.out, "configmap/colours deleted\n");
    let gone = machine.longshore(&["get", "cm", "colours"]).expect(1);
    assert!(
        gone.err.contains("configmaps \"colours\" not found"),
        "{}",
        gone.err
    );
    let none = ["delete", "cm", "colours", "--ignore-not-found"];
    assert!(
        machine
            .longshore(&none)
            .expect(0)
            .err
            .contains("No configmaps")
    );
    machine.longshore(&["delete", "jobs", "--all"]).expect(0);
    let empty = machine.longshore(&["get", "jobs"]).expect(0);
    assert_eq!(empty.err, "No jobs in the namespace default.\n");
    machine.longshore(&["down"]).expect(0);
}

#[test]
fn apply_reports_conflicts_with_other_field_managers() {
    let machine = Machine::new();
    let map = |door: &str| {
        format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}, data: {{door: {door}}}}}"
        )
    };
    machine.write("a.yaml", &map("red"));
    machine.longshore(&["create", "-f", "a.yaml"]).expect(0);
    // `create` does not own the fields for `apply`.
    let mut apply = machine.command(&["apply", "-f", "-"]);
    let apply = apply.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut apply = apply.spawn().unwrap();
    apply
        .stdin
        .take()
        .unwrap()
        .write_all(map("blue").as_bytes())
        .unwrap();
    let refused = apply.wait_with_output().unwrap();
    let errors = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{errors}");
    assert!(
        errors.contains("  .data.door belongs to longshore\n"),
        "{errors}"
    );
    assert!(errors.contains("--force-conflicts"), "{errors}");
    machine.write("a.yaml", &map("blue"));
    let forced = machine
        .longshore(&["apply", "-f", "a.yaml", "--force-conflicts"])
        .expect(0);
    assert_eq!(forced.out, "configmap/a applied\n");
    let again = machine
        .longshore(&["apply", "-f", "a.yaml", "-o", "json"])
        .expect(0)
        .json();
    assert_eq!(again["data"]["door"], "blue");
    machine.longshore(&["down"]).expect(0);
}

#[test]
fn a_warning_of_the_server_is_printed_once() {
    let machine = Machine::new();
    let node = |name: &str| {
        format!(
            "---\n{{apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {{name: {name}}}, \
             spec: {{drivers: []}}}}\n"
        )
    };
    machine.write("nodes.yaml", &(node("a") + &node("b")));
    for verb in ["create", "apply"] {
        let made = machine.longshore(&[verb, "-f", "nodes.yaml", "--dry-run"]);
        let warnings = made.expect(0).err;
        let begin = "warning: csinodes.storage.k8s.io are stored, but this cluster does not act";
        assert!(warnings.starts_with(begin), "{verb}: {warnings}");
        assert_eq!(warnings.lines().count(), 1, "{verb}: {warnings}");
    }
    machine.longshore(&["down"]).expect(0);
}

#[test]
fn a_watch_prints_one_line_per_change() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let mut command = machine.command(&["watch", "cm", "-o", "json"]);
    let mut watch = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    // The start of the watch is not observable: changes continue until the watch prints
    // one.
    let machine = std::sync::Arc::new(machine);
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let changing = std::thread::spawn({
        let (machine, stop) = (machine.clone(), stop.clone());
        move || {
            machine.write(
                "a.yaml",
                "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}",
            );
            machine.longshore(&["apply", "-f", "a.yaml"]).expect(0);
            let mut n = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                n += 1;
                let label = format!("n={n}");
                machine
                    .longshore(&["label", "cm", "a", &label, "--overwrite"])
                    .expect(0);
            }
        }
    });
    let event: serde_json::Value = loop {
        let event: serde_json::Value =
            serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        if event["object"]["metadata"]["name"] == "a" {
            break event;
        }
    };
    assert!(
        ["ADDED", "MODIFIED"].contains(&event["type"].as_str().unwrap()),
        "{event}"
    );
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    changing.join().unwrap();
    watch.kill().unwrap();
    watch.wait().unwrap();
    machine.longshore(&["down"]).expect(0);
}

#[test]
fn invalid_arguments_are_rejected_before_a_cluster_starts() {
    let machine = Machine::new();
    machine.write("bad.yaml", "apiVersion: v1\nkind: [");
    machine.write("empty.yaml", "# nothing\n");
    machine.write(
        "twice.yaml",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nkind: Secret\n",
    );
    machine.write("kustomization.yaml", "resources: [a.yaml]\n");
    machine.write(
        "kinds.yaml",
        "apiVersion: kustomize.config.k8s.io/v1\nkind: Kustomization\n",
    );
    machine.write(
        "template.yaml",
        "kind: Pod\nmetadata: {name: {{ .Values.name }}}\n",
    );
    for (arguments, errors) in [
        (
            &["create", "-f", "bad.yaml"][..],
            "document 1 of the manifest is not valid YAML",
        ),
        (
            &["create", "-f", "empty.yaml"],
            "the manifest has no object in it",
        ),
        (&["create", "-f", "none.yaml"], "cannot read none.yaml"),
        (&["apply", "-f", "twice.yaml"], "twice.yaml: document 1"),
        (
            &["delete", "-f", "twice.yaml"],
            "the key \"kind\" occurs twice at line 4",
        ),
        (
            &["apply", "-f", "kustomization.yaml"],
            "kubectl kustomize FOLDER",
        ),
        (&["apply", "-f", "kinds.yaml"], "is a kustomization"),
        (&["apply", "-f", "template.yaml"], "helm template CHART"),
        (&["delete", "pods"], "no objects are selected"),
        (
            &["delete", "pods", "a", "--all"],
            "--all deletes every object",
        ),
        (&["get", "pods", "a", "-l", "x=y"], "\"a\" names one object"),
        (
            &["get", "pods", "-l", "a in b"],
            "invalid selector \"a in b\"",
        ),
        (&["label", "pod", "a"], "no label changes"),
        (
            &["label", "pod", "a", "x=a b"],
            "invalid label value \"a b\"",
        ),
        (
            &["wait", "pod", "a", "--until", "tomorrow"],
            "write ready, finished, gone",
        ),
    ] {
        let answer = machine.longshore(arguments).expect(2);
        assert!(answer.err.contains(errors), "{arguments:?}: {}", answer.err);
    }
    assert!(!machine.data().exists(), "no cluster was started");
}

/// A pod and a ConfigMap with an error each, and the messages of `apply` and `create`.
#[test]
fn refused_manifests_say_what_to_change() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let pod =
        |spec: &str| format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\nspec: {spec}\n");
    let env = |value: &str| {
        pod(&format!(
            "{{containers: [{{name: web, image: any, env: [{{name: PORT, value: {value}}}]}}]}}"
        ))
    };
    let of = |version: &str, kind: &str| {
        format!("apiVersion: {version}\nkind: {kind}\nmetadata: {{name: web}}\n")
    };
    let cases = [
        (env("8080"), &["value", "put values in quotes"][..]),
        (env("true"), &["value", "put values in quotes"]),
        (
            pod("{containers: {name: web, image: any}}"),
            &["containers", "begin with a dash"],
        ),
        (
            pod("{containers: [{name: web, image: any, comand: [a]}]}"),
            &["comand"],
        ),
        (
            pod("{hostNetwork: yes, containers: []}"),
            &["hostNetwork", "write true or false"],
        ),
        (
            pod("{priority: 0644, containers: []}"),
            &["priority", "octal modes as in 0o644"],
        ),
        (of("v1", "Deployment"), &["it serves the kind in apps/v1"]),
        (
            of("extensions/v1beta1", "Ingress"),
            &["it serves the kind in networking.k8s.io/v1"],
        ),
        (
            of("apps/v1beta1", "Deployment"),
            &["it serves the kind in apps/v1"],
        ),
        (of("apps/v1", "Deploymnet"), &["did you mean Deployment?"]),
    ];
    for (manifest, expected) in &cases {
        machine.write("web.yaml", manifest);
        for verb in ["apply", "create"] {
            let refused = machine.longshore(&[verb, "-f", "web.yaml"]);
            assert_ne!(refused.code, 0, "{verb}: {manifest}");
            for part in *expected {
                assert!(
                    refused.err.contains(part),
                    "{verb}: {manifest}{}",
                    refused.err
                );
            }
        }
    }
    let job = |seconds: u32| {
        format!(
            "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: j}}\nspec: {{template: {{spec: \
         {{restartPolicy: Never, containers: [{{name: c, image: any, command: [sleep, \"{seconds}\"]}}]}}}}}}\n"
        )
    };
    machine.write("job.yaml", &job(300));
    machine.longshore(&["apply", "-f", "job.yaml"]).expect(0);
    machine.write("job.yaml", &job(301));
    let refused = machine.longshore(&["apply", "-f", "job.yaml"]);
    for part in ["spec.template", "immutable", "longshore delete"] {
        assert!(refused.err.contains(part), "{}", refused.err);
    }
}
