//! The inputs and the costs of expressions of policies.

use serde_json::{Value, json};

use crate::{
    common::{CONFIG_MAPS, Server},
    config_map, enforce, make,
};

/// Checks a validation against a ConfigMap. The error is the denial.
async fn checked(server: &Server, spec: Value) -> Result<(), String> {
    enforce(server, "p", spec, json!({})).await;
    let path = format!("{CONFIG_MAPS}?dryRun=All");
    let answer = server
        .post(&path, &config_map("a", json!({"a": "b"})))
        .await;
    for plural in [
        "validatingadmissionpolicies/p",
        "validatingadmissionpolicybindings/p-binding",
    ] {
        let path = format!("{}/{plural}", crate::GROUP);
        assert_eq!(server.call("DELETE", &path, &[], "").await.code, 200);
    }
    match answer.code {
        201 => Ok(()),
        _ => Err(answer
            .message()
            .split_once("request: ")
            .unwrap()
            .1
            .to_owned()),
    }
}

async fn validated(server: &Server, expression: &str) -> Result<(), String> {
    checked(server, json!({"validations": [{"expression": expression}]})).await
}

#[tokio::test]
async fn requests_users_and_namespaces_are_known() {
    let server = Server::new();
    let patch = json!({"metadata": {"labels": {"team": "x"}}}).to_string();
    server
        .patch("/api/v1/namespaces/default", crate::MERGE, &patch)
        .await;
    for expression in [
        "request.operation == 'CREATE' && request.kind.kind == 'ConfigMap' && request.resource.resource == 'configmaps'",
        "request.namespace == 'default' && request.name == 'a' && request.dryRun",
        "'system:masters' in request.userInfo.groups && request.userInfo.username == 'longshore-admin'",
        "namespaceObject.metadata.labels.team == 'x' && namespaceObject.metadata.name == 'default'",
        "oldObject == null && object.data.a == 'b' && object.kind == 'ConfigMap'",
        "request.options.kind == 'CreateOptions'",
        "namespaceObject.status.phase == 'Active'",
    ] {
        assert_eq!(validated(&server, expression).await, Ok(()), "{expression}");
    }
}

#[tokio::test]
async fn the_authorizer_answers_by_roles() {
    let server = Server::new();
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let role = json!({"metadata": {"name": "r"}, "rules": [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
        {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
    ]});
    make(&server, &format!("{rbac}/clusterroles"), &role).await;
    let bound = json!({"metadata": {"name": "b"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": "robot"}]});
    make(&server, &format!("{rbac}/clusterrolebindings"), &bound).await;
    let robot = "authorizer.serviceAccount('default', 'robot')";
    for expression in [
        "authorizer.group('apps').resource('deployments').namespace('x').check('create').allowed()"
            .to_owned(),
        "authorizer.requestResource.check('custom').allowed()".to_owned(),
        format!("{robot}.group('').resource('pods').namespace('default').check('list').allowed()"),
        format!(
            "{robot}.group('').resource('pods').fieldSelector('a=b').labelSelector('a').check('list').allowed()"
        ),
        format!("!{robot}.group('').resource('pods').check('delete').allowed()"),
        format!(
            "!{robot}.group('').resource('secrets').name('s').subresource('x').check('get').allowed()"
        ),
        format!(
            "{robot}.path('/metrics').check('get').allowed() && !{robot}.path('/healthz').check('get').errored()"
        ),
        format!(
            "{robot}.group('').resource('pods').check('list').reason().contains('ClusterRole')"
        ),
    ] {
        assert_eq!(
            validated(&server, &expression).await,
            Ok(()),
            "{expression}"
        );
    }
    // The cost limit allows two checks in an expression.
    let costly =
        format!("[1, 2, 3].all(i, {robot}.group('').resource('pods').check('list').allowed())");
    let denied = validated(&server, &costly).await.unwrap_err();
    assert!(
        denied.ends_with("resulted in error: operation cancelled: actual cost limit exceeded"),
        "{denied}"
    );
    let denied = validated(&server, "authorizer.path(' ').check('get').allowed()")
        .await
        .unwrap_err();
    assert!(
        denied.ends_with("resulted in error: path must not be empty"),
        "{denied}"
    );
}

#[tokio::test]
async fn variables_are_evaluated_when_they_are_read() {
    let server = Server::new();
    let variables = json!([
        {"name": "bad", "expression": "object.data.missing"},
        {"name": "first", "expression": "object.data.a"},
        {"name": "second", "expression": "variables.first + 'c'"},
    ]);
    let spec = |expression: &str| json!({"variables": variables, "validations": [{"expression": expression}]});
    assert_eq!(
        checked(
            &server,
            spec("variables.second == 'bc' || variables.bad == ''")
        )
        .await,
        Ok(())
    );
    assert_eq!(
        checked(&server, spec("variables.bad == 'x'"))
            .await
            .unwrap_err(),
        "expression 'variables.bad == 'x'' resulted in error: composited variable \"bad\" fails to evaluate: no such key: missing"
    );
    let conditions = json!({"variables": variables,
        "matchConditions": [{"name": "c", "expression": "object.data.a == 'x'"}],
        "validations": [{"expression": "false"}]});
    assert_eq!(checked(&server, conditions).await, Ok(()));
}

#[tokio::test]
async fn all_expressions_of_a_policy_share_a_budget() {
    let server = Server::new();
    let costly = "[1, 2].all(i, authorizer.path('/x').check('get').allowed())";
    let validations: Vec<Value> = (0..15).map(|_| json!({"expression": costly})).collect();
    let denied = checked(&server, json!({"validations": validations})).await;
    assert_eq!(
        denied.unwrap_err(),
        "validation failed due to running out of cost budget, no further validation rules will be run"
    );
}

#[tokio::test]
async fn match_conditions_decide_and_fail() {
    let server = Server::new();
    let spec = |expression: &str| {
        json!({
            "matchConditions": [{"name": "c", "expression": expression}],
            "validations": [{"expression": "false", "message": "no"}],
        })
    };
    assert_eq!(checked(&server, spec("object.data.a == 'c'")).await, Ok(()));
    assert_eq!(
        checked(&server, spec("object.data.a == 'b'")).await,
        Err("no".into())
    );
    assert_eq!(
        checked(&server, spec("object.data.x == 'b'")).await,
        Err("expression 'object.data.x == 'b'' resulted in error: no such key: x".into())
    );
}
