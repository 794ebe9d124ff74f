//! Claims, volumes and the local provisioner.

use serde_json::{Value, json};

use crate::fixture::{Fixture, container, until};

fn claim(spec: Value) -> Value {
    let mut claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    let own = claim["spec"].as_object_mut().unwrap();
    own.extend(spec.as_object().unwrap().clone());
    claim
}

fn volume(name: &str, size: &str, policy: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "capacity": {"storage": size},
            "persistentVolumeReclaimPolicy": policy, "storageClassName": "manual",
            "hostPath": {"path": "/tmp/none"},
        },
    })
}

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "containers": [container()],
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
        },
    })
}

impl Fixture {
    async fn object(&self, kind: &str, name: &str) -> Option<Value> {
        let path = match kind {
            "pvc" => format!("/api/v1/namespaces/default/persistentvolumeclaims/{name}"),
            "pv" => format!("/api/v1/persistentvolumes/{name}"),
            "vac" => format!("/apis/storage.k8s.io/v1/volumeattributesclasses/{name}"),
            _ => format!("/api/v1/namespaces/default/pods/{name}"),
        };
        match self.cluster.proxy().get(&path, &[]).await {
            Ok(object) => Some(object),
            Err(error) if error.is_not_found() => None,
            Err(error) => panic!("{error}"),
        }
    }

    async fn in_phase(&self, kind: &str, name: &str, phase: &str) -> Value {
        until(&format!("{kind} {name} {phase}"), async || {
            let object = self.object(kind, name).await?;
            (object["status"]["phase"] == phase).then_some(object)
        })
        .await
    }

    async fn create(&self, object: &Value) {
        self.cluster.create(object, None).await.unwrap();
    }

    async fn delete(&self, kind: &str, name: &str) {
        let options = Default::default();
        let done = match kind {
            "pvc" => {
                let view = self.cluster.persistentvolumeclaims();
                let view = view.in_namespace("default").unwrap();
                view.delete(name, &options).await
            }
            "pv" => {
                self.cluster
                    .persistentvolumes()
                    .delete(name, &options)
                    .await
            }
            _ => {
                let options = longshore_client::DeleteOptions {
                    grace_seconds: Some(0),
                    ..options
                };
                let view = self.cluster.pods().in_namespace("default").unwrap();
                view.delete(name, &options).await
            }
        };
        done.unwrap();
    }

    async fn gone(&self, kind: &str, name: &str) {
        until(&format!("{kind} {name} to be gone"), async || {
            self.object(kind, name).await.is_none().then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_claim_is_bound_to_the_smallest_volume_and_releases_it() {
    let fixture = Fixture::start().await;
    fixture.create(&volume("large", "9Gi", "Retain")).await;
    fixture.create(&volume("small", "1Mi", "Retain")).await;
    fixture.create(&volume("fit", "2Gi", "Retain")).await;
    fixture.in_phase("pv", "fit", "Available").await;
    fixture
        .create(&claim(json!({"storageClassName": "manual"})))
        .await;
    let claim = fixture.in_phase("pvc", "data", "Bound").await;
    assert_eq!(claim["spec"]["volumeName"], "fit");
    assert_eq!(claim["status"]["capacity"]["storage"], "2Gi");
    assert_eq!(claim["status"]["accessModes"], json!(["ReadWriteOnce"]));
    let annotations = &claim["metadata"]["annotations"];
    assert_eq!(annotations["pv.kubernetes.io/bind-completed"], "yes");
    assert_eq!(annotations["pv.kubernetes.io/bound-by-controller"], "yes");
    let finalizers = json!(["kubernetes.io/pvc-protection"]);
    assert_eq!(claim["metadata"]["finalizers"], finalizers);
    let bound = fixture.in_phase("pv", "fit", "Bound").await;
    let reference = &bound["spec"]["claimRef"];
    assert_eq!(reference["name"], "data");
    assert_eq!(reference["uid"], claim["metadata"]["uid"]);
    // A bound volume is deleted only after it is released.
    fixture.delete("pv", "fit").await;
    let deleting = fixture.object("pv", "fit").await.unwrap();
    assert!(deleting["metadata"]["deletionTimestamp"].is_string());
    fixture.delete("pvc", "data").await;
    fixture.gone("pvc", "data").await;
    fixture.gone("pv", "fit").await;
    fixture.in_phase("pv", "large", "Available").await;
}

#[tokio::test]
async fn reclaim_policies_of_volumes_without_a_provisioner() {
    let fixture = Fixture::start().await;
    let cases = [
        ("Retain", "Released", None),
        ("Delete", "Failed", Some("VolumeFailedDelete")),
        ("Recycle", "Failed", Some("VolumeFailedRecycle")),
    ];
    for (policy, phase, event) in cases {
        let name = policy.to_lowercase();
        fixture.create(&volume(&name, "1Gi", policy)).await;
        fixture.in_phase("pv", &name, "Available").await;
        let spec = json!({"storageClassName": "manual", "volumeName": name});
        fixture.create(&claim(spec)).await;
        let bound = fixture.in_phase("pvc", "data", "Bound").await;
        let annotations = bound["metadata"]["annotations"].as_object().unwrap();
        assert!(!annotations.contains_key("pv.kubernetes.io/bound-by-controller"));
        fixture.delete("pvc", "data").await;
        fixture.gone("pvc", "data").await;
        fixture.in_phase("pv", &name, phase).await;
        if let Some(event) = event {
            until(event, async || {
                let events = fixture.events(&name, event).await;
                (!events.is_empty()).then_some(())
            })
            .await;
        }
    }
}

#[tokio::test]
async fn a_claim_waits_for_a_volume_and_is_lost_with_it() {
    let fixture = Fixture::start().await;
    fixture
        .create(&claim(
            json!({"storageClassName": "", "volumeName": "late"}),
        ))
        .await;
    let mut late = volume("late", "1Mi", "Retain");
    late["spec"]["storageClassName"] = "".into();
    fixture.create(&late).await;
    let message = "Cannot bind to requested volume \"late\": requested PV is too small";
    until("mismatch", async || {
        let events = fixture.events("data", "VolumeMismatch").await;
        events.contains(&message.to_owned()).then_some(())
    })
    .await;
    fixture.delete("pv", "late").await;
    fixture.gone("pv", "late").await;
    late["spec"]["capacity"]["storage"] = "1Gi".into();
    fixture.create(&late).await;
    fixture.in_phase("pvc", "data", "Bound").await;
    let patch = longshore_client::Patch::merge(json!({"metadata": {"finalizers": []}}));
    let volumes = fixture.cluster.persistentvolumes();
    fixture.delete("pv", "late").await;
    volumes.patch("late", &patch).await.unwrap();
    fixture.in_phase("pvc", "data", "Lost").await;
    until("event", async || {
        let events = fixture.events("data", "ClaimLost").await;
        (events == ["Bound claim has lost its PersistentVolume. Data on the volume is lost!"])
            .then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_claim_gets_the_default_class_even_later() {
    let fixture = Fixture::start().await;
    fixture.create(&claim(json!({}))).await;
    let message = "no persistent volumes available for this claim and no storage class is set";
    until("event", async || {
        let events = fixture.events("data", "FailedBinding").await;
        events.contains(&message.to_owned()).then_some(())
    })
    .await;
    let class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": "other", "annotations":
            {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "example.com/other",
    });
    fixture.create(&class).await;
    until("class and provisioner", async || {
        let claim = fixture.object("pvc", "data").await?;
        let provisioner =
            &claim["metadata"]["annotations"]["volume.kubernetes.io/storage-provisioner"];
        (claim["spec"]["storageClassName"] == "other" && provisioner == "example.com/other")
            .then_some(())
    })
    .await;
    // Without a local provisioner, no other class exists.
    let classes = fixture.cluster.storageclasses().list().await.unwrap();
    assert_eq!(classes.items.len(), 1);
}

#[tokio::test]
async fn the_standard_class_provisions_a_directory_for_the_first_pod() {
    let fixture = Fixture::with_local_volumes().await;
    fixture.add_node("1000").await;
    fixture.create(&claim(json!({}))).await;
    let message = "waiting for first consumer to be created before binding";
    until("event", async || {
        let events = fixture.events("data", "WaitForFirstConsumer").await;
        (events == [message]).then_some(())
    })
    .await;
    let pending = fixture.in_phase("pvc", "data", "Pending").await;
    assert_eq!(pending["spec"]["storageClassName"], "standard");
    fixture.create(&pod("p")).await;
    until("binding of the pod", async || {
        let pod = fixture.object("pod", "p").await?;
        (pod["spec"]["nodeName"] == "n").then_some(())
    })
    .await;
    let claim = fixture.in_phase("pvc", "data", "Bound").await;
    let annotations = &claim["metadata"]["annotations"];
    assert_eq!(annotations["volume.kubernetes.io/selected-node"], "n");
    let name = claim["spec"]["volumeName"].as_str().unwrap();
    assert_eq!(
        name,
        format!("pvc-{}", claim["metadata"]["uid"].as_str().unwrap())
    );
    let volume = fixture.in_phase("pv", name, "Bound").await;
    assert_eq!(volume["spec"]["persistentVolumeReclaimPolicy"], "Delete");
    let path = volume["spec"]["local"]["path"].as_str().unwrap();
    let path = std::path::Path::new(path);
    assert!(path.is_dir());
    std::fs::write(path.join("file"), "x").unwrap();

    // The requested larger size is granted.
    let patch = json!({"spec": {"resources": {"requests": {"storage": "3Gi"}}}});
    let view = fixture.cluster.persistentvolumeclaims();
    let view = view.in_namespace("default").unwrap();
    let patch = longshore_client::Patch::merge(patch);
    view.patch("data", &patch).await.unwrap();
    until("expansion", async || {
        let claim = fixture.object("pvc", "data").await?;
        (claim["status"]["capacity"]["storage"] == "3Gi").then_some(())
    })
    .await;

    // The pod uses the claim, which protects it.
    fixture.delete("pvc", "data").await;
    let second = pod("q");
    fixture.create(&second).await;
    until("explanation", async || {
        let events = fixture.events("q", "FailedScheduling").await;
        let expected = "0/1 nodes are available: persistentvolumeclaim \"data\" is being deleted.";
        events.contains(&expected.to_owned()).then_some(())
    })
    .await;
    assert!(fixture.object("pvc", "data").await.is_some());
    fixture.delete("pod", "p").await;
    fixture.gone("pvc", "data").await;
    fixture.gone("pv", name).await;
    assert!(!path.exists());
}

#[tokio::test]
async fn a_claim_with_immediate_binding_needs_no_pod() {
    let fixture = Fixture::with_local_volumes().await;
    fixture.add_node("1000").await;
    let class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "now"},
        "provisioner": "longshore.dev/local-path", "reclaimPolicy": "Retain",
    });
    fixture.create(&class).await;
    let immediate = claim(json!({"storageClassName": "now"}));
    fixture.create(&immediate).await;
    let bound = fixture.in_phase("pvc", "data", "Bound").await;
    let name = bound["spec"]["volumeName"].as_str().unwrap();
    let volume = fixture.object("pv", name).await.unwrap();
    let path = volume["spec"]["local"]["path"].as_str().unwrap();
    // The class does not allow larger requests.
    let view = fixture.cluster.persistentvolumeclaims();
    let view = view.in_namespace("default").unwrap();
    let patch = json!({"spec": {"resources": {"requests": {"storage": "3Gi"}}}});
    let refused = view
        .patch("data", &longshore_client::Patch::merge(patch))
        .await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.code(), Some(403));
    assert!(refused.to_string().contains(
        "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
    ), "{refused}");
    fixture.delete("pvc", "data").await;
    fixture.gone("pvc", "data").await;
    fixture.in_phase("pv", name, "Released").await;
    assert!(std::path::Path::new(path).is_dir());
}

#[tokio::test]
async fn ephemeral_volumes_get_claims_that_are_deleted_with_the_pod() {
    let fixture = Fixture::with_local_volumes().await;
    fixture.add_node("1000").await;
    let mut pod = pod("p");
    let template = json!({
        "metadata": {"labels": {"app": "x"}},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
    });
    pod["spec"]["volumes"] =
        json!([{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}]);
    fixture.create(&pod).await;
    until("binding of the pod", async || {
        let pod = fixture.object("pod", "p").await?;
        (pod["spec"]["nodeName"] == "n").then_some(())
    })
    .await;
    let claim = fixture.in_phase("pvc", "p-scratch", "Bound").await;
    assert_eq!(claim["metadata"]["ownerReferences"][0]["name"], "p");
    assert_eq!(claim["metadata"]["labels"]["app"], "x");
    fixture.delete("pod", "p").await;
    fixture.gone("pvc", "p-scratch").await;
    let volume = claim["spec"]["volumeName"].as_str().unwrap();
    fixture.gone("pv", volume).await;
}

#[tokio::test]
async fn a_claim_for_one_pod_is_used_by_one_pod() {
    let fixture = Fixture::with_local_volumes().await;
    fixture.add_node("1000").await;
    fixture
        .create(&claim(json!({"accessModes": ["ReadWriteOncePod"]})))
        .await;
    fixture.create(&pod("p")).await;
    fixture.in_phase("pvc", "data", "Bound").await;
    fixture.create(&pod("q")).await;
    let message = "0/1 nodes are available: 1 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod.";
    until("explanation", async || {
        let events = fixture.events("q", "FailedScheduling").await;
        events.contains(&message.to_owned()).then_some(())
    })
    .await;
    fixture.delete("pod", "p").await;
    until("binding of the second pod", async || {
        let pod = fixture.object("pod", "q").await?;
        (pod["spec"]["nodeName"] == "n").then_some(())
    })
    .await;
}

#[tokio::test]
async fn attributes_of_volumes_are_kept_while_a_claim_has_them() {
    let fixture = Fixture::with_local_volumes().await;
    for name in ["used", "unused"] {
        let class = json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttributesClass",
            "metadata": {"name": name}, "driverName": "d.example.org", "parameters": {"a": "b"},
        });
        fixture.create(&class).await;
    }
    let claim = claim(json!({"storageClassName": "none", "volumeAttributesClassName": "used"}));
    fixture.create(&claim).await;
    let classes = fixture.cluster.volumeattributesclasses();
    for name in ["used", "unused"] {
        classes.delete(name, &Default::default()).await.unwrap();
    }
    fixture.gone("vac", "unused").await;
    let used = fixture.object("vac", "used").await.unwrap();
    assert!(!used["metadata"]["deletionTimestamp"].is_null(), "{used}");
    fixture.delete("pvc", "data").await;
    fixture.gone("vac", "used").await;
}
