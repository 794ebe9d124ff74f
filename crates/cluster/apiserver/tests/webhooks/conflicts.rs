//! Writes while a webhook is slow: they do not delay other writes, and are repeated if the object
//! has changed meanwhile.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::Semaphore;

use crate::{
    MERGE,
    common::{CONFIG_MAPS, Server},
    configure,
    hook::{Hook, review},
    with,
};

/// A server with a slow webhook for ConfigMaps with the label `slow`, which waits for permits.
async fn slow() -> (Arc<Server>, Hook, Arc<Semaphore>) {
    let (server, hook) = (Server::new(), Hook::start().await);
    let webhook = hook.webhook("/slow", &["UPDATE"], &["configmaps"]);
    let slow = json!({"objectSelector": {"matchLabels": {"slow": "yes"}}, "timeoutSeconds": 30});
    configure(&server, "Validating", "a", &[with(webhook, slow)]).await;
    let permits = Arc::new(Semaphore::new(0));
    let waiting = permits.clone();
    hook.on_async("/slow", move |request| {
        let waiting = waiting.clone();
        Box::pin(async move {
            waiting.acquire().await.unwrap().forget();
            review(&request, json!({"allowed": true}))
        })
    });
    server.config_map("a").await;
    (Arc::new(server), hook, permits)
}

/// Waits until the webhook has been called this often.
async fn called(hook: &Hook, times: usize) {
    while hook.calls().len() < times {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_patch_is_repeated_on_the_changed_object() {
    let (server, hook, permits) = slow().await;
    let path = format!("{CONFIG_MAPS}/a");
    let (patching, of_patch) = (server.clone(), path.clone());
    let patch = tokio::spawn(async move {
        let body = r#"{"metadata": {"labels": {"slow": "yes"}}}"#;
        patching.patch(&of_patch, MERGE, body).await
    });
    called(&hook, 1).await;
    // Other writes of this object and of other objects do not wait.
    let other = server
        .patch(&path, MERGE, r#"{"data": {"other": "1"}}"#)
        .await;
    assert_eq!(other.code, 200, "{}", other.text());
    server.config_map("b").await;
    permits.add_permits(1);
    called(&hook, 2).await;
    permits.add_permits(1);
    let patched = patch.await.unwrap();
    assert_eq!(patched.code, 200, "{}", patched.text());
    assert_eq!(patched.json()["data"]["other"], "1");
    assert_eq!(patched.json()["metadata"]["labels"]["slow"], "yes");
    let calls = hook.calls();
    assert_eq!(calls[0].request["oldObject"]["data"]["other"], json!(null));
    assert_eq!(calls[1].request["oldObject"]["data"]["other"], "1");
    assert_eq!(calls.len(), 2);
}

#[tokio::test]
async fn an_update_of_a_version_fails_if_the_object_has_changed() {
    let (server, hook, permits) = slow().await;
    let path = format!("{CONFIG_MAPS}/a");
    let mut object = server.get(&path).await.json();
    object["metadata"]["labels"] = json!({"slow": "yes"});
    let (updating, of_update) = (server.clone(), path.clone());
    let update = tokio::spawn(async move { updating.put(&of_update, &object).await });
    called(&hook, 1).await;
    let other = server
        .patch(&path, MERGE, r#"{"data": {"other": "1"}}"#)
        .await;
    assert_eq!(other.code, 200, "{}", other.text());
    permits.add_permits(1);
    let updated = update.await.unwrap();
    assert_eq!(updated.code, 409, "{}", updated.text());
    assert_eq!(updated.json()["reason"], "Conflict");
}

#[tokio::test]
async fn an_object_deleted_meanwhile_is_not_found() {
    let (server, hook, permits) = slow().await;
    let path = format!("{CONFIG_MAPS}/a");
    let (patching, of_patch) = (server.clone(), path.clone());
    let patch = tokio::spawn(async move {
        let body = r#"{"metadata": {"labels": {"slow": "yes"}}}"#;
        patching.patch(&of_patch, MERGE, body).await
    });
    called(&hook, 1).await;
    assert_eq!(server.call("DELETE", &path, &[], "").await.code, 200);
    permits.add_permits(1);
    assert_eq!(patch.await.unwrap().code, 404);
}
