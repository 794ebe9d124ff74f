//! Pods of about 6 KB, typical of clusters with sidecars and annotations.

use serde_json::{Value, json};

/// The pod with number `index`. No scheduler has its `schedulerName`, so it stays pending.
pub(crate) fn pod(index: usize) -> Value {
    let env = |count: usize| -> Vec<Value> {
        (0..count)
            .map(|i| json!({"name": format!("SETTING_{i}"), "value": format!("value of setting number {i} of pod {index}")}))
            .collect()
    };
    let container = |name: &str, settings: usize| {
        json!({
            "name": name,
            "image": format!("registry.example.com/team/{name}:1.2.3"),
            "command": ["/bin/serve", "--port=8080", format!("--shard={index}")],
            "env": env(settings),
            "ports": [{"name": "http", "containerPort": 8080}],
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
            "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}},
            "volumeMounts": [{"name": "settings", "mountPath": "/etc/settings"}],
        })
    };
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": format!("worker-{index:05}"),
            "namespace": "default",
            "labels": {"app": "worker", "shard": format!("{}", index % 16), "team": "training"},
            "annotations": {"example.com/notes": "n".repeat(1500), "example.com/checksum": format!("{index:064x}")},
        },
        "spec": {
            "schedulerName": "absent",
            "containers": [container("main", 20), container("sidecar", 6)],
            "volumes": [{"name": "settings", "configMap": {"name": "settings"}}],
        },
        "status": {"phase": "Pending"},
    })
}

/// The body of a server's response to a list of `count` pods.
pub(crate) fn list_body(count: usize) -> Vec<u8> {
    let items: Vec<Value> = (0..count)
        .map(|index| {
            let mut pod = pod(index);
            pod["metadata"]["uid"] = json!(format!("00000000-0000-4000-8000-{index:012}"));
            pod["metadata"]["resourceVersion"] = json!((index + 1).to_string());
            pod["metadata"]["creationTimestamp"] = json!("2026-01-02T03:04:05Z");
            pod
        })
        .collect();
    let list = json!({"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "99999"}, "items": items});
    list.to_string().into_bytes()
}
