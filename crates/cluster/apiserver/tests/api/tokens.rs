//! Service account tokens: the response to a TokenRequest, the user that a token authenticates, and
//! the end of its validity.

use crate::common::{Answer, Server};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

const ACCOUNT: &str = "/api/v1/namespaces/default/serviceaccounts/default";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

async fn request(server: &Server, spec: Value) -> Answer {
    let body = json!({"spec": spec});
    server.post(&format!("{ACCOUNT}/token"), &body).await
}

async fn token(server: &Server, spec: Value) -> String {
    let answer = request(server, spec).await;
    assert_eq!(answer.code, 201, "{}", answer.text());
    answer.json()["status"]["token"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn claims(token: &str) -> Value {
    let claims = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap()
}

/// The TokenReview status of a token.
async fn review(server: &Server, token: &str, audiences: Value) -> Value {
    let spec = json!({"token": token, "audiences": audiences});
    let answer = server.post(REVIEWS, &json!({"spec": spec})).await;
    assert_eq!(answer.code, 201, "{}", answer.text());
    answer.json()["status"].clone()
}

fn is_valid(status: &Value) -> bool {
    status["authenticated"] == true
}

async fn delete(server: &Server, path: &str) {
    let now = r#"{"gracePeriodSeconds": 0}"#;
    let answer = server.call("DELETE", path, &[], now).await;
    assert_eq!(answer.code, 200, "{}", answer.text());
}

#[tokio::test]
async fn a_token_names_its_service_account() {
    let server = Server::new();
    let uid = server.get(ACCOUNT).await.json()["metadata"]["uid"].clone();
    let answer = request(&server, json!({})).await;
    assert_eq!(answer.code, 201, "{}", answer.text());
    let text = answer.text();
    let start = r#"{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","metadata":"#;
    assert!(text.starts_with(start), "{text}");
    let made = answer.json();
    assert_eq!(made["spec"]["expirationSeconds"], 3600);
    assert_eq!(made["spec"]["audiences"], json!([ISSUER]));
    assert_eq!(made["metadata"]["name"], "default");
    let status = &made["status"];
    assert_eq!(status["expirationTimestamp"], "1971-02-03T05:05:06Z");
    let claims = claims(status["token"].as_str().unwrap());
    let now = 34_401_906;
    for (name, expected) in [
        ("iss", json!(ISSUER)),
        ("aud", json!([ISSUER])),
        ("iat", json!(now)),
        ("nbf", json!(now)),
        ("exp", json!(now + 3600)),
        ("sub", json!("system:serviceaccount:default:default")),
    ] {
        assert_eq!(claims[name], expected, "{name}");
    }
    assert_eq!(claims["jti"].as_str().unwrap().len(), 36);
    let account = json!({"name": "default", "uid": uid});
    let named = json!({"namespace": "default", "serviceaccount": account});
    assert_eq!(claims["kubernetes.io"], named);
}

#[tokio::test]
async fn a_token_is_bound_to_a_pod_and_its_node() {
    let server = Server::new();
    let node = json!({"metadata": {"name": "n"}});
    let node = server.post("/api/v1/nodes", &node).await.json();
    let pod = json!({
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}], "nodeName": "n"},
    });
    let pods = "/api/v1/namespaces/default/pods";
    let pod = server.post(pods, &pod).await.json();
    let uid = &pod["metadata"]["uid"];
    let bound = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid});
    let token = token(&server, json!({"boundObjectRef": bound})).await;
    let named = &claims(&token)["kubernetes.io"];
    assert_eq!(named["pod"], json!({"name": "p", "uid": uid}));
    let uid_of_node = &node["metadata"]["uid"];
    assert_eq!(named["node"], json!({"name": "n", "uid": uid_of_node}));

    let status = review(&server, &token, json!([])).await;
    assert_eq!(status["audiences"], json!([ISSUER]));
    let user = &status["user"];
    assert_eq!(user["username"], "system:serviceaccount:default:default");
    let groups = [
        "system:serviceaccounts",
        "system:serviceaccounts:default",
        "system:authenticated",
    ];
    assert_eq!(user["groups"], json!(groups));
    let extra = &user["extra"];
    assert_eq!(extra["authentication.kubernetes.io/pod-name"], json!(["p"]));
    assert_eq!(extra["authentication.kubernetes.io/pod-uid"], json!([uid]));
    assert_eq!(
        extra["authentication.kubernetes.io/node-name"],
        json!(["n"])
    );

    // A pod of the same name is another pod.
    delete(&server, &format!("{pods}/p")).await;
    let status = review(&server, &token, json!([])).await;
    assert!(!is_valid(&status), "{status}");
    server.pod("p", &["c"]).await;
    let status = review(&server, &token, json!([])).await;
    assert!(!is_valid(&status), "{status}");
    assert!(
        status["error"].as_str().unwrap().contains("UID"),
        "{status}"
    );
}

#[tokio::test]
async fn a_token_expires_with_its_lifetime_and_its_account() {
    let server = Server::new();
    let short = token(&server, json!({"expirationSeconds": 600})).await;
    let long = token(&server, json!({"expirationSeconds": 4_294_967_296_i64})).await;
    assert!(is_valid(&review(&server, &short, json!(null)).await));
    server.clock.advance(599);
    assert!(is_valid(&review(&server, &short, json!(null)).await));
    server.clock.advance(1);
    let status = review(&server, &short, json!(null)).await;
    assert!(!is_valid(&status), "{status}");
    assert!(
        status["error"].as_str().unwrap().contains("expired"),
        "{status}"
    );
    assert!(is_valid(&review(&server, &long, json!(null)).await));
    delete(&server, ACCOUNT).await;
    assert!(!is_valid(&review(&server, &long, json!(null)).await));
    let account = json!({"metadata": {"name": "default"}});
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    assert_eq!(server.post(accounts, &account).await.code, 201);
    assert!(!is_valid(&review(&server, &long, json!(null)).await));
}

#[tokio::test]
async fn a_token_is_for_its_audiences() {
    let server = Server::new();
    let foreign = token(&server, json!({"audiences": ["vault", "x"]})).await;
    assert!(!is_valid(&review(&server, &foreign, json!([])).await));
    let status = review(&server, &foreign, json!(["vault", "y"])).await;
    assert!(is_valid(&status), "{status}");
    assert_eq!(status["audiences"], json!(["vault"]));
    let own = token(&server, json!({"audiences": []})).await;
    assert!(is_valid(&review(&server, &own, json!([])).await));
    for wrong in ["x", "a.b.c", &own[1..]] {
        let status = review(&server, wrong, json!([])).await;
        assert!(!is_valid(&status), "{wrong}: {status}");
    }
    let empty = server.post(REVIEWS, &json!({"spec": {}})).await;
    assert_eq!(empty.code, 400);
}

#[tokio::test]
async fn invalid_token_requests() {
    let server = Server::new();
    server.pod("p", &["c"]).await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let other = json!({"metadata": {"name": "other"}});
    assert_eq!(server.post(accounts, &other).await.code, 201);
    let bound = |version: &str, kind: &str, name: &str, uid: &str| {
        json!({"spec": {"boundObjectRef":
            {"apiVersion": version, "kind": kind, "name": name, "uid": uid}}})
    };
    let seconds = |seconds: i64| json!({"spec": {"expirationSeconds": seconds}});
    for (path, body, code, part) in [
        (
            ACCOUNT,
            seconds(599),
            422,
            "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes",
        ),
        (ACCOUNT, seconds(-1), 422, "less than 10 minutes"),
        (ACCOUNT, seconds(0), 422, "less than 10 minutes"),
        (
            ACCOUNT,
            seconds((1 << 32) + 1),
            422,
            "larger than 2^32 seconds",
        ),
        (ACCOUNT, seconds(i64::MAX), 422, "larger than 2^32 seconds"),
        (
            ACCOUNT,
            json!({"spec": {"expirationSeconds": "x"}}),
            400,
            "cannot be handled",
        ),
        (
            ACCOUNT,
            json!({"kind": "Pod", "apiVersion": "v1"}),
            400,
            "cannot be handled",
        ),
        (
            ACCOUNT,
            json!({"metadata": {"name": "x"}}),
            422,
            "metadata.name: Invalid value: \"x\": must match the service account name if specified",
        ),
        (
            ACCOUNT,
            json!({"metadata": {"namespace": "x"}}),
            422,
            "must match the service account namespace",
        ),
        (
            ACCOUNT,
            bound("v1", "Pod", "missing", ""),
            404,
            "pods \"missing\" not found",
        ),
        (
            ACCOUNT,
            bound("v1", "Pod", "p", "wrong"),
            409,
            "the UID in the bound object reference (wrong) does not match the UID in record",
        ),
        (
            ACCOUNT,
            bound("v1", "ConfigMap", "p", ""),
            400,
            "cannot bind token to object of type /v1, Kind=ConfigMap",
        ),
        (
            ACCOUNT,
            bound("v1", "Node", "missing", ""),
            404,
            "nodes \"missing\" not found",
        ),
        (
            ACCOUNT,
            bound("v1", "Secret", "missing", ""),
            404,
            "secrets \"missing\" not found",
        ),
        (
            "/api/v1/namespaces/default/serviceaccounts/other",
            bound("v1", "Pod", "p", ""),
            400,
            "cannot bind token for serviceaccount \"other\" to pod running with different serviceaccount name.",
        ),
        (
            "/api/v1/namespaces/default/serviceaccounts/missing",
            json!({}),
            404,
            "serviceaccounts \"missing\" not found",
        ),
    ] {
        let answer = server.post(&format!("{path}/token"), &body).await;
        assert_eq!(answer.code, code, "{body}: {}", answer.text());
        assert!(answer.message().contains(part), "{body}: {}", answer.text());
    }
    assert_eq!(server.get(&format!("{ACCOUNT}/token")).await.code, 405);
}

#[tokio::test]
async fn a_token_authenticates_until_its_pod_is_deleted() {
    let mut running = crate::network::start().await;
    let server = Server::over(running.api.clone(), running.engine.clone());
    server.pod("p", &["c"]).await;
    let bound = json!({"apiVersion": "v1", "kind": "Pod", "name": "p"});
    let own = token(&server, json!({"boundObjectRef": bound})).await;
    let foreign = token(&server, json!({"audiences": ["vault"]})).await;
    let half = &own[..own.len() - 1];
    let code = async |token: &str| {
        // All authenticated users may read it.
        let answer = running.get(b"h2", "localhost", "/apis", token).await;
        answer.status().as_u16()
    };
    assert_eq!(code(&own).await, 200);
    assert_eq!(code(&foreign).await, 401);
    assert_eq!(code(half).await, 401);
    assert_eq!(code("a.b.c").await, 401);
    delete(&server, "/api/v1/namespaces/default/pods/p").await;
    assert_eq!(code(&own).await, 401);
    running.end().await;
}

#[tokio::test]
async fn tokens_can_be_verified_with_the_published_keys() {
    let server = Server::new();
    let about = server.get("/.well-known/openid-configuration").await;
    assert_eq!(about.header("content-type"), "application/json");
    let about = about.json();
    assert_eq!(about["issuer"], ISSUER);
    assert_eq!(about["jwks_uri"], "https://localhost/openid/v1/jwks");
    let keys = server.get("/openid/v1/jwks").await;
    assert_eq!(keys.header("content-type"), "application/jwk-set+json");
    let key = keys.json()["keys"][0].clone();
    let token = token(&server, json!({})).await;
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let header = URL_SAFE_NO_PAD.decode(signed.split('.').next().unwrap());
    let header: Value = serde_json::from_slice(&header.unwrap()).unwrap();
    assert_eq!(header["kid"], key["kid"]);
    assert_eq!(
        (&header["alg"], &key["crv"]),
        (&json!("ES256"), &json!("P-256"))
    );
    let mut point = vec![4];
    for name in ["x", "y"] {
        let part = URL_SAFE_NO_PAD.decode(key[name].as_str().unwrap());
        point.extend(part.unwrap());
    }
    let algorithm = &ring::signature::ECDSA_P256_SHA256_FIXED;
    ring::signature::UnparsedPublicKey::new(algorithm, point)
        .verify(
            signed.as_bytes(),
            &URL_SAFE_NO_PAD.decode(signature).unwrap(),
        )
        .unwrap();
}

#[tokio::test]
async fn access_reviews_of_other_users() {
    let server = Server::new();
    server.api.ensure_default_policy().await.unwrap();
    let group = "/apis/authorization.k8s.io/v1";
    let everywhere = format!("{group}/subjectaccessreviews");
    let local = format!("{group}/namespaces/default/localsubjectaccessreviews");
    let pods = json!({"verb": "get", "resource": "pods", "namespace": "default"});
    let path = |path: &str| json!({"verb": "get", "path": path});
    for (place, spec, allowed) in [
        (
            &everywhere,
            json!({"user": "ana", "resourceAttributes": pods}),
            false,
        ),
        (
            &everywhere,
            json!({"user": "ana", "groups": ["system:masters"], "resourceAttributes": pods}),
            true,
        ),
        (
            &everywhere,
            json!({"user": "system:anonymous", "resourceAttributes": pods}),
            false,
        ),
        (
            &everywhere,
            json!({"groups": ["system:unauthenticated"], "nonResourceAttributes": path("/livez")}),
            true,
        ),
        (
            &everywhere,
            json!({"groups": ["system:unauthenticated"], "nonResourceAttributes": path("/metrics")}),
            false,
        ),
        (
            &local,
            json!({"user": "ana", "resourceAttributes": pods}),
            false,
        ),
    ] {
        let answer = server.post(place, &json!({"spec": spec})).await;
        assert_eq!(answer.code, 201, "{}", answer.text());
        assert_eq!(answer.json()["status"]["allowed"], allowed, "{spec}");
    }
    for (place, spec, part) in [
        (
            &everywhere,
            json!({"user": "ana"}),
            "exactly one of nonResourceAttributes or resourceAttributes",
        ),
        (
            &everywhere,
            json!({"resourceAttributes": pods}),
            "at least one of user or group must be specified",
        ),
        (
            &everywhere,
            json!({"user": "a", "resourceAttributes": pods, "nonResourceAttributes": path("/")}),
            "cannot be specified in combination with resourceAttributes",
        ),
        (
            &local,
            json!({"user": "a", "nonResourceAttributes": path("/")}),
            "disallowed on this kind of request",
        ),
        (
            &local,
            json!({"user": "a", "resourceAttributes": {"namespace": "x"}}),
            "must match metadata.namespace",
        ),
    ] {
        let answer = server.post(place, &json!({"spec": spec})).await;
        assert_eq!(answer.code, 422, "{}", answer.text());
        assert!(answer.message().contains(part), "{}", answer.text());
    }
}
