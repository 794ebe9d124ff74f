//! Users must be able to read the parameters of their policies.

use serde_json::{Value, json};

use crate::{
    GROUP, binding,
    common::{Answer, Server},
    make, policy,
};

async fn post_as_ana(server: &Server, plural: &str, object: &Value) -> Answer {
    let headers = [
        ("content-type", "application/json"),
        ("impersonate-user", "ana"),
    ];
    let path = format!("{GROUP}/{plural}");
    server
        .call("POST", &path, &headers, object.to_string())
        .await
}

#[tokio::test]
async fn authors_can_read_the_parameters_of_their_policies() {
    let server = Server::new();
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let grant = async |name: &str, rules: Value| {
        let role = json!({"metadata": {"name": name}, "rules": rules});
        make(&server, &format!("{rbac}/clusterroles"), &role).await;
        let bound = json!({"metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ana"}]});
        make(&server, &format!("{rbac}/clusterrolebindings"), &bound).await;
    };
    let own = json!([{"apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"], "verbs": ["create"]}]);
    grant("policies", own).await;
    let object = policy(
        "p",
        json!({
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "validations": [{"expression": "params == null"}],
        }),
    );
    let plain = policy("plain", json!({"validations": [{"expression": "true"}]}));
    let policies = "validatingadmissionpolicies";
    assert_eq!(post_as_ana(&server, policies, &plain).await.code, 201);
    let answer = post_as_ana(&server, policies, &object).await;
    assert_eq!(answer.code, 422);
    assert_eq!(
        answer.message(),
        "ValidatingAdmissionPolicy.admissionregistration.k8s.io \"p\" is invalid: spec.paramKind: Forbidden: user &{ana  [system:authenticated] map[]} must have \"get\" permission on all objects of the referenced paramKind (kind=ConfigMap, apiVersion=v1)"
    );
    make(&server, &format!("{GROUP}/{policies}"), &object).await;
    let bound = binding(
        "p",
        json!({"paramRef": {"name": "x", "namespace": "default", "parameterNotFoundAction": "Deny"}}),
    );
    let bindings = "validatingadmissionpolicybindings";
    let answer = post_as_ana(&server, bindings, &bound).await;
    assert!(answer.message().ends_with("spec.paramRef: Forbidden: user &{ana  [system:authenticated] map[]} does not have \"get\" permission on the object referenced by paramRef"), "{}", answer.text());
    let reads = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]);
    grant("reads", reads).await;
    assert_eq!(post_as_ana(&server, bindings, &bound).await.code, 201);
}
