//! Warnings for objects of kinds that no controller handles, if the server has them enabled.

use serde_json::{Value, json};

use super::common::{Answer, Server};

const INGRESSES: &str = "/apis/networking.k8s.io/v1/namespaces/default/ingresses";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
const APPLY: &str = "application/apply-patch+yaml";
const WARNING: &str = r#"299 - "ingresses.networking.k8s.io are stored, but this cluster does not act on them: no requests are routed; see docs/kinds.md""#;

fn ingress(name: &str) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": name},
        "spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}},
    })
}

fn warnings_of(answer: &Answer) -> Vec<&str> {
    let all = answer.headers.get_all("warning").iter();
    all.map(|value| value.to_str().unwrap()).collect()
}

#[tokio::test]
async fn every_kind_of_create_warns_and_updates_do_not() {
    let server = Server::with_idle_warnings();
    let path = format!("{INGRESSES}/b");
    let applied = format!("{path}?fieldManager=me");
    let text = ingress("b").to_string();

    let made = server.post(INGRESSES, &ingress("a")).await;
    assert_eq!((made.code, warnings_of(&made)), (201, vec![WARNING]));
    let dry = server
        .post(&format!("{INGRESSES}?dryRun=All"), &ingress("c"))
        .await;
    assert_eq!((dry.code, warnings_of(&dry)), (201, vec![WARNING]));
    let made = server.patch(&applied, APPLY, &text).await;
    assert_eq!((made.code, warnings_of(&made)), (201, vec![WARNING]));

    let again = server.patch(&applied, APPLY, &text).await;
    let merged = server
        .patch(
            &path,
            "application/merge-patch+json",
            r#"{"spec": {"ingressClassName": "c"}}"#,
        )
        .await;
    let put = server.put(&path, &ingress("b")).await;
    let read = server.get(&path).await;
    for answer in [again, merged, put, read] {
        assert_eq!(
            (answer.code, warnings_of(&answer)),
            (200, vec![]),
            "{}",
            answer.text()
        );
    }
    let taken = server.post(INGRESSES, &ingress("a")).await;
    assert_eq!((taken.code, warnings_of(&taken)), (409, vec![]));
}

/// The kinds that a PUT can create all have an effect.
#[tokio::test]
async fn a_put_that_creates_does_not_warn() {
    let server = Server::with_idle_warnings();
    let path = "/api/v1/namespaces/default/endpoints/e";
    let made = server.put(path, &json!({"metadata": {"name": "e"}})).await;
    assert_eq!((made.code, warnings_of(&made)), (201, vec![]));
    let role = json!({"metadata": {"name": "reader"}, "rules": []});
    let made = server.put(&format!("{ROLES}/reader"), &role).await;
    assert_eq!((made.code, warnings_of(&made)), (201, vec![]));
}

#[tokio::test]
async fn other_warnings_come_first() {
    let server = Server::with_idle_warnings();
    let mut wrong = ingress("a");
    wrong["colour"] = "red".into();
    let made = server.post(INGRESSES, &wrong).await;
    let unknown = r#"299 - "unknown field \"colour\"""#;
    assert_eq!(warnings_of(&made), [unknown, WARNING]);
}

#[tokio::test]
async fn supported_and_custom_kinds_cause_no_warning() {
    let server = Server::with_idle_warnings();
    let names = json!({"plural": "ingresses", "singular": "ingress", "kind": "Ingress"});
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": schema});
    let definition = json!({
        "metadata": {"name": "ingresses.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    });
    let custom = json!({
        "apiVersion": "example.com/v1", "kind": "Ingress", "metadata": {"name": "a"},
    });
    let map = json!({"metadata": {"name": "a"}});
    for (path, body) in [
        ("/api/v1/namespaces/default/configmaps", map.clone()),
        ("/api/v1/namespaces", map),
        (
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            definition,
        ),
        ("/apis/example.com/v1/namespaces/default/ingresses", custom),
    ] {
        let mut made = server.post(path, &body).await;
        for _ in 0..500 {
            if made.code != 404 {
                break;
            }
            // A definition is served shortly after its creation.
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            made = server.post(path, &body).await;
        }
        assert_eq!(
            (made.code, warnings_of(&made)),
            (201, vec![]),
            "{}",
            made.text()
        );
    }
}

#[tokio::test]
async fn a_standalone_server_does_not_warn() {
    let server = Server::new();
    let made = server.post(INGRESSES, &ingress("a")).await;
    assert_eq!((made.code, warnings_of(&made)), (201, vec![]));
}
