//! Volumes of claims, and volumes that follow changes of the pod.

use std::fs;

use longshore_client::Patch;

use super::{helpers::has_namespaces, *};

impl Stage {
    /// Creates a volume for a directory, and a claim that is bound to it.
    async fn claim(&self, name: &str, source: Value) {
        let claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": name,
                "resources": {"requests": {"storage": "1Mi"}},
            },
        });
        let claim = self.cluster.create(&claim, None).await.unwrap();
        let mut volume = json!({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Mi"},
                "claimRef": {"namespace": "default", "name": name, "uid": claim.uid()},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                    {"key": "kubernetes.io/hostname", "operator": "In", "values": ["here"]}]}]}},
            },
        });
        for (field, value) in source.as_object().unwrap() {
            volume["spec"][field] = value.clone();
        }
        self.cluster.create(&volume, None).await.unwrap();
    }

    async fn bind_claim(&self, name: &str) {
        let view = self.cluster.persistentvolumeclaims();
        let view = view.in_namespace("default").unwrap();
        let patch = Patch::merge(json!({"status": {"phase": "Bound"}}));
        view.patch_status(name, &patch).await.unwrap();
    }
}

fn mounting(script: &str, claim: Value, mounts: Value) -> Value {
    let mut main = shell(script);
    main["env"] = json!([{"name": "PART", "value": "parts/one"}]);
    main["volumeMounts"] = mounts;
    let mut claim = claim;
    claim["name"] = "v".into();
    json!({"restartPolicy": "Never", "containers": [main], "volumes": [claim]})
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_are_mounted_when_they_are_bound() {
    let stage = Stage::new().await;
    if !has_namespaces(&stage).await {
        return;
    }
    let folder = stage.folder.path().join("volume");
    fs::create_dir(&folder).unwrap();
    let path = folder.to_str().unwrap();
    let claim = |read_only: bool| json!({"persistentVolumeClaim": {"claimName": "data", "readOnly": read_only}});
    let script = "echo kept > /data/file; echo part > /part/file";
    let mounts = json!([
        {"name": "v", "mountPath": "/data"},
        {"name": "v", "mountPath": "/part", "subPathExpr": "$(PART)"},
    ]);
    stage
        .run("writer", mounting(script, claim(false), mounts))
        .await;
    assert_eq!(
        stage.event("writer", "FailedMount").await,
        "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], failed to process volumes=[v]: error processing PVC default/data: failed to fetch PVC from API server: persistentvolumeclaims \"data\" not found"
    );
    stage.claim("data", json!({"local": {"path": path}})).await;
    stage.bind_claim("data").await;
    let pod = stage.ended("writer").await;
    assert_eq!(pod["status"]["phase"], "Succeeded");
    assert_eq!(fs::read_to_string(folder.join("file")).unwrap(), "kept\n");
    let part = folder.join("parts/one/file");
    assert_eq!(fs::read_to_string(part).unwrap(), "part\n");

    // A later pod reads the files, but cannot change them.
    let script = "cat /data/file; echo x 2>/dev/null > /data/file || echo refused";
    let mounts = json!([{"name": "v", "mountPath": "/data"}]);
    stage
        .run("reader", mounting(script, claim(true), mounts))
        .await;
    let pod = stage.ended("reader").await;
    assert_eq!(stage.log(&pod).await, "kept\nrefused\n");

    // A link that a container made does not lead out of the volume.
    std::os::unix::fs::symlink("/", folder.join("out")).unwrap();
    let mounts = json!([{"name": "v", "mountPath": "/data", "subPath": "out/etc"}]);
    stage
        .run("escape", mounting("true", claim(false), mounts))
        .await;
    let pod = stage.until("escape", waits_for_config).await;
    let message = &pod["status"]["containerStatuses"][0]["state"]["waiting"]["message"];
    let message = message.as_str().unwrap();
    assert!(message.contains("symbolic link"), "{message}");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn volumes_of_other_types_are_not_mounted() {
    let stage = Stage::new().await;
    stage
        .claim("data", json!({"nfs": {"server": "s", "path": "/"}}))
        .await;
    stage.bind_claim("data").await;
    let claim = json!({"persistentVolumeClaim": {"claimName": "data"}});
    let mounts = json!([{"name": "v", "mountPath": "/data"}]);
    stage.run("p", mounting("true", claim, mounts)).await;
    let message = stage.event("p", "FailedMount").await;
    assert!(
        message.contains("PersistentVolume \"data\" is of a type"),
        "{message}"
    );
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn downward_api_volumes_follow_the_pods_metadata() {
    let stage = Stage::new().await;
    if !has_namespaces(&stage).await {
        return;
    }
    let script = "until grep -q new /meta/labels && grep -q first /more/notes; do sleep 0.01; done; \
                  cat /more/notes";
    let mut main = shell(script);
    main["volumeMounts"] = json!([
        {"name": "meta", "mountPath": "/meta"}, {"name": "more", "mountPath": "/more"}]);
    let item = |path: &str, field: &str| json!({"path": path, "fieldRef": {"fieldPath": field}});
    let labels = item("labels", "metadata.labels");
    let notes = json!({"items": [item("notes", "metadata.annotations")]});
    let volumes = json!([
        {"name": "meta", "downwardAPI": {"items": [labels]}},
        {"name": "more", "projected": {"sources": [{"downwardAPI": notes}]}},
    ]);
    let spec = json!({"restartPolicy": "Never", "containers": [main], "volumes": volumes});
    stage.run("p", spec).await;
    let is_running = |pod: &Value| pod["status"]["phase"] == "Running";
    stage.until("p", is_running).await;
    let pods = stage.cluster.pods().in_namespace("default").unwrap();
    let metadata = json!({"annotations": {"note": "first"}, "labels": {"app": "new"}});
    let patch = Patch::merge(json!({"metadata": metadata}));
    pods.patch("p", &patch).await.unwrap();
    let pod = stage.ended("p").await;
    assert_eq!(stage.log(&pod).await, "note=\"first\"\n");
    stage.stop().await;
}
