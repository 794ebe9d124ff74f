//! Tokens of the pods' service accounts.

use super::{helpers::*, *};

fn access() -> ApiAccess {
    ApiAccess {
        host: "127.0.0.1".to_owned(),
        port: 1,
        ca_pem: "CERTIFICATE".to_owned(),
    }
}

/// The default path that every client in a cluster uses.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The TokenReview status of a token.
async fn review(stage: &Stage, token: &str, audience: Option<&str>) -> Value {
    let audiences: Vec<_> = audience.into_iter().collect();
    let request = json!({"spec": {"token": token, "audiences": audiences}});
    let path = "/apis/authentication.k8s.io/v1/tokenreviews";
    let answer = stage.cluster.proxy().post(path, &[], &request).await;
    answer.unwrap()["status"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_pod_has_its_own_token() {
    let key = TokenKey::ephemeral().unwrap();
    let stage = Stage::with(Some(key), Some(access())).await;
    if !has_namespaces(&stage).await {
        return;
    }
    let user = if is_root() { UNPRIVILEGED } else { 1234 };
    let mut main = shell(&format!(
        "echo token $(cat {ACCOUNT}/token); echo mode $(stat -Lc '%a %u' {ACCOUNT}/token); \
         echo namespace $(cat {ACCOUNT}/namespace); echo ca $(cat {ACCOUNT}/ca.crt); \
         echo vault $(cat /longshore-test/vault); echo vault-mode $(stat -Lc %a /longshore-test/vault);",
    ));
    main["volumeMounts"] = json!([{"name": "t", "mountPath": "/longshore-test"}]);
    let source = json!({"path": "vault", "audience": "vault", "expirationSeconds": 600});
    let spec = json!({
        "restartPolicy": "Never",
        "securityContext": {"runAsUser": user, "runAsGroup": user},
        "containers": [main],
        "volumes": [{"name": "t", "projected": {"sources": [{"serviceAccountToken": source}]}}],
    });
    stage.run("tokens", spec).await;
    let pod = stage.ended("tokens").await;
    let facts = split(&stage.log(&pod).await);
    check(
        &facts,
        &[
            ("mode", &format!("600 {user}")),
            ("vault-mode", "600"),
            ("namespace", "default"),
            ("ca", "CERTIFICATE"),
        ],
    );
    let uid = &pod["metadata"]["uid"];
    let status = review(&stage, &facts["token"], None).await;
    assert_eq!(status["authenticated"], true, "{status}");
    let reviewed = &status["user"];
    assert_eq!(
        reviewed["username"],
        "system:serviceaccount:default:default"
    );
    let bound = &reviewed["extra"]["authentication.kubernetes.io/pod-uid"];
    assert_eq!(*bound, json!([uid]));
    let status = review(&stage, &facts["vault"], Some("vault")).await;
    assert_eq!(status["authenticated"], true, "{status}");
    let status = review(&stage, &facts["vault"], None).await;
    assert_ne!(status["authenticated"], true, "{status}");

    // Pods that opt out have no token, through the pod or its service account.
    let look = format!("test -e {ACCOUNT} && echo files yes || echo files no");
    let mut spec = run_once(&look);
    spec["automountServiceAccountToken"] = json!(false);
    check(&facts_of(&stage, "none", spec).await, &[("files", "no")]);
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "shy"}, "automountServiceAccountToken": false});
    let accounts = stage
        .cluster
        .serviceaccounts()
        .in_namespace("default")
        .unwrap();
    accounts.create(&account).await.unwrap();
    let mut spec = run_once(&look);
    spec["serviceAccountName"] = json!("shy");
    check(
        &facts_of(&stage, "shy", spec.clone()).await,
        &[("files", "no")],
    );
    spec["automountServiceAccountToken"] = json!(true);
    check(
        &facts_of(&stage, "bold", spec.clone()).await,
        &[("files", "yes")],
    );

    // A service account that was deleted has no token, and no placeholder for it.
    let account = json!({"metadata": {"name": "missing"}});
    accounts.create(&account).await.unwrap();
    spec["serviceAccountName"] = json!("missing");
    let pod = json!({"metadata": {"name": "missing"}, "spec": spec});
    let pods = stage.cluster.pods().in_namespace("default").unwrap();
    pods.create(&pod).await.unwrap();
    let options = longshore_client::DeleteOptions::default();
    accounts.delete("missing", &options).await.unwrap();
    pods.bind("missing", "here").await.unwrap();
    let message = stage.event("missing", "FailedMount").await;
    assert!(message.contains("\"missing\" not found"), "{message}");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_tokens_is_reported_by_an_event() {
    let stage = Stage::with(None, Some(access())).await;
    if !has_namespaces(&stage).await {
        return;
    }
    let look = format!("echo files $(ls {ACCOUNT})");
    let found = facts_of(&stage, "bare", run_once(&look)).await;
    check(&found, &[("files", "ca.crt namespace")]);
    let message = stage.event("bare", "NoServiceAccountToken").await;
    assert!(message.contains("does not issue tokens"), "{message}");
    stage.stop().await;
}
