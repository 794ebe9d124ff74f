//! The requests that policies and bindings match.

use serde_json::json;

use crate::{
    common::{CONFIG_MAPS, Server},
    config_map, enforce, make,
};

#[tokio::test]
async fn bindings_and_exclusions_narrow_a_policy() {
    let server = Server::new();
    for name in ["on", "off"] {
        let namespace = json!({"metadata": {"name": name, "labels": {"policies": name}}});
        make(&server, "/api/v1/namespaces", &namespace).await;
    }
    let rule = |resources: &[&str], names: &[&str]| {
        json!({
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
            "resources": resources, "resourceNames": names,
        })
    };
    let spec = json!({
        "matchConstraints": {
            "resourceRules": [rule(&["configmaps", "secrets"], &[])],
            "excludeResourceRules": [rule(&["configmaps"], &["free"])],
        },
        "validations": [{"expression": "false", "message": "no"}],
    });
    let bound = json!({"matchResources": {
        "namespaceSelector": {"matchLabels": {"policies": "on"}},
        "objectSelector": {"matchExpressions": [{"key": "skip", "operator": "DoesNotExist"}]},
        "resourceRules": [rule(&["configmaps"], &[])],
    }});
    enforce(&server, "p", spec, bound).await;
    let labelled = |labels: serde_json::Value| json!({"metadata": {"name": "c", "labels": labels}});
    for (path, object, code) in [
        (
            "/api/v1/namespaces/on/configmaps",
            config_map("a", json!({})),
            422,
        ),
        (
            "/api/v1/namespaces/off/configmaps",
            config_map("a", json!({})),
            201,
        ),
        (
            "/api/v1/namespaces/on/configmaps",
            config_map("free", json!({})),
            201,
        ),
        (
            "/api/v1/namespaces/on/configmaps",
            labelled(json!({"skip": "yes"})),
            201,
        ),
        (
            "/api/v1/namespaces/on/secrets",
            config_map("a", json!({})),
            201,
        ),
    ] {
        let mut object = object;
        object.as_object_mut().unwrap().remove("kind");
        object.as_object_mut().unwrap().remove("apiVersion");
        object.as_object_mut().unwrap().remove("data");
        let answer = server.post(path, &object).await;
        assert_eq!(answer.code, code, "{path} {object} {}", answer.text());
    }
}

#[tokio::test]
async fn equivalent_versions_match_and_are_converted() {
    let server = Server::new();
    for (policy, code) in [("Exact", 201), ("Equivalent", 422)] {
        let spec = json!({
            "matchConstraints": {"matchPolicy": policy, "resourceRules": [{
                "apiGroups": ["autoscaling"], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["horizontalpodautoscalers"],
            }]},
            "validations": [{"expression": "object.spec.targetCPUUtilizationPercentage > 60 && request.requestKind.version == 'v2' && request.kind.version == 'v1'", "message": "too low"}],
        });
        enforce(&server, &policy.to_lowercase(), spec, json!({})).await;
        let autoscaler = json!({"metadata": {"name": policy.to_lowercase()}, "spec": {
            "maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"},
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}],
        }});
        let path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
        let answer = server.post(path, &autoscaler).await;
        assert_eq!(answer.code, code, "{policy} {}", answer.text());
    }
}

#[tokio::test]
async fn generated_names_are_shown_by_their_prefix() {
    let server = Server::new();
    let spec = json!({"validations": [{"expression": "false", "message": "no"}]});
    enforce(&server, "p", spec, json!({})).await;
    let answer = server
        .post(CONFIG_MAPS, &json!({"metadata": {"generateName": "x-"}}))
        .await;
    assert_eq!(answer.code, 422);
    assert!(
        answer.message().starts_with("configmaps \"x-"),
        "{}",
        answer.message()
    );
}
