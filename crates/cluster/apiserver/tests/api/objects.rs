//! Objects over HTTP: create, read, update, patch, delete, and the errors of such requests.

use crate::common::{CONFIG_MAPS, PODS, Server, TABLE};
use serde_json::json;

#[tokio::test]
async fn the_life_of_an_object() {
    let server = Server::new();
    let made = server.config_map("a").await;
    assert_eq!(
        (&made["kind"], &made["apiVersion"]),
        (&json!("ConfigMap"), &json!("v1"))
    );
    let path = &format!("{CONFIG_MAPS}/a");
    assert_eq!(server.get(path).await.json(), made);

    let mut changed = made.clone();
    changed["data"]["key"] = "other".into();
    let put = server.put(path, &changed).await;
    assert_eq!(
        (put.code, put.json()["data"]["key"].clone()),
        (200, json!("other"))
    );
    let stale = server.put(path, &changed).await;
    assert_eq!(
        (stale.code, stale.json()["reason"].clone()),
        (409, json!("Conflict"))
    );

    let merge = "application/merge-patch+json; charset=utf-8";
    let patched = server.patch(path, merge, r#"{"data":{"more":"x"}}"#).await;
    assert_eq!(patched.json()["data"], json!({"key": "other", "more": "x"}));
    let strategic = "application/strategic-merge-patch+json";
    let patched = server
        .patch(path, strategic, r#"{"data":{"more":null}}"#)
        .await;
    assert_eq!(patched.json()["data"], json!({"key": "other"}));
    let json_patch = r#"[{"op":"test","path":"/data/key","value":"wrong"}]"#;
    let refused = server
        .patch(path, "application/json-patch+json", json_patch)
        .await;
    assert_eq!(refused.code, 422, "{}", refused.text());

    let deleted = server.call("DELETE", path, &[], "").await;
    let status = deleted.json();
    assert_eq!(
        (deleted.code, status["status"].clone()),
        (200, json!("Success"))
    );
    assert_eq!(
        status["details"],
        json!({"name": "a", "kind": "configmaps", "uid": made["metadata"]["uid"]})
    );
    let gone = server.get(path).await;
    assert_eq!(
        (gone.code, gone.message()),
        (404, "configmaps \"a\" not found".to_owned())
    );
}

#[tokio::test]
async fn bodies_that_do_not_match_the_request() {
    let server = Server::new();
    let post = |path, media_type: &'static str, body: &'static str| {
        let server = &server;
        async move {
            let answer = server
                .call("POST", path, &[("content-type", media_type)], body)
                .await;
            (answer.code, answer.message())
        }
    };
    let json = "application/json";
    let (code, message) = post(CONFIG_MAPS, json, "{\"a\"").await;
    assert_eq!(code, 400);
    assert!(message.starts_with("the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error:"), "{message}");
    let (code, message) = post(CONFIG_MAPS, json, r#"{"kind":"Secret","apiVersion":"v1"}"#).await;
    assert_eq!(
        (code, message.as_str()),
        (
            400,
            "Secret in version \"v1\" cannot be handled as a ConfigMap"
        )
    );
    let (code, _) = post(CONFIG_MAPS, "text/plain", "{}").await;
    assert_eq!(code, 415);
    let (code, message) = post("/api/v1/configmaps", json, "{}").await;
    assert_eq!(
        (code, message.as_str()),
        (
            405,
            "the server does not allow this method on the requested resource"
        )
    );
    let yaml = "metadata: {name: y}\ndata: {a: b}\n";
    assert_eq!(post(CONFIG_MAPS, "application/yaml", yaml).await.0, 201);

    let large = format!(r#"{{"data":{{"a":"{}"}}}}"#, "x".repeat(3 << 20));
    let answer = server.call("POST", CONFIG_MAPS, &[], large).await;
    assert_eq!(
        (answer.code, answer.message().as_str()),
        (413, "Request entity too large: limit is 3145728")
    );
    let other = server
        .put(
            &format!("{CONFIG_MAPS}/y"),
            &json!({"metadata": {"name": "z"}}),
        )
        .await;
    assert_eq!(
        (other.code, other.message().as_str()),
        (
            400,
            "the name of the object (z) does not match the name on the URL (y)"
        )
    );
    let patch = server
        .patch(&format!("{CONFIG_MAPS}/y"), "application/json", "{}")
        .await;
    assert_eq!(patch.code, 415);
    assert!(
        patch.message().contains("application/apply-patch+yaml"),
        "{}",
        patch.message()
    );
}

#[tokio::test]
async fn unknown_fields_cause_warnings() {
    let server = Server::new();
    let body = json!({"metadata": {"name": "a"}, "colour": "red"});
    let warned = server.post(CONFIG_MAPS, &body).await;
    assert_eq!(warned.code, 201);
    assert_eq!(
        warned.header("warning"),
        r#"299 - "unknown field \"colour\"""#
    );
    let strict = server
        .post(&format!("{CONFIG_MAPS}?fieldValidation=Strict"), &body)
        .await;
    assert_eq!(strict.code, 400, "{}", strict.text());
    let wrong = server
        .post(&format!("{CONFIG_MAPS}?fieldValidation=Lax"), &body)
        .await;
    assert_eq!(wrong.code, 422);
}

#[tokio::test]
async fn a_dry_run_stores_nothing() {
    let server = Server::new();
    let body = json!({"metadata": {"name": "a"}});
    assert_eq!(
        server
            .post(&format!("{CONFIG_MAPS}?dryRun=All"), &body)
            .await
            .code,
        201
    );
    assert_eq!(server.get(&format!("{CONFIG_MAPS}/a")).await.code, 404);
}

#[tokio::test]
async fn delete_options_are_read_from_body_or_query() {
    let server = Server::new();
    for name in ["a", "b"] {
        server.config_map(name).await;
    }
    let path = &format!("{CONFIG_MAPS}/a");
    let other_uid =
        json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "x"}});
    let refused = server
        .call("DELETE", path, &[], other_uid.to_string())
        .await;
    assert_eq!(refused.code, 409, "{}", refused.text());
    let dry = server
        .call("DELETE", &format!("{path}?dryRun=All"), &[], "")
        .await;
    assert_eq!(dry.code, 200);
    assert_eq!(server.get(path).await.code, 200);
    let wrong = server
        .call("DELETE", &format!("{path}?propagationPolicy=Odd"), &[], "")
        .await;
    assert_eq!(wrong.code, 422);
    let all = server.call("DELETE", CONFIG_MAPS, &[], "").await;
    assert_eq!(
        (all.code, all.json()["kind"].clone()),
        (200, json!("ConfigMapList"))
    );
    assert_eq!(
        server.get(CONFIG_MAPS).await.json()["items"]
            .as_array()
            .unwrap()
            .len(),
        0
    );
}

#[tokio::test]
async fn status_binding_finalize() {
    let server = Server::new();
    server.pod("p", &["c"]).await;
    let node = json!({"metadata": {"name": "n"}});
    assert_eq!(server.post("/api/v1/nodes", &node).await.code, 201);
    let binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
    let bound = server.post(&format!("{PODS}/p/binding"), &binding).await;
    assert_eq!(
        (bound.code, bound.json()["status"].clone()),
        (201, json!("Success"))
    );
    let again = server.post(&format!("{PODS}/p/binding"), &binding).await;
    assert_eq!(again.code, 409);

    let status = r#"{"status":{"phase":"Running"}}"#;
    let merge = "application/merge-patch+json";
    let patched = server
        .patch(&format!("{PODS}/p/status"), merge, status)
        .await;
    assert_eq!(patched.json()["status"]["phase"], "Running");
    assert_eq!(
        server.get(&format!("{PODS}/p/status")).await.json()["spec"]["nodeName"],
        "n"
    );

    let space = json!({"metadata": {"name": "s"}});
    let space = server.post("/api/v1/namespaces", &space).await;
    assert_eq!(space.code, 201);
    let mut space = space.json();
    space["spec"]["finalizers"] = json!([]);
    let finalized = server.put("/api/v1/namespaces/s/finalize", &space).await;
    assert_eq!(finalized.code, 200, "{}", finalized.text());
}

#[tokio::test]
async fn server_side_apply_needs_a_manager() {
    let server = Server::new();
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n";
    let answer = server
        .patch(
            &format!("{CONFIG_MAPS}/a"),
            "application/apply-patch+yaml",
            yaml,
        )
        .await;
    assert_eq!(answer.code, 422);
    assert!(
        answer.message().contains("fieldManager: Required value"),
        "{}",
        answer.message()
    );
}

#[tokio::test]
async fn reviews_allow_everything() {
    let server = Server::new();
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let spec = json!({"resourceAttributes": {"verb": "get", "resource": "pods"}});
    let answer = server.post(path, &json!({"spec": spec})).await;
    assert_eq!(
        (answer.code, answer.json()["status"]["allowed"].clone()),
        (201, json!(true))
    );
    assert_eq!(server.get(path).await.code, 405);
}

/// In built-in kinds, `kind` precedes `apiVersion`, and every response ends with a newline, like in
/// Go's encoding.
#[tokio::test]
async fn responses_are_encoded_as_by_go() {
    let server = Server::new();
    server.config_map("a").await;
    let large = json!({"metadata": {"name": "large"}, "data": {"k": "x".repeat(100_000)}});
    assert_eq!(server.post(CONFIG_MAPS, &large).await.code, 201);
    let item = format!("{CONFIG_MAPS}/a");
    let options = r#"{"kind":"DeleteOptions","apiVersion":"v1"}"#;
    for (method, path, accept, body, start) in [
        (
            "GET",
            item.as_str(),
            "",
            "",
            r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"default","uid":"#,
        ),
        (
            "GET",
            &format!("{CONFIG_MAPS}/large"),
            "",
            "",
            r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"large","#,
        ),
        (
            "GET",
            CONFIG_MAPS,
            "",
            "",
            r#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"#,
        ),
        (
            "GET",
            &item,
            TABLE,
            "",
            r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":"#,
        ),
        (
            "GET",
            CONFIG_MAPS,
            TABLE,
            "",
            r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":"#,
        ),
        (
            "GET",
            &format!("{CONFIG_MAPS}/b"),
            "",
            "",
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"#,
        ),
        (
            "GET",
            "/apis",
            "",
            "",
            r#"{"kind":"APIGroupList","apiVersion":"v1","groups":["#,
        ),
        (
            "GET",
            "/api/v1",
            "",
            "",
            r#"{"kind":"APIResourceList","apiVersion":"v1","#,
        ),
        (
            "POST",
            "/apis/authentication.k8s.io/v1/selfsubjectreviews",
            "",
            "{}",
            r#"{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1","metadata":"#,
        ),
        (
            "PATCH",
            &item,
            "",
            r#"{"data":{"k":"v"}}"#,
            r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","#,
        ),
        (
            "DELETE",
            &item,
            "",
            options,
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":"#,
        ),
    ] {
        let media_type = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let headers = [("accept", accept), ("content-type", media_type)];
        let answer = server.call(method, path, &headers, body.to_owned()).await;
        let text = answer.text();
        assert!(text.starts_with(start), "{method} {path}: {text:.200}");
        assert_eq!(text.find('\n'), Some(text.len() - 1), "{method} {path}");
    }
    let yaml = server
        .get_as("/api/v1/namespaces/default", "application/yaml")
        .await;
    assert!(
        yaml.text().starts_with("apiVersion: v1\n"),
        "{}",
        yaml.text()
    );
}

/// An invalid resource version in a created object is ignored.
#[tokio::test]
async fn a_non_numeric_resource_version_is_ignored_in_a_create() {
    let server = Server::new();
    for (name, version, code) in [
        ("a", "abc", 201),
        ("b", "", 201),
        ("c", "0", 201),
        ("d", "-1", 201),
        ("e", "+5", 201),
        ("f", "99999999999999999999999", 201),
        ("g", "5", 400),
    ] {
        let body = json!({"metadata": {"name": name, "resourceVersion": version}});
        let answer = server.post(CONFIG_MAPS, &body).await;
        assert_eq!(answer.code, code, "{version}: {}", answer.text());
        if code == 201 {
            let made = answer.json()["metadata"]["resourceVersion"].clone();
            assert!(made.as_str().unwrap().parse::<u64>().unwrap() > 0, "{made}");
        }
    }
}
