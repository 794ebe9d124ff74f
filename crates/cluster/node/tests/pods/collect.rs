//! Files of ended pods that a hook reads.

use std::{collections::BTreeMap, fs, sync::Mutex};

use longshore_node::{CollectFiles, EndedPod};

use super::{helpers::has_namespaces, *};

/// Reads the file `result` of the volume `scratch` of pods with the annotation `collect`.
#[derive(Debug, Default)]
struct Collector(Mutex<Vec<(String, String)>>);

impl Collector {
    /// Returns the contents that were read from a pod, once per call.
    fn of(&self, name: &str) -> Vec<String> {
        let read = self.0.lock().unwrap();
        let own = read.iter().filter(|(pod, _)| pod == name);
        own.map(|(_, text)| text.clone()).collect()
    }
}

impl CollectFiles for Collector {
    fn wants(&self, annotations: &BTreeMap<String, String>) -> bool {
        annotations.contains_key("collect")
    }

    fn collect(&self, pod: &EndedPod<'_>) {
        let metadata = pod.metadata;
        assert_eq!(metadata.namespace.as_deref(), Some("default"));
        assert!(metadata.labels.contains_key("app") && !metadata.uid.is_empty());
        let text = fs::read_to_string(pod.volumes.join("scratch/result"));
        let text = text.unwrap_or_else(|error| error.kind().to_string());
        self.0.lock().unwrap().push((metadata.name.clone(), text));
        assert!(metadata.name != "broken", "on purpose");
    }
}

async fn run(stage: &Stage, name: &str, collect: bool, script: &str) {
    let mut main = shell(script);
    main["volumeMounts"] = json!([{"name": "scratch", "mountPath": "/scratch"}]);
    let spec = json!({
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 5,
        "containers": [main],
        "volumes": [{"name": "scratch", "emptyDir": {}}],
    });
    let mut metadata = json!({"name": name, "labels": {"app": "x"}});
    if collect {
        metadata["annotations"] = json!({"collect": "yes"});
    }
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
    let pods = stage.cluster.pods().in_namespace("default").unwrap();
    pods.create(&pod).await.unwrap();
    pods.bind(name, "here").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_read_once_before_the_end_of_a_pod_is_visible() {
    let collector = Arc::new(Collector::default());
    let mut stage = Stage::without_agent(None, None);
    stage.collect_files = Some(collector.clone());
    stage.start().await;
    if !has_namespaces(&stage).await {
        return;
    }
    for (name, code) in [("succeeded", 0), ("failed", 3)] {
        let script = format!("echo {name} > /scratch/result; exit {code}");
        run(&stage, name, true, &script).await;
        stage.ended(name).await;
        assert_eq!(collector.of(name), [format!("{name}\n")]);
    }
    // A panic of the hook does not prevent the pod from ending.
    run(&stage, "broken", true, "echo x > /scratch/result").await;
    let pod = stage.ended("broken").await;
    assert_eq!(pod["status"]["phase"], "Succeeded");

    run(&stage, "other", false, "echo x > /scratch/result").await;
    stage.ended("other").await;
    assert_eq!(collector.of("other"), Vec::<String>::new());

    // The files contain what the container writes until the end of the grace period.
    let script = "trap 'echo last > /scratch/result; exit 0' TERM; echo first > /scratch/result; \
                  echo ready; while true; do sleep 0.05; done";
    run(&stage, "deleted", true, script).await;
    let pod = stage
        .until("deleted", |pod| pod["status"]["phase"] == "Running")
        .await;
    while stage.log(&pod).await != "ready\n" {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let pods = stage.cluster.pods().in_namespace("default").unwrap();
    pods.delete("deleted", &DeleteOptions::default())
        .await
        .unwrap();
    let removed = async {
        while pods.find("deleted").await.unwrap().is_some() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, removed).await.unwrap();
    assert_eq!(collector.of("deleted"), ["last\n"]);
    stage.stop().await;
}
