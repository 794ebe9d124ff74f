//! Measures reading a list of 10,000 pods from memory to their names and
//! phases, beside kube's typed way, and prints one line of JSON.
//!
//! `cargo run --release -p longshore-client --example decode`
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::time::Instant;

use bytes::Bytes;
use k8s_openapi::api::core::v1::Pod;
use kube_core::ObjectList;
use longshore_client::Cluster;
use serde_json::{Value, json};

const PODS: usize = 10_000;
const ROUNDS: usize = 5;

fn main() {
    let body = Bytes::from(list());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let answer = body.clone();
    let cluster = Cluster::from_service(
        tower::service_fn(move |_| {
            let body = http_body_util::Full::new(answer.clone());
            async move { Ok::<_, std::convert::Infallible>(http::Response::new(body)) }
        }),
        "default",
    );
    let (mut ours, mut peer, mut split) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let list: ObjectList<Pod> = serde_json::from_slice(&body).unwrap();
        let theirs: Vec<(String, String)> = list
            .items
            .iter()
            .map(|pod| {
                let phase = pod.status.as_ref().and_then(|status| status.phase.clone());
                (pod.metadata.name.clone().unwrap(), phase.unwrap())
            })
            .collect();
        peer.push(start.elapsed().as_secs_f64());
        drop(list);

        let start = Instant::now();
        let by_split = split_list(&body);
        split.push(start.elapsed().as_secs_f64());
        assert_eq!(by_split, theirs);

        // Through the whole client, whose transport hands over the same
        // buffer without a copy.
        let start = Instant::now();
        let list = runtime.block_on(cluster.pods().list()).unwrap();
        let mine: Vec<(String, String)> = list
            .items
            .iter()
            .map(|pod| (pod.name().to_owned(), pod.phase().unwrap().to_string()))
            .collect();
        ours.push(start.elapsed().as_secs_f64());
        assert_eq!(mine, theirs);
    }
    let (ours, peer, split) = (median(ours), median(peer), median(split));
    let result = json!({
        "bytes": body.len(), "pods": PODS,
        "ours_s": ours, "peer_s": peer, "ratio": peer / ours,
        "raw_value_split_s": split,
    });
    println!("{result}");
}

/// The way that was tried before the one-pass index: serde_json's `RawValue`
/// for each item, then a slim struct over it.
fn split_list(body: &[u8]) -> Vec<(String, String)> {
    #[derive(serde::Deserialize)]
    struct List<'a> {
        #[serde(borrow)]
        items: Vec<&'a serde_json::value::RawValue>,
    }
    #[derive(serde::Deserialize)]
    struct Slim<'a> {
        #[serde(borrow)]
        metadata: Metadata<'a>,
        #[serde(borrow)]
        status: Status<'a>,
    }
    #[derive(serde::Deserialize)]
    struct Metadata<'a> {
        name: &'a str,
    }
    #[derive(serde::Deserialize)]
    struct Status<'a> {
        phase: &'a str,
    }
    let list: List<'_> = serde_json::from_slice(body).unwrap();
    let slim = |item: &&serde_json::value::RawValue| {
        let slim: Slim<'_> = serde_json::from_str(item.get()).unwrap();
        (slim.metadata.name.to_owned(), slim.status.phase.to_owned())
    };
    list.items.iter().map(slim).collect()
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// A list as a real server sends one: compact, about 6 KB a pod, items
/// without `apiVersion` and `kind`.
fn list() -> Vec<u8> {
    let items: Vec<Value> = (0..PODS).map(pod).collect();
    serde_json::to_vec(&json!({
        "kind": "PodList", "apiVersion": "v1",
        "metadata": {"resourceVersion": "424242"},
        "items": items,
    }))
    .unwrap()
}

fn pod(i: usize) -> Value {
    let phase = ["Running", "Pending", "Succeeded"][i % 3];
    let ip = format!("10.{}.{}.{}", i / 65536, i / 256 % 256, i % 256);
    let environment: Vec<Value> = (0..16)
        .map(|n| json!({"name": format!("SETTING_{n}"), "value": format!("value of setting {n} of the pod")}))
        .collect();
    let owned = json!({
        "f:metadata": {"f:generateName": {}, "f:labels": {".": {}, "f:app": {}, "f:pod-template-hash": {}, "f:tier": {}}, "f:ownerReferences": {".": {}, "k:{\"uid\":\"2e0d7a9c-5a7c-4f6e-9a3b-4d1c8f1b2a77\"}": {}}},
        "f:spec": {"f:containers": {"k:{\"name\":\"main\"}": {".": {}, "f:env": {".": {}, "k:{\"name\":\"SETTING_0\"}": {".": {}, "f:name": {}, "f:value": {}}, "k:{\"name\":\"SETTING_1\"}": {".": {}, "f:name": {}, "f:value": {}}}, "f:image": {}, "f:imagePullPolicy": {}, "f:name": {}, "f:ports": {".": {}, "k:{\"containerPort\":8080,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}, "f:protocol": {}}}, "f:resources": {".": {}, "f:limits": {".": {}, "f:cpu": {}, "f:memory": {}}, "f:requests": {".": {}, "f:cpu": {}, "f:memory": {}}}, "f:terminationMessagePath": {}, "f:terminationMessagePolicy": {}}}, "f:dnsPolicy": {}, "f:enableServiceLinks": {}, "f:restartPolicy": {}, "f:schedulerName": {}, "f:securityContext": {}, "f:terminationGracePeriodSeconds": {}}
    });
    let status_owned = json!({"f:status": {"f:conditions": {"k:{\"type\":\"ContainersReady\"}": {".": {}, "f:lastProbeTime": {}, "f:lastTransitionTime": {}, "f:status": {}, "f:type": {}}, "k:{\"type\":\"Initialized\"}": {".": {}, "f:lastProbeTime": {}, "f:lastTransitionTime": {}, "f:status": {}, "f:type": {}}, "k:{\"type\":\"Ready\"}": {".": {}, "f:lastProbeTime": {}, "f:lastTransitionTime": {}, "f:status": {}, "f:type": {}}}, "f:containerStatuses": {}, "f:hostIP": {}, "f:phase": {}, "f:podIP": {}, "f:podIPs": {".": {}, format!("k:{{\"ip\":\"{ip}\"}}"): {".": {}, "f:ip": {}}}, "f:startTime": {}}});
    let at = "2026-01-02T03:04:05Z";
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastProbeTime": null, "lastTransitionTime": at});
    json!({
        "metadata": {
            "name": format!("web-7d4b9c6f5d-{i:05}"), "generateName": "web-7d4b9c6f5d-", "namespace": "shop",
            "uid": format!("6f1c2f0e-8a55-4a3e-9c1d-{i:012}"), "resourceVersion": format!("{}", 100_000 + i),
            "creationTimestamp": at,
            "labels": {"app": "web", "pod-template-hash": "7d4b9c6f5d", "tier": "front"},
            "annotations": {"kubernetes.io/config.seen": at, "example.org/note": "a note with \"quotes\" and a \\ in it"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7d4b9c6f5d", "uid": "2e0d7a9c-5a7c-4f6e-9a3b-4d1c8f1b2a77", "controller": true, "blockOwnerDeletion": true}],
            "managedFields": [
                {"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1", "time": at, "fieldsType": "FieldsV1", "fieldsV1": owned},
                {"manager": "kubelet", "operation": "Update", "apiVersion": "v1", "time": at, "fieldsType": "FieldsV1", "fieldsV1": status_owned, "subresource": "status"},
            ],
        },
        "spec": {
            "volumes": [{"name": "kube-api-access-x7k2p", "projected": {"sources": [{"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}, {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}}, {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}}], "defaultMode": 420}}],
            "containers": [{
                "name": "main", "image": "registry.example.org/shop/web:2026.1.2",
                "command": ["python", "-m", "web.server", "--port", "8080"],
                "ports": [{"containerPort": 8080, "protocol": "TCP"}], "env": environment,
                "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "250m", "memory": "512Mi"}},
                "volumeMounts": [{"name": "kube-api-access-x7k2p", "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File", "imagePullPolicy": "IfNotPresent",
            }],
            "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default", "serviceAccount": "default", "nodeName": format!("node-{}", i % 100),
            "securityContext": {}, "schedulerName": "default-scheduler", "enableServiceLinks": true, "priority": 0, "preemptionPolicy": "PreemptLowerPriority",
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}, {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
        },
        "status": {
            "phase": phase,
            "conditions": [condition("Initialized"), condition("Ready"), condition("ContainersReady"), condition("PodScheduled")],
            "hostIP": "10.255.0.1", "podIP": ip, "podIPs": [{"ip": ip}], "startTime": at,
            "containerStatuses": [{"name": "main", "state": {"running": {"startedAt": at}}, "lastState": {}, "ready": true, "restartCount": 0, "image": "registry.example.org/shop/web:2026.1.2", "imageID": "registry.example.org/shop/web@sha256:5f1d3f0c5e9d8b7a6c4e2f1a0b9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a2b1c", "containerID": format!("containerd://{:064x}", i * 7919), "started": true}],
            "qosClass": "Burstable",
        },
    })
}
