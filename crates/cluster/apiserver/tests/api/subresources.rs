//! The rules of namespaces and of the server, for each subresource and verb that changes or uses
//! the same object: one table for all.

use serde_json::{Value, json};

use crate::common::Server;

const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const NAMESPACE: &str = "/api/v1/namespaces/t";
const PODS: &str = "/api/v1/namespaces/t/pods";

/// A way to give a pod an ephemeral container.
const WAYS: [&str; 4] = ["PUT", "merge", "strategic", "apply"];

async fn create(server: &Server, path: &str, body: Value) {
    let answer = server.post(path, &body).await;
    assert_eq!(answer.code, 201, "{path}: {}", answer.text());
}

async fn namespace(server: &Server, labels: Value) {
    let body = json!({"metadata": {"name": "t", "labels": labels}});
    create(server, "/api/v1/namespaces", body).await;
}

fn safe() -> Value {
    json!({"runAsNonRoot": true, "runAsUser": 1000, "allowPrivilegeEscalation": false,
           "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}})
}

async fn pod(server: &Server) {
    let container = json!({"name": "c", "image": "i", "securityContext": safe()});
    create(
        server,
        PODS,
        json!({"metadata": {"name": "p"}, "spec": {"containers": [container]}}),
    )
    .await;
}

/// Adds an ephemeral container. Returns the status code and the message.
async fn debug(server: &Server, way: &str, container: &Value) -> (u16, String) {
    let path = format!("{PODS}/p/ephemeralcontainers");
    let mut body = json!({"spec": {"ephemeralContainers": [container]}});
    let answer = match way {
        "PUT" => {
            let mut pod = server.get(&format!("{PODS}/p")).await.json();
            pod["spec"]["ephemeralContainers"] = json!([container]);
            server.put(&path, &pod).await
        }
        "merge" => server.patch(&path, MERGE, &body.to_string()).await,
        "strategic" => server.patch(&path, STRATEGIC, &body.to_string()).await,
        _ => {
            body["apiVersion"] = "v1".into();
            body["kind"] = "Pod".into();
            body["metadata"] = json!({"name": "p"});
            let path = format!("{path}?fieldManager=m&force=true");
            server.patch(&path, APPLY, &body.to_string()).await
        }
    };
    (answer.code, answer.message())
}

#[tokio::test]
async fn ephemeral_containers_obey_the_pod_security_standards() {
    let containers = [
        (json!({"name": "e", "image": "i"}), 403, 200),
        (
            json!({"name": "e", "image": "i", "securityContext": {"privileged": true}}),
            403,
            403,
        ),
        (
            json!({"name": "e", "image": "i", "securityContext": safe()}),
            200,
            200,
        ),
    ];
    for way in WAYS {
        for (container, restricted, baseline) in &containers {
            for (level, expected) in [
                ("restricted", *restricted),
                ("baseline", *baseline),
                ("privileged", 200),
            ] {
                let server = Server::new();
                namespace(
                    &server,
                    json!({"pod-security.kubernetes.io/enforce": level}),
                )
                .await;
                pod(&server).await;
                let (code, message) = debug(&server, way, container).await;
                assert_eq!(code, expected, "{way} {level} {container}: {message}");
                if expected == 403 {
                    let start = format!(
                        "pods \"p\" is forbidden: violates PodSecurity \"{level}:latest\": "
                    );
                    assert!(message.starts_with(&start), "{message}");
                    assert!(message.contains("container \"e\""), "{message}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_pod_that_violates_a_later_standard_can_still_change() {
    let server = Server::new();
    namespace(&server, json!({})).await;
    pod(&server).await;
    let bad = json!({"name": "e", "image": "i"});
    assert_eq!(debug(&server, "merge", &bad).await.0, 200);
    let labels =
        json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    assert_eq!(
        server
            .patch(NAMESPACE, MERGE, &labels.to_string())
            .await
            .code,
        200
    );
    let patch = async |rest: &str, body: Value| {
        let path = format!("{PODS}/p{rest}");
        server.patch(&path, STRATEGIC, &body.to_string()).await.code
    };
    assert_eq!(
        patch("", json!({"metadata": {"labels": {"a": "b"}}})).await,
        200
    );
    assert_eq!(
        patch("/status", json!({"status": {"message": "m"}})).await,
        200
    );
    // The change does not concern fields that the standards check.
    assert_eq!(debug(&server, "PUT", &bad).await.0, 200);
    let image = json!([{"name": "c", "image": "other"}]);
    assert_eq!(patch("", json!({"spec": {"containers": image}})).await, 403);
    let resized = json!([{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]);
    let code = patch("/resize", json!({"spec": {"containers": resized}})).await;
    assert!(matches!(code, 200 | 422), "{code}");
}

#[tokio::test]
async fn warnings_are_the_same_for_ephemeral_containers() {
    let server = Server::new();
    namespace(
        &server,
        json!({"pod-security.kubernetes.io/warn": "baseline"}),
    )
    .await;
    pod(&server).await;
    let body = json!({"spec": {"ephemeralContainers": [
        {"name": "e", "image": "i", "securityContext": {"privileged": true}}]}});
    let path = format!("{PODS}/p/ephemeralcontainers");
    let answer = server.patch(&path, MERGE, &body.to_string()).await;
    assert_eq!(answer.code, 200, "{}", answer.text());
    let warning = answer.header("warning");
    assert!(warning.contains("would violate PodSecurity"), "{warning:?}");
}

#[tokio::test]
async fn nothing_is_created_in_a_terminating_namespace() {
    let server = Server::new();
    namespace(&server, json!({})).await;
    pod(&server).await;
    create(
        &server,
        &format!("{NAMESPACE}/serviceaccounts"),
        json!({"metadata": {"name": "s"}}),
    )
    .await;
    let finalizers = json!({"metadata": {"finalizers": ["example.com/kept"]}}).to_string();
    server.patch(&format!("{PODS}/p"), MERGE, &finalizers).await;
    let named = json!({"metadata": {"name": "p"}});
    let binding = json!({"metadata": {"name": "p"}, "target": {"name": "n"}});
    let requests = |namespace: &str| {
        let base = format!("/api/v1/namespaces/{namespace}");
        [
            (
                format!("{base}/configmaps"),
                json!({"metadata": {"name": "c"}}),
                "configmaps \"c\"",
            ),
            (
                format!("{base}/pods/p/binding"),
                binding.clone(),
                "pods \"p\"",
            ),
            (format!("{base}/bindings"), binding.clone(), "pods \"p\""),
            (
                format!("{base}/pods/p/eviction"),
                named.clone(),
                "pods \"p\"",
            ),
            (
                format!("{base}/serviceaccounts/s/token"),
                json!({}),
                "serviceaccounts \"s\"",
            ),
        ]
    };
    for (path, body, _) in requests("none") {
        let answer = server.post(&path, &body).await;
        let message = "namespaces \"none\" not found";
        assert_eq!((answer.code, &*answer.message()), (404, message), "{path}");
    }
    assert_eq!(server.call("DELETE", NAMESPACE, &[], "").await.code, 200);
    for (path, body, what) in requests("t") {
        let answer = server.post(&path, &body).await;
        let message = format!(
            "{what} is forbidden: unable to create new content in namespace t because it is being terminated"
        );
        assert_eq!((answer.code, answer.message()), (403, message), "{path}");
        assert_eq!(
            answer.json()["details"]["causes"][0]["reason"],
            "NamespaceTerminating"
        );
    }
    // Changes and deletes are possible.
    let status = json!({"status": {"message": "m"}}).to_string();
    let changed = server
        .patch(&format!("{PODS}/p/status"), MERGE, &status)
        .await;
    assert_eq!(changed.code, 200, "{}", changed.text());
    let (code, message) = debug(&server, "merge", &json!({"name": "e", "image": "i"})).await;
    assert_eq!(code, 200, "{message}");
    assert_eq!(
        server
            .call("DELETE", &format!("{PODS}/p"), &[], "")
            .await
            .code,
        200
    );
}

#[tokio::test]
async fn accounts_limit_the_secrets_of_pods() {
    let server = Server::new();
    namespace(&server, json!({})).await;
    let account = json!({
        "metadata": {"name": "s", "annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}},
        "secrets": [{"name": "known"}], "imagePullSecrets": [{"name": "pull"}],
    });
    create(&server, &format!("{NAMESPACE}/serviceaccounts"), account).await;
    let spec = |fields: Value| {
        let mut spec =
            json!({"serviceAccountName": "s", "containers": [{"name": "c", "image": "i"}]});
        spec.as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        spec
    };
    let variable = |name: &str| json!([{"name": "V", "valueFrom": {"secretKeyRef": {"name": name, "key": "k"}}}]);
    let container =
        |name: &str, secret: &str| json!({"name": name, "image": "i", "env": variable(secret)});
    let all = json!([{"secretRef": {"name": "other"}}]);
    let because = "is not allowed because service account s does not reference that secret";
    for (fields, reason) in [
        (json!({"volumes": [{"name": "v", "secret": {"secretName": "other"}}]}),
         format!("volume with secret.secretName=\"other\" {because}")),
        (json!({"containers": [container("c", "other")]}),
         format!("container c with envVar V referencing secret.secretName=\"other\" {because}")),
        (json!({"initContainers": [{"name": "i", "image": "i", "envFrom": all}]}),
         format!("init container i with envFrom referencing secret.secretName=\"other\" {because}")),
        (json!({"imagePullSecrets": [{"name": "pull"}, {"name": "x"}]}),
         "imagePullSecrets[1].name=\"x\" is not allowed because service account s does not reference that imagePullSecret".to_owned()),
    ] {
        let body = json!({"metadata": {"name": "bad"}, "spec": spec(fields)});
        let answer = server.post(PODS, &body).await;
        let expected = format!("pods \"bad\" is forbidden: {reason}");
        assert_eq!((answer.code, answer.message()), (403, expected));
    }
    let fields = json!({"containers": [container("c", "known")],
                        "volumes": [{"name": "v", "secret": {"secretName": "known"}}]});
    create(
        &server,
        PODS,
        json!({"metadata": {"name": "p"}, "spec": spec(fields)}),
    )
    .await;
    for way in WAYS {
        let (code, message) = debug(&server, way, &container("e", "other")).await;
        let expected = format!(
            "pods \"p\" is forbidden: ephemeral container e with envVar V referencing secret.secretName=\"other\" {because}"
        );
        assert_eq!((code, message), (403, expected), "{way}");
    }
    let (code, message) = debug(&server, "merge", &container("e", "known")).await;
    assert_eq!(code, 200, "{message}");
}

#[tokio::test]
async fn bindings_have_preconditions_and_set_labels() {
    let server = Server::new();
    namespace(&server, json!({})).await;
    let labels = json!({"topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r", "other": "o"});
    create(
        &server,
        "/api/v1/nodes",
        json!({"metadata": {"name": "n", "labels": labels}}),
    )
    .await;
    pod(&server).await;
    let bind = async |name: &str, metadata: Value, node: &str| {
        let body = json!({"metadata": metadata, "target": {"name": node}});
        let answer = server.post(&format!("{PODS}/{name}/binding"), &body).await;
        (answer.code, answer.message())
    };
    let (code, message) = bind("p", json!({"name": "p", "resourceVersion": "1"}), "n").await;
    assert_eq!(code, 409, "{message}");
    assert!(
        message.contains("ResourceVersion in precondition: 1"),
        "{message}"
    );
    assert_eq!(bind("p", json!({"name": "p"}), "No/Node").await.0, 422);
    let (code, message) = bind("p", json!({"name": "p", "labels": {"a": "b"}}), "n").await;
    assert_eq!(code, 201, "{message}");
    let bound = server.get(&format!("{PODS}/p")).await.json();
    let expected =
        json!({"a": "b", "topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r"});
    assert_eq!(bound["metadata"]["labels"], expected);

    let containers = json!([{"name": "c", "image": "i"}]);
    let gated = json!({"metadata": {"name": "g"}, "spec": {
        "containers": containers, "schedulingGates": [{"name": "example.com/g"}]}});
    create(&server, PODS, gated).await;
    let (code, message) = bind("g", json!({"name": "g"}), "n").await;
    assert_eq!(code, 409, "{message}");
    assert!(
        message.ends_with("pod g has non-empty .spec.schedulingGates"),
        "{message}"
    );

    let placed =
        json!({"metadata": {"name": "d"}, "spec": {"nodeName": "n", "containers": containers}});
    create(&server, PODS, placed).await;
    let placed = server.get(&format!("{PODS}/d")).await.json();
    assert_eq!(
        placed["metadata"]["labels"]["topology.kubernetes.io/zone"],
        "z"
    );
}
