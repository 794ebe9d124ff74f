//! Objects that mutating policies change.

use serde_json::{Value, json};

use crate::{
    GROUP, MERGE,
    common::{CONFIG_MAPS, Server},
    config_map, enforce, make, rules,
};

/// Creates a mutating policy and its binding.
async fn mutate(server: &Server, name: &str, fields: Value, bound: Value) {
    let mut spec = json!({
        "matchConstraints": rules("", "configmaps", &["CREATE", "UPDATE"]),
        "reinvocationPolicy": "Never",
    });
    spec.as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    let policy = json!({"metadata": {"name": name}, "spec": spec});
    make(
        server,
        &format!("{GROUP}/mutatingadmissionpolicies"),
        &policy,
    )
    .await;
    let mut spec = json!({"policyName": name});
    spec.as_object_mut()
        .unwrap()
        .extend(bound.as_object().unwrap().clone());
    let binding = json!({"metadata": {"name": format!("{name}-binding")}, "spec": spec});
    let path = format!("{GROUP}/mutatingadmissionpolicybindings");
    make(server, &path, &binding).await;
}

fn apply(expression: &str) -> Value {
    json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}})
}

fn patch(expression: &str) -> Value {
    json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}})
}

#[tokio::test]
async fn configurations_are_merged() {
    let server = Server::new();
    let spec = json!({
        "matchConstraints": rules("", "pods", &["CREATE"]),
        "matchConditions": [{"name": "new", "expression": "!object.spec.containers.exists(c, c.name == 'sidecar')"}],
        "mutations": [apply("Object{metadata: Object.metadata{labels: {'mesh': 'on'}}, spec: Object.spec{containers: [Object.spec.containers{name: 'sidecar', image: 'mesh:1'}]}}")],
    });
    mutate(&server, "sidecar", spec, json!({})).await;
    let pod = server.pod("p", &["main"]).await;
    assert_eq!(pod["metadata"]["labels"], json!({"mesh": "on"}));
    let containers: Vec<&str> = pod["spec"]["containers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(containers, ["main", "sidecar"]);
    // Defaults are set after the change.
    assert_eq!(
        pod["spec"]["containers"][1]["imagePullPolicy"],
        "IfNotPresent"
    );
}

#[tokio::test]
async fn json_patches_are_applied() {
    let server = Server::new();
    let spec = json!({"mutations": [
        patch("[JSONPatch{op: 'test', path: '/data/a', value: 'x'}, JSONPatch{op: 'add', path: '/data/never', value: 'x'}]"),
        patch("(has(object.metadata.labels) ? [] : [JSONPatch{op: 'add', path: '/metadata/labels', value: {}}]) + [JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('example.com/a'), value: object.data.a}, JSONPatch{op: 'remove', path: '/data/a'}]"),
    ]});
    mutate(&server, "patch", spec, json!({})).await;
    let made = make(
        &server,
        CONFIG_MAPS,
        &config_map("a", json!({"a": "b", "c": "d"})),
    )
    .await;
    assert_eq!(made["data"], json!({"c": "d"}));
    assert_eq!(made["metadata"]["labels"], json!({"example.com/a": "b"}));
}

#[tokio::test]
async fn policies_precede_validation_and_dry_runs_are_changed() {
    let server = Server::new();
    let spec = json!({
        "variables": [{"name": "team", "expression": "'team-' + namespaceObject.metadata.name"}],
        "mutations": [apply("Object{metadata: Object.metadata{labels: {'team': variables.team}}}")],
    });
    mutate(&server, "team", spec, json!({})).await;
    let checked =
        json!({"validations": [{"expression": "object.metadata.labels.team == 'team-default'"}]});
    enforce(&server, "team", checked, json!({})).await;
    let path = format!("{CONFIG_MAPS}?dryRun=All");
    let made = make(&server, &path, &config_map("a", json!({}))).await;
    assert_eq!(made["metadata"]["labels"]["team"], "team-default");
    make(&server, CONFIG_MAPS, &config_map("a", json!({}))).await;
    // An update is changed again.
    let patch = json!({"metadata": {"labels": null}}).to_string();
    let path = format!("{CONFIG_MAPS}/a");
    let changed = server.patch(&path, MERGE, &patch).await.json();
    assert_eq!(changed["metadata"]["labels"]["team"], "team-default");
}

#[tokio::test]
async fn parameters_are_used_one_by_one() {
    let server = Server::new();
    for (name, label) in [("x", "one"), ("y", "two")] {
        let mut params = config_map(name, json!({"label": label}));
        params["metadata"]["labels"] = json!({"params": "yes"});
        make(&server, CONFIG_MAPS, &params).await;
    }
    let spec = json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConstraints": rules("", "secrets", &["CREATE"]),
        "mutations": [apply("Object{metadata: Object.metadata{labels: {params.data.label: 'on'}}}")],
    });
    let bound = json!({"paramRef": {"selector": {"matchLabels": {"params": "yes"}}, "parameterNotFoundAction": "Deny"}});
    mutate(&server, "p", spec, bound).await;
    let path = "/api/v1/namespaces/default/secrets";
    let made = make(&server, path, &json!({"metadata": {"name": "s"}})).await;
    assert_eq!(
        made["metadata"]["labels"],
        json!({"one": "on", "two": "on"})
    );
}

#[tokio::test]
async fn policies_are_repeated_after_later_changes_if_they_ask_for_it() {
    let server = Server::new();
    let count = |name: &str, reinvocation: &str| {
        json!({
            "reinvocationPolicy": reinvocation,
            "mutations": [patch(&format!("[JSONPatch{{op: 'add', path: '/data/{name}', value: string(size(object.data))}}]"))],
        })
    };
    mutate(&server, "a", count("a", "IfNeeded"), json!({})).await;
    mutate(&server, "b", count("b", "Never"), json!({})).await;
    let made = make(&server, CONFIG_MAPS, &config_map("m", json!({"x": "y"}))).await;
    assert_eq!(made["data"], json!({"a": "3", "b": "2", "x": "y"}));
}

#[tokio::test]
async fn failures_deny_the_request_unless_they_are_ignored() {
    let server = Server::new();
    for (index, (mutation, problem)) in [
        (
            patch("[JSONPatch{op: 'remove', path: '/data/missing'}]"),
            "JSON Patch: ",
        ),
        (
            apply("Object{metadata: Object.metadata{labels: {'a': object.data.missing}}}"),
            "resulted in error: no such key: missing",
        ),
        (
            apply("Object{metadata: Object.wrong{labels: {'a': 'b'}}}"),
            "unexpected type name \"Object.wrong\", expected \"Object.metadata\", which matches field name path from root Object type",
        ),
        (
            apply("Object{nothing: 1}"),
            "error applying patch: failed to convert patch object to typed object: .nothing: field not declared in schema",
        ),
        (
            apply("Object{metadata: Object.metadata{ownerReferences: []}, data: {'a': 'b'}}"),
            "",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("p{index}");
        mutate(&server, &name, json!({"mutations": [mutation.clone()]}), json!({})).await;
        let path = format!("{CONFIG_MAPS}?dryRun=All");
        let answer = server.post(&path, &config_map("m", json!({"x": "y"}))).await;
        if problem.is_empty() {
            assert_eq!(answer.code, 201, "{}", answer.text());
        } else {
            let status = answer.json();
            let start = format!("policy '{name}' with binding '{name}-binding' denied request: ");
            assert_eq!((answer.code, &status["reason"]), (403, &json!("Invalid")), "{status}");
            assert!(answer.message().starts_with(&start), "{status}");
            assert!(answer.message().contains(problem), "{status}");
            assert_eq!(status["details"]["causes"][0]["message"], status["message"]);
        }
        let path = format!("{GROUP}/mutatingadmissionpolicies/{name}");
        let ignore = json!({"spec": {"failurePolicy": "Ignore"}}).to_string();
        assert_eq!(server.patch(&path, MERGE, &ignore).await.code, 200);
        make(&server, CONFIG_MAPS, &config_map(&name, json!({"x": "y"}))).await;
    }
}

#[tokio::test]
async fn atomic_values_cannot_be_merged() {
    let server = Server::new();
    let spec = json!({
        "matchConstraints": rules("apps", "deployments", &["CREATE"]),
        "mutations": [apply("Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {'a': 'b'}}}}")],
    });
    mutate(&server, "p", spec, json!({})).await;
    let deployment = json!({"metadata": {"name": "d"}, "spec": {
        "selector": {"matchLabels": {"app": "d"}},
        "template": {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [{"name": "a", "image": "i"}]}},
    }});
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let answer = server.post(path, &deployment).await;
    assert_eq!(
        answer.message(),
        "policy 'p' with binding 'p-binding' denied request: error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.selector"
    );
}

#[tokio::test]
async fn mutating_policies_are_validated() {
    let server = Server::new();
    let object = json!({"metadata": {"name": "p"}, "spec": {
        "matchConstraints": rules("", "pods", &["DELETE"]),
        "mutations": [
            apply("'x'"),
            patch("[Object{}]"),
            {"patchType": "JSONPatch", "applyConfiguration": {"expression": "Object{}"}},
            {"patchType": "Other"},
            apply("Other{}"),
        ],
    }});
    let path = format!("{GROUP}/mutatingadmissionpolicies");
    let status = server.post(&path, &object).await.json();
    let causes = status["details"]["causes"].as_array().unwrap().iter();
    let found: Vec<String> = causes
        .map(|cause| {
            format!(
                "{}: {}",
                cause["field"].as_str().unwrap(),
                cause["message"].as_str().unwrap()
            )
        })
        .collect();
    let expected = [
        "spec.matchConstraints.resourceRules.operations: Unsupported value: \"DELETE\": supported values: \"*\", \"CONNECT\", \"CREATE\", \"UPDATE\"",
        "spec.mutations[0].applyConfiguration.expression: Invalid value: \"'x'\": must evaluate to Object but got string",
        "spec.mutations[1].jsonPatch.expression: Invalid value: \"[Object{}]\": must evaluate to list(JSONPatch) but got list(Object)",
        "spec.mutations[2].jsonPatch: Required value: must be specified when patchType is JSONPatch",
        "spec.mutations[2].applyConfiguration: Invalid value: \"{applyConfiguration}\": must not be specified when patchType is JSONPatch",
        "spec.mutations[3].patchType: Unsupported value: \"Other\": supported values: \"ApplyConfiguration\", \"JSONPatch\"",
        "spec.mutations[4].applyConfiguration.expression: Invalid value: \"Other{}\": compilation failed: ERROR: <input>:1:6: undeclared reference to 'Other' (in container '')\n | Other{}\n | .....^",
        "spec.reinvocationPolicy: Required value",
    ];
    assert_eq!(found, expected);
}
