//! Request bodies that are damaged, of another kind, or too large, each with its code and reason.
//! Verified against a real kube-apiserver 1.20 unless a comment says otherwise.

use crate::common::{Answer, CONFIG_MAPS, PODS, Server};
use serde_json::{Value, json};

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

async fn post(server: &Server, media_type: &str, body: impl Into<bytes::Bytes>) -> Answer {
    let headers = [("content-type", media_type)];
    server.call("POST", CONFIG_MAPS, &headers, body).await
}

/// Checks the code, the reason, and a part of the message.
#[track_caller]
fn assert_rejected(what: &str, answer: &Answer, code: u16, reason: &str, part: &str) {
    let status = answer.json();
    assert_eq!(answer.code, code, "{what}: {status}");
    assert_eq!(status["code"], code, "{what}: {status}");
    assert_eq!(status["kind"], "Status", "{what}: {status}");
    assert_eq!(status["reason"], reason, "{what}: {status}");
    let message = status["message"].as_str().unwrap();
    assert!(message.contains(part), "{what}: {message}");
}

fn nested(depth: usize) -> String {
    format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth))
}

#[tokio::test]
async fn objects_that_cannot_be_parsed() {
    let server = Server::new();
    let bad = "BadRequest";
    let unrecognized = "the object provided is unrecognized (must be of type ConfigMap): ";
    let whole = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}"#;
    for (body, code, reason, part) in [
        ("", 400, bad, "unexpected end of JSON input (<empty>)"),
        (
            r#"{"kind":"#,
            400,
            bad,
            "unexpected end of JSON input ({\"kind\":)",
        ),
        ("not json", 400, bad, "json parse error"),
        (&format!("{whole} and more"), 400, bad, "json parse error"),
        (&format!("{whole}{whole}"), 400, bad, "json parse error"),
        ("[]", 400, bad, "cannot unmarshal array"),
        (r#""x""#, 400, bad, "cannot unmarshal string"),
        ("1", 400, bad, "cannot unmarshal number"),
        (
            r#"{"kind":1}"#,
            400,
            bad,
            "cannot unmarshal number into Go struct field .kind",
        ),
        (
            r#"{"apiVersion":{}}"#,
            400,
            bad,
            "field .apiVersion of type string",
        ),
        (
            r#"{"apiVersion":"a/b/c"}"#,
            400,
            bad,
            "unexpected GroupVersion string: a/b/c",
        ),
    ] {
        let answer = post(&server, JSON, body.to_owned()).await;
        assert_rejected(body, &answer, code, reason, part);
        assert!(
            answer.message().starts_with(unrecognized),
            "{}",
            answer.message()
        );
    }
    // Only the name is missing.
    for body in ["null", "{}", r#"{"kind":"ConfigMap"}"#, r#"{"kind":null}"#] {
        let answer = post(&server, JSON, body).await;
        assert_rejected(
            body,
            &answer,
            422,
            "Invalid",
            "name or generateName is required",
        );
    }
    // The real server replaces invalid UTF-8, which would lose data.
    let broken = [
        &br#"{"metadata":{"name":"a"},"data":{"k":""#[..],
        b"\xff\xfe",
        br#""}}"#,
    ];
    let answer = post(&server, JSON, broken.concat()).await;
    assert_rejected("UTF-8", &answer, 400, bad, "json parse error");
}

#[tokio::test]
async fn objects_of_the_wrong_kind() {
    let server = Server::new();
    for (body, part) in [
        (
            r#"{"kind":"Secret","apiVersion":"v1"}"#,
            "Secret in version \"v1\" cannot be handled as a ConfigMap",
        ),
        (
            r#"{"kind":"Shoe","apiVersion":"v1"}"#,
            "Shoe in version \"v1\" cannot be handled as a ConfigMap",
        ),
        (
            r#"{"kind":"ConfigMap","apiVersion":"v2"}"#,
            "does not match the expected API version (v1)",
        ),
        (
            r#"{"kind":"ConfigMap","apiVersion":"apps/v1"}"#,
            "does not match the expected API version (v1)",
        ),
        (
            r#"{"metadata":"x"}"#,
            "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: ",
        ),
        (r#"{"metadata":{"name":5}}"#, "cannot unmarshal number"),
        (
            r#"{"metadata":{"name":"a","labels":{"a":1}}}"#,
            "cannot unmarshal number",
        ),
        (
            r#"{"metadata":{"name":"a"},"data":[1]}"#,
            "cannot unmarshal array",
        ),
        (
            r#"{"metadata":{"name":"a"},"data":{"a":1}}"#,
            "cannot unmarshal number",
        ),
    ] {
        assert_rejected(
            body,
            &post(&server, JSON, body).await,
            400,
            "BadRequest",
            part,
        );
    }
    for name in ["A", "a b", "a/b", "..", "é", "a\0", "-a", &"x".repeat(254)] {
        let body = json!({"metadata": {"name": name}});
        let answer = server.post(CONFIG_MAPS, &body).await;
        assert_rejected(
            name,
            &answer,
            422,
            "Invalid",
            "metadata.name: Invalid value",
        );
    }
}

/// A limit that needs little stack for parsing; the real server's limit is 10,000 levels.
#[tokio::test]
async fn deep_nesting() {
    let server = Server::new();
    for depth in [125, 200, 20_000, 500_000] {
        let body = nested(depth);
        for media_type in [JSON, YAML] {
            let answer = post(&server, media_type, body.clone()).await;
            let part = if media_type == JSON {
                "exceeded max depth"
            } else {
                ""
            };
            assert_rejected(media_type, &answer, 400, "BadRequest", part);
        }
        for media_type in [
            "application/merge-patch+json",
            "application/json-patch+json",
        ] {
            if depth < 200 {
                continue;
            }
            server.config_map("deep").await;
            let path = format!("{CONFIG_MAPS}/deep");
            let answer = server.patch(&path, media_type, &body).await;
            assert_rejected(media_type, &answer, 400, "BadRequest", "");
            server.call("DELETE", &path, &[], "").await;
        }
    }
    let answer = post(&server, JSON, nested(100)).await;
    assert_rejected("100", &answer, 422, "Invalid", "name or generateName");
}

#[tokio::test]
async fn yaml() {
    let server = Server::new();
    let good = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y}\ndata:\n  a: |\n    b\n";
    let made = post(&server, YAML, good).await;
    assert_eq!((made.code, &made.json()["data"]["a"]), (201, &json!("b\n")));
    let bomb = (0..30).fold("a0: &a0 [x]\n".to_owned(), |text, i| {
        format!("{text}a{}: &a{} [*a{i},*a{i},*a{i},*a{i}]\n", i + 1, i + 1)
    });
    for (body, part) in [
        ("metadata: [\n", "error converting YAML to JSON"),
        ("a: b: c", "error converting YAML to JSON"),
        ("- a\n", "cannot unmarshal array"),
        ("\0", "error converting YAML to JSON"),
        ("a: *nothing\n", "error converting YAML to JSON"),
        ("!!binary x: y\n--- \n", ""),
        (&bomb, "error converting YAML to JSON"),
    ] {
        assert_rejected(
            body,
            &post(&server, YAML, body.to_owned()).await,
            400,
            "BadRequest",
            part,
        );
    }
}

#[tokio::test]
async fn media_types() {
    let server = Server::new();
    for (number, media_type) in [
        "application/json",
        "application/json; charset=utf-16",
        "APPLICATION/JSON",
    ]
    .into_iter()
    .enumerate()
    {
        let body = json!({"metadata": {"name": format!("a{number}")}}).to_string();
        assert_eq!(
            post(&server, media_type, body).await.code,
            201,
            "{media_type}"
        );
    }
    let none = r#"{"metadata":{"name":"none"}}"#;
    assert_eq!(server.call("POST", CONFIG_MAPS, &[], none).await.code, 201);
    for media_type in [
        "text/plain",
        "junk",
        ";;",
        "application/x-www-form-urlencoded",
        "application/cbor",
        "é",
    ] {
        let answer = post(&server, media_type, "{}").await;
        let part = "accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf";
        assert_rejected(media_type, &answer, 415, "UnsupportedMediaType", part);
    }
    for media_type in ["", "application/json", "text/plain"] {
        let answer = server
            .patch(&format!("{CONFIG_MAPS}/a0"), media_type, "{}")
            .await;
        assert_rejected(
            media_type,
            &answer,
            415,
            "UnsupportedMediaType",
            "media types include",
        );
    }
    // The body is rejected without decompression: it is not JSON.
    let headers = [("content-type", JSON), ("content-encoding", "gzip")];
    let answer = server
        .call("POST", CONFIG_MAPS, &headers, &b"\x1f\x8b\x08\x00"[..])
        .await;
    assert_rejected("gzip", &answer, 400, "BadRequest", "(1f8b0800)");
}

/// A truncated protobuf body is an error or a smaller object.
#[tokio::test]
async fn truncated_protobuf() {
    let server = Server::new();
    let mut body = b"k8s\0".to_vec();
    let field = |number: u8, bytes: &[u8]| {
        let length = u8::try_from(bytes.len()).unwrap();
        [&[number << 3 | 2, length][..], bytes].concat()
    };
    let kind = [field(1, b"v1"), field(2, b"ConfigMap")].concat();
    let entry = [field(1, b"key"), field(2, b"value")].concat();
    let object = [field(1, &field(1, b"whole")), field(2, &entry)].concat();
    body.extend([field(1, &kind), field(2, &object)].concat());
    for cut in 0..body.len() {
        let answer = post(&server, PROTOBUF, body[..cut].to_vec()).await;
        assert!(matches!(answer.code, 400 | 422), "{cut}: {}", answer.text());
        assert_eq!(answer.json()["kind"], "Status");
    }
    let made = post(&server, PROTOBUF, body).await;
    assert_eq!(
        (made.code, &made.json()["data"]),
        (201, &json!({"key": "value"}))
    );
    for body in [
        &b"{}"[..],
        b"k8s\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
    ] {
        let answer = post(&server, PROTOBUF, body).await;
        assert_rejected("damaged", &answer, 400, "BadRequest", "unrecognized");
    }
}

#[tokio::test]
async fn rule_31_sizes() {
    let server = Server::new();
    let sized = |size: usize| json!({"metadata": {"name": "a"}, "data": {"k": "x".repeat(size)}});
    let answer = server.post(CONFIG_MAPS, &sized(3 << 20)).await;
    let part = "Request entity too large: limit is 3145728";
    assert_rejected("3 MiB", &answer, 413, "RequestEntityTooLarge", part);
    let answer = server.post(CONFIG_MAPS, &sized((1 << 20) + 1)).await;
    assert_rejected("1 MiB of data", &answer, 422, "Invalid", "Too long");
    assert_eq!(server.post(CONFIG_MAPS, &sized(1 << 20)).await.code, 201);
    let container = json!({"name": "c", "image": "i", "args": ["x".repeat(1_600_000)]});
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [container]}});
    let answer = server.post(PODS, &pod).await;
    assert_eq!(answer.code, 500, "as etcd's error is handed on");
    let message = answer.json()["message"].clone();
    assert_eq!(message, "etcdserver: request is too large");
    let note = json!({"metadata": {"name": "n", "annotations": {"a": "x".repeat(262_145)}}});
    assert_rejected(
        "annotations",
        &server.post(CONFIG_MAPS, &note).await,
        422,
        "Invalid",
        "262144",
    );
}

#[tokio::test]
async fn patches_that_cannot_be_parsed() {
    let server = Server::new();
    server.config_map("a").await;
    let path = format!("{CONFIG_MAPS}/a");
    let merge = "application/merge-patch+json";
    let strategic = "application/strategic-merge-patch+json";
    let json_patch = "application/json-patch+json";
    let many: Vec<Value> =
        vec![json!({"op": "test", "path": "/kind", "value": "ConfigMap"}); 10_001];
    let many = Value::from(many).to_string();
    let doubling: Vec<Value> = (0..40)
        .map(|_| json!({"op": "copy", "from": "/data", "path": "/data/x"}))
        .collect();
    let doubling = Value::from(doubling).to_string();
    for (media_type, body, codes) in [
        (merge, "", &[400][..]),
        (merge, "{", &[400]),
        (merge, "[]", &[400, 422]),
        (merge, "1", &[400]),
        (merge, r#"{"data":5}"#, &[400, 422]),
        (merge, r#"{"metadata":{"name":"z"}}"#, &[400]),
        (merge, r#"{"kind":"Secret"}"#, &[400, 422]),
        (strategic, "[]", &[400]),
        (strategic, r#"{"metadata":{"$patch":"what"}}"#, &[500]),
        (json_patch, "{}", &[400]),
        (json_patch, "[1]", &[400]),
        (json_patch, r#"[{"op":"jump","path":"/a"}]"#, &[400, 422]),
        (json_patch, r#"[{"op":"remove","path":"/none"}]"#, &[422]),
        (
            json_patch,
            r#"[{"op":"test","path":"/data/key","value":1}]"#,
            &[422],
        ),
        (json_patch, r#"[{"op":"remove","path":""}]"#, &[400, 422]),
        (
            json_patch,
            r#"[{"op":"add","path":"/data/99999999999999999999","value":[]}]"#,
            &[400, 422],
        ),
        (json_patch, &many, &[413]),
        (json_patch, &doubling, &[400, 413, 422]),
    ] {
        let answer = server.patch(&path, media_type, body).await;
        let shown = &body[..body.len().min(60)];
        assert!(
            codes.contains(&answer.code),
            "{media_type} {shown}: {}",
            answer.text()
        );
        let status = answer.json();
        assert_eq!(
            (&status["kind"], &status["code"]),
            (&json!("Status"), &json!(answer.code))
        );
    }
    let gone = server
        .patch(&format!("{CONFIG_MAPS}/none"), merge, "{}")
        .await;
    assert_rejected(
        "none",
        &gone,
        404,
        "NotFound",
        "configmaps \"none\" not found",
    );
}
