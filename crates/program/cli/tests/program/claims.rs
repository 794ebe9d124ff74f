//! Volumes of claims: pods share them, and they survive restarts of the cluster.

use std::{fs, path::PathBuf};

use crate::machine::{Machine, eventually};

fn pod(name: &str, script: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: default}}\nspec:\n  \
         restartPolicy: Never\n  containers:\n  - name: main\n    image: any\n    \
         command: [sh, -c, '{script}']\n    volumeMounts: [{{name: v, mountPath: /data}}]\n  \
         volumes: [{{name: v, persistentVolumeClaim: {{claimName: data}}}}]\n"
    )
}

fn run(machine: &Machine, name: &str, script: &str) -> String {
    machine.write("pod.yaml", &pod(name, script));
    machine.longshore(&["create", "-f", "pod.yaml"]).expect(0);
    machine
        .longshore(&["wait", "pod", name, "--until", "finished"])
        .expect(0);
    machine.longshore(&["logs", name]).expect(0).out
}

/// The directories of claims.
fn directories(machine: &Machine) -> Vec<PathBuf> {
    let folder = machine.data().join("volumes");
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn files_of_a_claim_survive_their_pod_and_a_restart_of_the_cluster() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    machine.write(
        "claim.yaml",
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: default}\n\
         spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n",
    );
    machine.longshore(&["create", "-f", "claim.yaml"]).expect(0);
    assert!(directories(&machine).is_empty());
    run(&machine, "writer", "echo kept > /data/file");
    machine.longshore(&["delete", "pod", "writer"]).expect(0);
    machine.longshore(&["down"]).expect(0);
    machine.longshore(&["up"]).expect(0);
    assert_eq!(run(&machine, "reader", "cat /data/file"), "kept\n");
    assert_eq!(directories(&machine).len(), 1);
    let classes = machine.longshore(&["get", "storageclasses"]).expect(0).out;
    assert!(classes.contains("standard (default)"), "{classes}");
    machine.longshore(&["delete", "pod", "reader"]).expect(0);
    machine.longshore(&["delete", "pvc", "data"]).expect(0);
    eventually("the directory is removed", || {
        directories(&machine).is_empty()
    });
}
