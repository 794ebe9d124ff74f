//! CustomResourceDefinitions: validation, defaults, and the effects of updates.

use longshore_engine::{Patch, Subresource, WatchRequest, WatchStart, WriteOptions};
use longshore_model::PatchKind;
use serde_json::json;

use super::{DEFINITIONS, create, definition, get, shoe, shoe_kind, shoes, version};
use crate::support::{Api, api, available_events, status};

#[tokio::test]
async fn rule_30_a_definition_gets_its_defaults_and_is_established() {
    let api = api();
    let crd = definition(json!([version("v1", true)]));
    let made = api.create(DEFINITIONS, crd).await.unwrap().value();
    assert_eq!(made["spec"]["names"]["singular"], "shoe");
    assert_eq!(made["spec"]["names"]["listKind"], "ShoeList");
    assert_eq!(made["spec"]["conversion"], json!({"strategy": "None"}));
    assert_eq!(
        made["status"],
        json!({"acceptedNames": {"kind": "", "plural": ""}, "conditions": [], "storedVersions": ["v1"]})
    );
    let now = api.get(DEFINITIONS, "shoes.example.com").unwrap().value();
    assert_eq!(now["status"]["acceptedNames"], now["spec"]["names"]);
    let conditions: Vec<_> = now["status"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| {
            format!(
                "{} {} {} {}",
                c["type"], c["status"], c["reason"], c["message"]
            )
        })
        .collect();
    assert_eq!(
        conditions,
        [
            r#""NamesAccepted" "True" "NoConflicts" "no conflicts found""#,
            r#""Established" "True" "InitialNamesAccepted" "the initial names have been accepted""#,
        ]
    );
    let kind = shoe_kind(&api, "v1");
    assert_eq!((&*kind.singular, &*kind.list_kind()), ("shoe", "ShoeList"));
    assert!(kind.short_names.contains("sh") && kind.has_subresource("scale"));
}

#[tokio::test]
async fn rule_30_invalid_definitions_are_rejected() {
    let api = api();
    let mut crd = definition(json!([version("v1", false)]));
    crd["metadata"]["name"] = json!("boots.example.com");
    crd["spec"]["scope"] = json!("World");
    let (code, _, message) = status(api.create(DEFINITIONS, crd).await);
    assert_eq!(code, 422);
    for part in [
        r#"metadata.name: Invalid value: "boots.example.com": must be spec.names.plural+"."+spec.group"#,
        r#"spec.scope: Unsupported value: "World": supported values: "Cluster", "Namespaced""#,
        "must have exactly one version marked as storage version",
    ] {
        assert!(message.contains(part), "{message}");
    }
    let mut crd = definition(json!([version("v1", true)]));
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["x"] = json!({});
    let (_, _, message) = status(api.create(DEFINITIONS, crd).await);
    assert!(
        message.ends_with(
            "spec.validation.openAPIV3Schema.properties[x].type: Required value: must not be empty for specified object fields"
        ),
        "{message}"
    );
    assert!(api.0.find("example.com", "v1", "shoes").is_none());
}

#[tokio::test]
async fn rule_30_names_of_another_definition_are_not_accepted_until_it_is_deleted() {
    let api = shoes().await;
    let mut other = definition(json!([version("v1", true)]));
    other["metadata"]["name"] = json!("slippers.example.com");
    other["spec"]["names"] = json!({"plural": "slippers", "kind": "Shoe", "shortNames": ["sh"]});
    api.create(DEFINITIONS, other).await.unwrap();
    let conditions = |api: &Api| {
        let crd = api
            .get(DEFINITIONS, "slippers.example.com")
            .unwrap()
            .value();
        let one = |index: usize| crd["status"]["conditions"][index].clone();
        (one(0), one(1))
    };
    let (names, established) = conditions(&api);
    assert_eq!(
        (&names["status"], &names["reason"], &names["message"]),
        (
            &json!("False"),
            &json!("ListKindConflict"),
            &json!("\"ShoeList\" is already in use")
        )
    );
    assert_eq!(established["status"], "False");
    assert!(api.0.find("example.com", "v1", "slippers").is_none());
    api.delete(DEFINITIONS, "shoes.example.com").await.unwrap();
    let (names, established) = conditions(&api);
    assert_eq!(
        (&names["status"], &established["status"]),
        (&json!("True"), &json!("True"))
    );
    assert!(api.0.find("example.com", "v1", "slippers").is_some());
}

#[tokio::test]
async fn rule_13_a_dry_run_does_not_establish_a_kind() {
    let api = api();
    let options = WriteOptions {
        dry_run: true,
        ..WriteOptions::default()
    };
    let crd = definition(json!([version("v1", true)]));
    api.create_with(DEFINITIONS, crd, options).await.unwrap();
    assert!(api.0.find("example.com", "v1", "shoes").is_none());
}

#[tokio::test]
async fn rule_30_updates_of_a_definition_take_effect() {
    let api = shoes().await;
    create(&api, "v1", shoe("a")).await.unwrap();
    let epoch = api.0.kinds_epoch();
    let kind = shoe_kind(&api, "v1");
    let mut watch = api
        .0
        .watch(&WatchRequest::of(kind, WatchStart::Latest))
        .unwrap();
    assert_eq!(available_events(&mut watch), ["ADDED a"]);
    let body = json!([{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/width",
        "value": {"type": "string", "default": "wide"}}]);
    let grow = Patch {
        target: Api::target(DEFINITIONS, "shoes.example.com"),
        subresource: Subresource::None,
        kind: PatchKind::Json,
        body,
        options: WriteOptions::default(),
    };
    let crd = api.0.patch(grow).await.unwrap().object.value();
    assert_eq!(crd["metadata"]["generation"], 2);
    assert!(api.0.kinds_epoch() > epoch);
    assert_eq!(get(&api, "v1", "a").unwrap()["spec"]["width"], "wide");
    create(&api, "v1", shoe("b")).await.unwrap();
    assert_eq!(available_events(&mut watch), ["ADDED b"]);
    let (code, _, message) = status(
        api.merge(
            DEFINITIONS,
            "shoes.example.com",
            json!({"spec": {"scope": "Cluster"}}),
        )
        .await,
    );
    assert_eq!(code, 422);
    assert!(
        message.contains(r#"spec.scope: Invalid value: "Cluster": field is immutable"#),
        "{message}"
    );
}

#[tokio::test]
async fn objects_of_definitions_with_a_conversion_webhook_are_returned_as_stored() {
    let api = api();
    let mut crd = definition(json!([version("v1", true), version("v2", false)]));
    crd["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
        "clientConfig": {"url": "https://127.0.0.1/convert"}, "conversionReviewVersions": ["v1"]}});
    api.create(DEFINITIONS, crd).await.unwrap();
    create(&api, "v1", shoe("a")).await.unwrap();
    assert!(get(&api, "v1", "a").is_ok());
    let stored = get(&api, "v2", "a").unwrap();
    assert_eq!(stored["apiVersion"], "example.com/v1");
    // Only a reviewer can convert the written object.
    let (code, _, message) = status(create(&api, "v2", shoe("b")).await);
    assert_eq!(code, 500);
    assert!(
        message.contains("served in the storage version only"),
        "{message}"
    );
}
