//! Who creates what nothing acts on is told so, where the server is to tell.

use serde_json::{Value, json};

use super::common::{Answer, Server};

const SETS: &str = "/apis/apps/v1/namespaces/default/statefulsets";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
const APPLY: &str = "application/apply-patch+yaml";
const TOLD: &str = r#"299 - "statefulsets.apps are stored, but this cluster does not act on them: no pods are made; see docs/kinds.md""#;

fn set(name: &str) -> Value {
    let labels = json!({"a": "b"});
    let containers = json!([{"name": "c", "image": "i"}]);
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": containers}});
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {"serviceName": "s", "selector": {"matchLabels": labels}, "template": template},
    })
}

fn warned(answer: &Answer) -> Vec<&str> {
    let all = answer.headers.get_all("warning").iter();
    all.map(|value| value.to_str().unwrap()).collect()
}

#[tokio::test]
async fn every_way_of_creating_tells_and_no_change_does() {
    let server = Server::with_idle_warnings();
    let path = format!("{SETS}/b");
    let applied = format!("{path}?fieldManager=me");
    let text = set("b").to_string();

    let made = server.post(SETS, &set("a")).await;
    assert_eq!((made.code, warned(&made)), (201, vec![TOLD]));
    let dry = server.post(&format!("{SETS}?dryRun=All"), &set("c")).await;
    assert_eq!((dry.code, warned(&dry)), (201, vec![TOLD]));
    let made = server.patch(&applied, APPLY, &text).await;
    assert_eq!((made.code, warned(&made)), (201, vec![TOLD]));

    let again = server.patch(&applied, APPLY, &text).await;
    let merged = server
        .patch(
            &path,
            "application/merge-patch+json",
            r#"{"spec": {"replicas": 2}}"#,
        )
        .await;
    let put = server.put(&path, &set("b")).await;
    let scaled = server
        .patch(
            &format!("{path}/scale"),
            "application/merge-patch+json",
            r#"{"spec": {"replicas": 3}}"#,
        )
        .await;
    let read = server.get(&path).await;
    for answer in [again, merged, put, scaled, read] {
        assert_eq!(
            (answer.code, warned(&answer)),
            (200, vec![]),
            "{}",
            answer.text()
        );
    }
    let taken = server.post(SETS, &set("a")).await;
    assert_eq!((taken.code, warned(&taken)), (409, vec![]));
}

#[tokio::test]
async fn a_put_that_creates_tells_that_rights_are_not_enforced() {
    let server = Server::with_idle_warnings();
    let role = json!({"metadata": {"name": "reader"}, "rules": []});
    let path = format!("{ROLES}/reader");
    let made = server.put(&path, &role).await;
    let told = warned(&made);
    assert_eq!((made.code, told.len()), (201, 1), "{}", made.text());
    assert!(
        told[0].contains("roles.rbac.authorization.k8s.io are stored"),
        "{told:?}"
    );
    assert!(told[0].contains("rights are not enforced"), "{told:?}");
    let again = server.put(&path, &role).await;
    assert_eq!((again.code, warned(&again)), (200, vec![]));
}

#[tokio::test]
async fn other_warnings_come_first() {
    let server = Server::with_idle_warnings();
    let mut wrong = set("a");
    wrong["colour"] = "red".into();
    let made = server.post(SETS, &wrong).await;
    let unknown = r#"299 - "unknown field \"colour\"""#;
    assert_eq!(warned(&made), [unknown, TOLD]);
}

#[tokio::test]
async fn what_is_acted_on_and_custom_kinds_bring_no_warning() {
    let server = Server::with_idle_warnings();
    let names = json!({"plural": "statefulsets", "singular": "statefulset", "kind": "StatefulSet"});
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": schema});
    let definition = json!({
        "metadata": {"name": "statefulsets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    });
    let custom = json!({
        "apiVersion": "example.com/v1", "kind": "StatefulSet", "metadata": {"name": "a"},
    });
    let map = json!({"metadata": {"name": "a"}});
    for (path, body) in [
        ("/api/v1/namespaces/default/configmaps", map.clone()),
        ("/api/v1/namespaces", map),
        (
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            definition,
        ),
        (
            "/apis/example.com/v1/namespaces/default/statefulsets",
            custom,
        ),
    ] {
        let mut made = server.post(path, &body).await;
        for _ in 0..500 {
            if made.code != 404 {
                break;
            }
            // A definition is served a moment after it is there.
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            made = server.post(path, &body).await;
        }
        assert_eq!((made.code, warned(&made)), (201, vec![]), "{}", made.text());
    }
}

#[tokio::test]
async fn a_server_on_its_own_says_nothing() {
    let server = Server::new();
    let made = server.post(SETS, &set("a")).await;
    assert_eq!((made.code, warned(&made)), (201, vec![]));
}
