//! Rule 9: POST, duplicates, namespaces, generated names.

use longshore_conformance::ApiTest;
use serde_json::{Value, json};

use crate::common::{config_map, pod, with};

#[tokio::test]
async fn rule_09_create_returns_the_complete_object() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let response = test.post(&maps, &config_map("a")).await;
    let made = response.is(201);
    assert_eq!(response.header("content-type"), "application/json");
    assert_eq!(
        (&made["kind"], &made["apiVersion"]),
        (&json!("ConfigMap"), &json!("v1"))
    );
    assert_eq!(made["metadata"]["namespace"], test.namespace());
    assert_eq!(made["data"], json!({"key": "value"}));
    for field in ["uid", "creationTimestamp", "resourceVersion"] {
        assert!(made["metadata"][field].is_string(), "{field}: {made}");
    }
    assert_eq!(test.get(&format!("{maps}/a")).await.ok(), made);
    // Kind and API version are optional.
    let bare = json!({"metadata": {"name": "b"}});
    assert_eq!(test.create(&maps, &bare).await["kind"], "ConfigMap");
}

#[tokio::test]
async fn rule_09_a_resource_version_is_rejected() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let versioned = with(
        config_map("a"),
        &[("/metadata/resourceVersion", json!("5"))],
    );
    let response = test.post(&maps, &versioned).await;
    assert_ne!(response.code, 201, "{}", response.text());
    if test.is_newer("the Status has a reason: 1.20 returns 500") {
        let status = response.is(response.code);
        assert_eq!(
            status["message"],
            "resourceVersion should not be set on objects to be created"
        );
    }
    test.get(&format!("{maps}/a"))
        .await
        .refused(404, "NotFound");
    // Validation comes first, and a dry run does not reach the store.
    let invalid = with(versioned.clone(), &[("/metadata/name", json!("A"))]);
    test.post(&maps, &invalid).await.refused(422, "Invalid");
    let dry = test.post(&format!("{maps}?dryRun=All"), &versioned).await;
    assert_eq!(dry.code, 201, "{}", dry.text());
}

#[tokio::test]
async fn rule_09_a_duplicate_already_exists() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let made = test.create(&maps, &config_map("a")).await;
    let other = with(config_map("a"), &[("/data/key", json!("other"))]);
    let status = test.post(&maps, &other).await.refused(409, "AlreadyExists");
    assert_eq!(status["message"], "configmaps \"a\" already exists");
    assert_eq!(
        status["details"],
        json!({"name": "a", "kind": "configmaps"})
    );
    assert_eq!(test.get(&format!("{maps}/a")).await.ok(), made);
    // The same name of another kind is another object.
    let secrets = test.path("v1", "secrets");
    test.create(&secrets, &json!({"metadata": {"name": "a"}}))
        .await;
}

#[tokio::test]
async fn rule_09_the_namespace_must_match_the_path() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let elsewhere = with(
        config_map("a"),
        &[("/metadata/namespace", json!("default"))],
    );
    let status = test
        .post(&maps, &elsewhere)
        .await
        .refused(400, "BadRequest");
    assert_eq!(
        status["message"],
        "the namespace of the provided object does not match the namespace sent on the request"
    );
    let same = with(
        config_map("a"),
        &[("/metadata/namespace", json!(test.namespace()))],
    );
    test.create(&maps, &same).await;
}

#[tokio::test]
async fn rule_09_a_missing_namespace_is_not_found() {
    let test = ApiTest::start().await;
    let missing = format!("{}-none", test.namespace());
    let maps = format!("/api/v1/namespaces/{missing}/configmaps");
    let status = test
        .post(&maps, &config_map("a"))
        .await
        .refused(404, "NotFound");
    assert_eq!(
        status["message"],
        format!("namespaces {missing:?} not found")
    );
    assert_eq!(
        status["details"],
        json!({"name": missing, "kind": "namespaces"})
    );
    // A list in a missing namespace is empty.
    let list = test.get(&maps).await.ok();
    assert_eq!(list["items"], json!([]));
}

/// Creates a namespace in the phase Terminating: a finalizer blocks its deletion.
async fn terminating(test: &ApiTest) -> String {
    let name = format!("{}-ending", test.namespace());
    let namespaces = test.cluster_path("v1", "namespaces");
    let namespace = json!({
        "metadata": {"name": name, "finalizers": ["example.com/hold"]},
    });
    test.create(&namespaces, &namespace).await;
    test.delete(&format!("{namespaces}/{name}")).await.ok();
    name
}

#[tokio::test]
async fn rule_09_a_terminating_namespace_rejects_new_objects() {
    let test = ApiTest::start().await;
    let name = terminating(&test).await;
    let maps = format!("/api/v1/namespaces/{name}/configmaps");
    let response = test.post(&maps, &config_map("a")).await;
    let status = response.refused_for(
        403,
        "Forbidden",
        &[("NamespaceTerminating", "metadata.namespace")],
    );
    assert_eq!(
        status["message"],
        format!(
            "configmaps \"a\" is forbidden: unable to create new content in namespace {name} because it is being terminated"
        )
    );
    assert_eq!(status["details"]["kind"], "configmaps");
    assert_eq!(status["details"]["name"], "a");
    let cause = &status["details"]["causes"][0];
    assert_eq!(
        cause["message"],
        format!("namespace {name} is being terminated")
    );
}

#[tokio::test]
async fn rule_09_server_managed_metadata_is_ignored() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let long_ago = json!("2001-02-03T04:05:06Z");
    let given = with(
        config_map("a"),
        &[
            ("/metadata/uid", json!("mine")),
            ("/metadata/creationTimestamp", long_ago.clone()),
            ("/metadata/deletionTimestamp", long_ago.clone()),
            ("/metadata/deletionGracePeriodSeconds", json!(5)),
            ("/metadata/selfLink", json!("/mine")),
        ],
    );
    let made = test.create(&maps, &given).await;
    let metadata = &made["metadata"];
    assert_eq!(metadata["uid"].as_str().unwrap().len(), 36, "{metadata}");
    assert_ne!(metadata["creationTimestamp"], long_ago);
    for field in [
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
    ] {
        assert_eq!(metadata.get(field), None, "{field}");
    }
}

#[tokio::test]
async fn rule_09_create_ignores_the_status() {
    let test = ApiTest::start().await;
    let pods = test.path("v1", "pods");
    let running = with(
        pod("a"),
        &[("/status", json!({"phase": "Running", "message": "x"}))],
    );
    let made = test.create(&pods, &running).await;
    assert_eq!(made["status"]["phase"], "Pending");
    assert_eq!(made["status"].get("message"), None);
}

#[tokio::test]
async fn rule_09_names_are_generated() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let generated = |prefix: &str| json!({"metadata": {"generateName": prefix}});
    let mut names = Vec::new();
    for _ in 0..5 {
        let made = test.create(&maps, &generated("job-")).await;
        let name = made["metadata"]["name"].as_str().unwrap().to_owned();
        let suffix = name.strip_prefix("job-").unwrap();
        assert_eq!(suffix.len(), 5, "{name}");
        let letters = "bcdfghjklmnpqrstvwxz2456789";
        assert!(
            suffix.chars().all(|letter| letters.contains(letter)),
            "{name}"
        );
        assert_eq!(made["metadata"]["generateName"], "job-");
        names.push(name);
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 5);

    // The prefix is truncated to 58 characters, so that the name has at most 63.
    let long = "x".repeat(100);
    let made = test.create(&maps, &generated(&long)).await;
    let name = made["metadata"]["name"].as_str().unwrap();
    assert_eq!(name.len(), 63, "{name}");
    assert!(name.starts_with(&"x".repeat(58)));
    assert_eq!(made["metadata"]["generateName"], long);

    // A given name takes precedence.
    let both = json!({"metadata": {"generateName": "x-", "name": "given"}});
    assert_eq!(test.create(&maps, &both).await["metadata"]["name"], "given");
}

#[tokio::test]
async fn rule_09_a_valid_name_is_required() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let response = test.post(&maps, &json!({"data": {}})).await;
    let status = response.refused_for(422, "Invalid", &[("FieldValueRequired", "metadata.name")]);
    assert_eq!(
        status["message"],
        "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required"
    );
    assert_eq!(status["details"]["kind"], "ConfigMap");
    for bad in ["UPPER", "under_score", "-dash", "dot.", &"x".repeat(254)] {
        let response = test.post(&maps, &config_map(bad)).await;
        response.refused_for(422, "Invalid", &[("FieldValueInvalid", "metadata.name")]);
    }
    for bad in ["a/b", "..", "a%b"] {
        let response = test.post(&maps, &config_map(bad)).await;
        response.refused(422, "Invalid");
    }
}

#[tokio::test]
async fn rule_09_the_kind_must_match_the_path() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    for (kind, version) in [
        ("Secret", "v1"),
        ("ConfigMap", "v2"),
        ("ConfigMap", "apps/v1"),
    ] {
        let other: Value = json!({
            "kind": kind, "apiVersion": version, "metadata": {"name": "a"},
        });
        test.post(&maps, &other).await.refused(400, "BadRequest");
    }
    // Paths that do not support POST.
    let one = format!("{maps}/a");
    test.post(&one, &config_map("a"))
        .await
        .refused(405, "MethodNotAllowed");
    let wide = test.cluster_path("v1", "configmaps");
    let response = test.post(&wide, &config_map("a")).await;
    assert!(
        [400, 404, 405, 422].contains(&response.code),
        "{}",
        response.text()
    );
}
