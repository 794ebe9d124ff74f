//! A recorded kubectl prints the same without the cluster, with all pinned versions.

use std::path::Path;

use longshore::{
    Cluster,
    recording::{RecordOptions, Recorder, Replay, ReplayOptions},
};
use longshore_conformance::{Kubectl, Server};

const OBJECTS: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: blue}
---
apiVersion: v1
kind: Secret
metadata: {name: login}
stringData: {password: hunter2hunter2}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  # So that `rollout status` needs a watch.
  minReadySeconds: 3
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: main, image: any, command: [sleep, '1000']}]
";

/// Commands that read and write.
const COMMANDS: &[&str] = &[
    "kubectl apply -f objects.yaml",
    "kubectl get configmaps,secrets",
    "kubectl get configmap settings -o json",
    "kubectl rollout status deployment web",
    "kubectl create deployment empty --image any --replicas 0",
    "kubectl label configmap settings tier=front",
    "kubectl get configmaps -l tier=front -o name",
    "kubectl get secret missing",
    "kubectl auth can-i create pods",
    "kubectl delete -f objects.yaml",
    "kubectl delete deployment empty",
];

/// The output of all commands.
async fn transcript(binary: &Path, kubeconfig: &Path) -> String {
    let kubectl = Kubectl::new(binary.to_owned(), kubeconfig);
    let write = format!("cat > objects.yaml <<'END'{OBJECTS}END");
    kubectl.shell(&write).await;
    let mut all = String::new();
    for command in COMMANDS {
        let ran = kubectl.shell(command).await;
        all += &format!("$ {command}\n{}{:?}\n", ran.stdout, ran.code);
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recorded_kubectl_prints_the_same_without_the_cluster() {
    let folder = tempfile::tempdir().unwrap();
    for binary in Kubectl::binaries() {
        let server = Server::start().await;
        let cluster = Cluster::from_kubeconfig(Some(&server.kubeconfig()), None).await;
        let file = folder.path().join("kubectl.jsonl");
        let recorder = Recorder::start(cluster.unwrap(), &file, RecordOptions::default());
        let recorder = recorder.await.unwrap();
        let recorded = transcript(&binary, recorder.kubeconfig()).await;
        recorder.finish().await;
        server.stop().await;
        assert!(
            recorded.contains("configmap/settings created"),
            "{recorded}"
        );
        assert!(recorded.contains("\"colour\": \"blue\""), "{recorded}");

        let text = std::fs::read_to_string(&file).unwrap();
        assert!(!text.contains("hunter2") && !text.contains("aHVudGVyMm"));
        let mut options = ReplayOptions::default();
        options.strict = true;
        let replay = Replay::open_with(&file, options).await.unwrap();
        let replayed = transcript(&binary, replay.kubeconfig()).await;
        assert_eq!(replayed, recorded, "{}", binary.display());
        let report = replay.report();
        assert!(report.is_complete(), "{}: {report:?}", binary.display());
    }
}
