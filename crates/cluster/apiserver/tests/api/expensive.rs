//! Requests that take long: the server's own checks are answered before they end.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::json;
use tokio::task::JoinSet;

use crate::common::{CONFIG_MAPS, PODS, Server};

/// Requests of a kind that are in progress at the same time.
const REQUESTS: usize = 16;

fn list(item: &str, count: usize) -> String {
    format!("[{}]", vec![item; count].join(","))
}

fn review(kind: &str, spec: &str) -> String {
    format!(
        "{{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"{kind}\",\"spec\":{{{spec}}}}}"
    )
}

/// Requests that take long: a name, the method, the path, the media type, and the body.
fn requests() -> Vec<(&'static str, &'static str, String, &'static str, String)> {
    const JSON: &str = "application/json";
    let reviews = "/apis/authorization.k8s.io/v1";
    let requirement = r#"{"key":"a","operator":"In","values":["b"]}"#;
    let selector = |count| {
        format!(
            "\"resourceAttributes\":{{\"namespace\":\"default\",\"verb\":\"list\",\"resource\":\"pods\",\"labelSelector\":{{\"requirements\":{}}}}}",
            list(requirement, count)
        )
    };
    let pod = |containers: String| {
        format!("{{\"metadata\":{{\"name\":\"p\"}},\"spec\":{{\"containers\":{containers}}}}}")
    };
    let moves = list(r#"{"op":"move","from":"/data/k0","path":"/data/k0"}"#, 9999);
    vec![
        (
            "valid review",
            "POST",
            format!("{reviews}/selfsubjectaccessreviews"),
            JSON,
            review("SelfSubjectAccessReview", &selector(50_000)),
        ),
        (
            "invalid review",
            "POST",
            format!("{reviews}/subjectaccessreviews"),
            JSON,
            review(
                "SubjectAccessReview",
                &format!(
                    "\"user\":\"a\",\"resourceAttributes\":{{\"fieldSelector\":{{\"requirements\":{}}}}}",
                    list("{}", 700_000)
                ),
            ),
        ),
        (
            "invalid pod",
            "POST",
            PODS.to_owned(),
            JSON,
            pod(list("{}", 40_000)),
        ),
        (
            "nested lists",
            "POST",
            CONFIG_MAPS.to_owned(),
            JSON,
            format!(
                "{{\"metadata\":{{\"name\":\"c\"}},\"data\":{}}}",
                list("[[]]", 200_000)
            ),
        ),
        (
            "YAML",
            "POST",
            CONFIG_MAPS.to_owned(),
            "application/yaml",
            format!("metadata: {{name: c}}\ndata: {}", list("a", 300_000)),
        ),
        (
            "JSON patch",
            "PATCH",
            format!("{CONFIG_MAPS}/large"),
            "application/json-patch+json",
            moves,
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readyz_is_answered_before_expensive_requests_end() {
    for (what, method, path, media_type, body) in requests() {
        let server = Arc::new(Server::new());
        let data: serde_json::Map<_, _> = (0..20_000)
            .map(|index| (format!("k{index}"), json!("value")))
            .collect();
        let large = json!({"metadata": {"name": "large"}, "data": data});
        assert_eq!(server.post(CONFIG_MAPS, &large).await.code, 201);
        assert!(body.len() < 3 << 20, "{what}: {}", body.len());
        let (begun, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut running = JoinSet::new();
        for _ in 0..REQUESTS {
            let (server, begun, ended) = (server.clone(), begun.clone(), ended.clone());
            let (path, body) = (path.clone(), body.clone());
            running.spawn(async move {
                begun.fetch_add(1, Ordering::SeqCst);
                let headers = [("content-type", media_type)];
                let code = server.call(method, &path, &headers, body).await.code;
                ended.fetch_add(1, Ordering::SeqCst);
                code
            });
        }
        while begun.load(Ordering::SeqCst) < REQUESTS {
            tokio::task::yield_now().await;
        }
        // On the threads that serve requests: the check waits for threads that the requests hold.
        let check = tokio::spawn(async move { server.get("/readyz").await.code });
        assert_eq!(check.await.unwrap(), 200, "{what}");
        let before = ended.load(Ordering::SeqCst);
        let codes = running.join_all().await;
        println!(
            "{what}: {before} of {REQUESTS} ended before; {:?}",
            codes[0]
        );
        assert!(
            before < REQUESTS / 2,
            "{what}: {before} ended before /readyz; {codes:?}"
        );
    }
}
