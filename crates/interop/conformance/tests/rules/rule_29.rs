//! Rule 29: format of errors, timestamps, and lists.

use longshore_conformance::{ApiTest, PatchType};
use serde_json::{Value, json};

use crate::common::{config_map, pod, with};

#[tokio::test]
async fn rule_29_every_error_is_a_status() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let one = format!("{maps}/a");
    test.create(&maps, &config_map("a")).await;
    // `refused` checks the format of each.
    test.get("/none").await;
    test.get("/api/v1/nonsense").await.refused(404, "NotFound");
    test.get(&format!("{maps}/none"))
        .await
        .refused(404, "NotFound");
    test.get(&format!("{one}/none"))
        .await
        .refused(404, "NotFound");
    test.post(&one, &json!({}))
        .await
        .refused(405, "MethodNotAllowed");
    test.post(&maps, &config_map("a"))
        .await
        .refused(409, "AlreadyExists");
    test.post(&maps, &config_map("A"))
        .await
        .refused(422, "Invalid");
    let request = test.request("GET", &one).accept("text/plain");
    request.send().await.refused(406, "NotAcceptable");
    let request = test.request("POST", &maps).body("application/x", "{}");
    request.send().await.refused(415, "UnsupportedMediaType");
    for path in [&one, "/version", "/livez"] {
        let request = test
            .request("GET", path)
            .header("authorization", "Bearer other");
        request.send().await.refused(401, "Unauthorized");
    }
}

#[tokio::test]
async fn rule_29_details_name_the_object_and_the_causes() {
    let test = ApiTest::start().await;
    let deployments = test.path("apps/v1", "deployments");
    let status = test
        .get(&format!("{deployments}/a"))
        .await
        .refused(404, "NotFound");
    assert_eq!(
        status["details"],
        json!({"name": "a", "group": "apps", "kind": "deployments"})
    );
    assert_eq!(status["message"], "deployments.apps \"a\" not found");
    let wrong = with(
        crate::common::deployment("a"),
        &[("/spec/replicas", json!(-1))],
    );
    let status = test
        .post(&deployments, &wrong)
        .await
        .refused(422, "Invalid");
    let cause = json!({
        "reason": "FieldValueInvalid", "field": "spec.replicas",
        "message": "Invalid value: -1: must be greater than or equal to 0",
    });
    let expected = json!({"name": "a", "group": "apps", "kind": "Deployment", "causes": [cause]});
    assert_eq!(status["details"], expected);
    assert_eq!(
        status["message"],
        "Deployment.apps \"a\" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0"
    );
}

/// Returns true if the text matches the format, in which each 9 stands for a digit.
fn has_format(text: &str, format: &str) -> bool {
    text.len() == format.len()
        && text
            .bytes()
            .zip(format.bytes())
            .all(|(byte, format)| match format {
                b'9' => byte.is_ascii_digit(),
                other => byte == other,
            })
}

#[tokio::test]
async fn rule_29_times_are_in_seconds_and_micro_times_have_six_decimals() {
    let test = ApiTest::start().await;
    let leases = test.path("coordination.k8s.io/v1", "leases");
    for (name, given, shown) in [
        (
            "a",
            "2026-01-02T03:04:05.123456Z",
            "2026-01-02T03:04:05.123456Z",
        ),
        (
            "b",
            "2026-01-02T05:04:05.000001+02:00",
            "2026-01-02T03:04:05.000001Z",
        ),
    ] {
        let lease = json!({"metadata": {"name": name}, "spec": {"renewTime": given}});
        let made = test.create(&leases, &lease).await;
        assert_eq!(made["spec"]["renewTime"], shown);
        let created = made["metadata"]["creationTimestamp"].as_str().unwrap();
        assert!(has_format(created, "9999-99-99T99:99:99Z"), "{created}");
    }
    // Input also requires six decimals.
    for given in ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.5Z", "now"] {
        let lease = json!({"metadata": {"name": "c"}, "spec": {"renewTime": given}});
        test.post(&leases, &lease).await.refused(400, "BadRequest");
    }
    // Timestamps are converted to UTC and truncated to seconds.
    let pods = test.path("v1", "pods");
    test.create(&pods, &pod("a")).await;
    let status = json!({"status": {"startTime": "2026-01-02T05:04:05.7+02:00"}});
    let one = format!("{pods}/a/status");
    let written = test.patch(&one, PatchType::Merge, &status).await.ok();
    assert_eq!(written["status"]["startTime"], "2026-01-02T03:04:05Z");
    let wrong = json!({"status": {"startTime": "yesterday"}});
    let response = test.patch(&one, PatchType::Merge, &wrong).await;
    assert!([400, 422].contains(&response.code), "{}", response.text());
}

#[tokio::test]
async fn rule_29_lists_are_never_null() {
    let test = ApiTest::start().await;
    let mut seen = 0;
    for (root, group_version) in [
        ("/api/v1", "v1"),
        ("/apis/apps/v1", "apps/v1"),
        ("/apis/batch/v1", "batch/v1"),
        ("/apis/coordination.k8s.io/v1", "coordination.k8s.io/v1"),
        ("/apis/networking.k8s.io/v1", "networking.k8s.io/v1"),
        (
            "/apis/rbac.authorization.k8s.io/v1",
            "rbac.authorization.k8s.io/v1",
        ),
        ("/apis/scheduling.k8s.io/v1", "scheduling.k8s.io/v1"),
        ("/apis/storage.k8s.io/v1", "storage.k8s.io/v1"),
        ("/apis/apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1"),
        ("/apis/events.k8s.io/v1", "events.k8s.io/v1"),
    ] {
        let resources = test.get(root).await.ok();
        for resource in resources["resources"].as_array().unwrap() {
            let name = resource["name"].as_str().unwrap();
            let verbs = resource["verbs"].as_array().unwrap();
            if name.contains('/') || !verbs.contains(&json!("list")) || name == "componentstatuses"
            {
                continue;
            }
            let path = if resource["namespaced"] == true {
                test.path(group_version, name)
            } else {
                test.cluster_path(group_version, name)
            };
            // No object has this label.
            let list = test
                .get(&format!("{path}?labelSelector=none%3Dhere"))
                .await
                .ok();
            assert_eq!(list["items"], json!([]), "{path}: {list}");
            let kind = resource["kind"].as_str().unwrap();
            assert_eq!(list["kind"], format!("{kind}List"));
            assert_eq!(list["apiVersion"], group_version);
            assert!(list["metadata"]["resourceVersion"].is_string(), "{list}");
            seen += 1;
        }
    }
    assert!(seen > 30, "{seen}");
}

#[tokio::test]
async fn rule_29_required_fields_are_never_missing() {
    let test = ApiTest::start().await;
    let pods = test.path("v1", "pods");
    test.create(&pods, &pod("a")).await;
    let one = format!("{pods}/a/status");
    let status = json!({"status": {
        "containerStatuses": [{"name": "main"}],
        "conditions": [{"type": "Ready", "status": "True"}],
    }});
    let mut written = test.patch(&one, PatchType::Merge, &status).await.ok();
    let container = written["status"]["containerStatuses"][0].take();
    let expected = json!({
        "name": "main", "image": "", "imageID": "", "ready": false, "restartCount": 0,
        "state": {}, "lastState": {},
    });
    assert_eq!(container, expected);
    let made = test.get(&format!("{pods}/a")).await.ok();
    assert_eq!(made["spec"]["containers"][0]["resources"], json!({}));
    let events = test.path("v1", "events");
    let event = json!({
        "metadata": {"name": "a"}, "involvedObject": {"namespace": test.namespace()},
    });
    let event = test.create(&events, &event).await;
    for field in ["source", "firstTimestamp", "lastTimestamp", "eventTime"] {
        assert!(event.get(field).is_some(), "{field}: {event}");
    }
    assert_eq!(event["reportingComponent"], "");
    assert_eq!(event["reportingInstance"], "");
    let roles = test.path("rbac.authorization.k8s.io/v1", "roles");
    let role = test
        .create(&roles, &json!({"metadata": {"name": "a"}}))
        .await;
    assert!(
        role.get("rules")
            .is_some_and(|rules| *rules == Value::Null || rules.is_array()),
        "{role}"
    );
}
