//! Points 1 and 49: the connection and authentication methods of a kubeconfig, and
//! expired credentials.

use std::{os::unix::fs::PermissionsExt, path::PathBuf};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use futures::future::{join_all, try_join_all};
use longshore::Cluster;
use longshore_conformance::{ApiTest, Server};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufStream},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

/// A server with token authentication, and the contents of its kubeconfig.
struct AuthServer {
    server: Server,
    cluster: Value,
    token: String,
}

impl AuthServer {
    /// Returns `None` on servers whose token the test cannot read.
    async fn start() -> Option<Self> {
        if ApiTest::start()
            .await
            .skip_on_real("a static token that the tests can read")
        {
            return None;
        }
        let server = Server::bare().await;
        let text = std::fs::read_to_string(server.kubeconfig()).unwrap();
        let config: Value = serde_yaml_ng::from_str(&text).unwrap();
        Some(Self {
            server,
            cluster: config["clusters"][0]["cluster"].clone(),
            token: config["users"][0]["user"]["token"]
                .as_str()
                .unwrap()
                .to_owned(),
        })
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.server.folder().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.server.folder().join(name)).unwrap_or_default()
    }

    /// A client whose kubeconfig has these additional cluster fields and this user.
    async fn client(&self, more: Value, user: &Value) -> longshore::client::Result<Cluster> {
        let mut cluster = self.cluster.clone();
        for (key, value) in more.as_object().unwrap() {
            cluster[key] = value.clone();
        }
        let path = self.write("config", &kubeconfig(&cluster, user));
        Cluster::from_kubeconfig(Some(&path), None).await
    }

    async fn count_namespaces(&self, more: Value) -> longshore::client::Result<usize> {
        let client = self.client(more, &json!({"token": self.token})).await?;
        Ok(client.namespaces().list().await?.items.len())
    }

    /// A user with a credential plugin that returns the token in the file `token`. The
    /// plugin counts its runs and saves its input in the file `info`.
    fn credential_plugin(&self) -> Value {
        let folder = self.server.folder();
        let script = r#"#!/bin/sh
cd "$1" && echo run >> runs && printf '%s' "$KUBERNETES_EXEC_INFO" > info && echo "noise: $(cat token)" >&2
test "$MODE" = fail && exit 3
test "$MODE" = expire && expires='"expirationTimestamp": "2020-01-01T00:00:00Z", '
printf '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {%s"token": "%s"}}' "$expires" "$(cat token)"
"#;
        let program = self.write("program", script);
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
        json!({"exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": program,
            "args": [folder],
            "env": [{"name": "MODE", "value": "work"}],
            "interactiveMode": "Never",
            "provideClusterInfo": true,
        }})
    }

    fn runs(&self) -> usize {
        self.read("runs").lines().count()
    }
}

fn kubeconfig(cluster: &Value, user: &Value) -> String {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": cluster}],
        "users": [{"name": "it", "user": user}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    })
    .to_string()
}

#[tokio::test]
async fn point_01_a_credential_plugin_provides_the_token() {
    let Some(auth) = AuthServer::start().await else {
        return;
    };
    auth.write("token", &auth.token);
    let client = auth
        .client(json!({}), &auth.credential_plugin())
        .await
        .unwrap();
    assert!(!client.namespaces().list().await.unwrap().items.is_empty());
    assert_eq!(auth.runs(), 1);
    let info: Value = serde_json::from_str(&auth.read("info")).unwrap();
    assert_eq!(info["kind"], "ExecCredential");
    let cluster = &info["spec"]["cluster"];
    assert_eq!(cluster["server"], auth.cluster["server"]);
    let authority = "certificate-authority-data";
    assert_eq!(cluster[authority], auth.cluster[authority]);
    auth.server.stop().await;
}

#[tokio::test]
async fn point_01_a_credential_plugin_failure_is_reported_without_its_output() {
    let Some(auth) = AuthServer::start().await else {
        return;
    };
    auth.write("token", "s3cret");
    let mut user = auth.credential_plugin();
    user["exec"]["env"][0]["value"] = "fail".into();
    let error = auth.client(json!({}), &user).await.unwrap_err().to_string();
    assert!(
        error.contains("/program\" failed with exit status: 3: run it manually"),
        "{error}"
    );
    assert!(!error.contains("s3cret"), "{error}");

    user["exec"]["command"] = "no-such-program".into();
    user["exec"]["installHint"] = "it is in the package credentials".into();
    let error = auth.client(json!({}), &user).await.unwrap_err().to_string();
    let expected = "the credential program \"no-such-program\" cannot be started: \
                No such file or directory (os error 2); it is in the package credentials";
    assert!(error.ends_with(expected), "{error}");

    // The error does not contain the standard output, either.
    let printed = json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "echo",
        "args": ["s3cret"],
        "interactiveMode": "Never",
    }});
    let error = auth.client(json!({}), &printed).await.unwrap_err();
    let error = error.to_string();
    assert!(
        error.ends_with("\"echo\" printed something other than an ExecCredential: run it manually"),
        "{error}"
    );
    auth.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn point_49_concurrent_unauthorized_requests_refresh_credentials_once() {
    let Some(auth) = AuthServer::start().await else {
        return;
    };
    auth.write("token", "stale");
    let client = auth
        .client(json!({}), &auth.credential_plugin())
        .await
        .unwrap();
    assert_eq!(auth.runs(), 1);
    // While the plugin returns the same token, the error is returned, without the token.
    let error = client.namespaces().list().await.unwrap_err();
    assert!(error.is_unauthorized(), "{error}");
    let shown = format!("{error} {error:?} {client:?}");
    assert!(!shown.contains("stale"), "{shown}");
    let many = || {
        (0..40).map(|_| {
            let client = client.clone();
            async move { client.namespaces().list().await }
        })
    };
    // Each request gets a response, although the server then ends the connection.
    for result in join_all(many()).await {
        let error = result.unwrap_err();
        assert!(error.is_unauthorized(), "{error}");
    }
    let before = auth.runs();

    auth.write("token", &auth.token);
    try_join_all(many()).await.unwrap();
    assert_eq!(auth.runs(), before + 1);
    let shown = format!("{client:?}");
    assert!(!shown.contains(&auth.token), "{shown}");
    auth.server.stop().await;
}

/// This also holds for the inner client.
#[tokio::test]
async fn point_49_expired_credentials_are_refreshed() {
    let Some(auth) = AuthServer::start().await else {
        return;
    };
    let mut user = auth.credential_plugin();
    // The first token has already expired.
    user["exec"]["env"][0]["value"] = "expire".into();
    auth.write("token", &auth.token);
    let client = auth.client(json!({}), &user).await.unwrap();
    for request in 2..4 {
        client.namespaces().list().await.unwrap();
        assert_eq!(auth.runs(), request);
    }
    let inner = client.kube_client();
    inner.apiserver_version().await.unwrap();
    assert_eq!(auth.runs(), 4);
    auth.server.stop().await;
}

#[tokio::test]
async fn point_49_a_token_file_is_reloaded() {
    let Some(auth) = AuthServer::start().await else {
        return;
    };
    let file = auth.write("token", "stale");
    let user = json!({"tokenFile": file});
    let client = auth.client(json!({}), &user).await.unwrap();
    assert!(
        client
            .namespaces()
            .list()
            .await
            .unwrap_err()
            .is_unauthorized()
    );
    auth.write("token", &auth.token);
    client.namespaces().list().await.unwrap();
    auth.server.stop().await;
}

#[tokio::test]
async fn point_01_certificates_are_verified() {
    let Some(auth) = AuthServer::start().await else {
        return;
    };
    assert!(
        auth.count_namespaces(json!({"tls-server-name": "localhost"}))
            .await
            .unwrap()
            > 0
    );
    let other = auth
        .count_namespaces(json!({"tls-server-name": "example.org"}))
        .await;
    let other = other.unwrap_err().to_string();
    assert!(
        other.starts_with("cannot reach the cluster at https://127.0.0.1:")
            && other.contains("certificate not valid for name \"example.org\""),
        "{other}"
    );
    // Without the certificate authority the server is not trusted.
    let unknown = auth
        .count_namespaces(json!({"certificate-authority-data": null}))
        .await
        .unwrap_err()
        .to_string();
    assert!(unknown.contains("certificate"), "{unknown}");
    let unchecked = json!({"certificate-authority-data": null, "insecure-skip-tls-verify": true});
    assert!(auth.count_namespaces(unchecked).await.unwrap() > 0);
    let broken = auth
        .count_namespaces(json!({"certificate-authority-data": "bm9uZQ=="}))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        broken.ends_with(
            "the certificate authority in the kubeconfig has no certificate: it must be PEM"
        ),
        "{broken}"
    );
    auth.server.stop().await;
}

/// The lines of a request's head.
async fn head(stream: &mut BufStream<TcpStream>) -> Vec<String> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        match line.trim_end() {
            "" => return lines,
            line => lines.push(line.to_owned()),
        }
    }
}

fn has_header(head: &[String], name: &str, value: &str) -> bool {
    head.iter()
        .filter_map(|line| line.split_once(": "))
        .any(|(key, found)| key.eq_ignore_ascii_case(name) && found == value)
}

/// A proxy that sends the head of each request to the receiver, and connects.
async fn proxy() -> (String, mpsc::UnboundedReceiver<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (sender, heads) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let sender = sender.clone();
            tokio::spawn(async move {
                let mut stream = BufStream::new(stream);
                let lines = head(&mut stream).await;
                let target = lines[0].split(' ').nth(1).unwrap().to_owned();
                sender.send(lines).unwrap();
                let mut upstream = TcpStream::connect(target).await.unwrap();
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                stream.flush().await.unwrap();
                // Either side may close the connection first.
                let _ = tokio::io::copy_bidirectional(&mut stream, &mut upstream).await;
            });
        }
    });
    (address, heads)
}

#[tokio::test]
async fn point_01_requests_use_the_proxy_of_the_kubeconfig() {
    let Some(auth) = AuthServer::start().await else {
        return;
    };
    let (address, mut heads) = proxy().await;
    let url = format!("http://ann:s3cret@{address}");
    assert!(
        auth.count_namespaces(json!({"proxy-url": url}))
            .await
            .unwrap()
            > 0
    );
    let head = heads.recv().await.unwrap();
    let server = auth.cluster["server"].as_str().unwrap();
    let authority = server.strip_prefix("https://").unwrap();
    assert_eq!(head[0], format!("CONNECT {authority} HTTP/1.1"));
    let credentials = has_header(&head, "proxy-authorization", "Basic YW5uOnMzY3JldA==");
    assert!(credentials, "{head:?}");

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let dead = listener.local_addr().unwrap();
    drop(listener);
    for scheme in ["http", "socks5"] {
        let url = format!("{scheme}://ann:s3cret@{dead}");
        let error = auth
            .count_namespaces(json!({"proxy-url": url}))
            .await
            .unwrap_err();
        let error = error.to_string();
        assert!(
            error.starts_with("cannot reach the cluster at https://127.0.0.1:"),
            "{error}"
        );
        assert!(!error.contains("s3cret"), "{error}");
    }
    let odd = auth
        .count_namespaces(json!({"proxy-url": "ftp://ann:s3cret@there"}))
        .await;
    let odd = odd.unwrap_err().to_string();
    let expected =
        "the scheme of the proxy ftp://there is not supported: use http, https or socks5";
    assert!(odd.ends_with(expected), "{odd}");
    auth.server.stop().await;
}

/// A server without TLS that returns an empty list of namespaces if the token is correct.
async fn plain_server(token: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut stream = BufStream::new(stream);
            let lines = head(&mut stream).await;
            let known = has_header(&lines, "authorization", &format!("Bearer {token}"));
            let (line, body) = if known {
                let list = json!({
                    "kind": "NamespaceList", "apiVersion": "v1",
                    "metadata": {"resourceVersion": "1"}, "items": [],
                });
                ("200 OK", list.to_string())
            } else {
                ("401 Unauthorized", String::new())
            };
            let length = body.len();
            let response = format!(
                "HTTP/1.1 {line}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
            stream.write_all(response.as_bytes()).await.unwrap();
            stream.flush().await.unwrap();
        }
    });
    format!("http://{address}")
}

#[tokio::test]
async fn point_01_oidc_tokens_are_used_until_they_expire() {
    let Some(auth) = AuthServer::start().await else {
        return;
    };
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let token = |expires: u64| {
        let head = part(json!({"alg": "none"}));
        format!("{head}.{}.c2ln", part(json!({"exp": expires})))
    };
    let fresh = token(32_503_680_000);
    let server = plain_server(fresh.clone()).await;
    let more = json!({"server": server, "certificate-authority-data": null});
    let user =
        |token: &str| json!({"auth-provider": {"name": "oidc", "config": {"id-token": token}}});
    let client = auth.client(more.clone(), &user(&fresh)).await.unwrap();
    assert!(client.namespaces().list().await.unwrap().items.is_empty());

    let stale = token(1);
    let outcome = match auth.client(more, &user(&stale)).await {
        Ok(client) => client.namespaces().list().await.map(|_| ()),
        Err(error) => Err(error),
    };
    let error = outcome.unwrap_err().to_string();
    assert!(error.contains("OIDC") && !error.contains(&stale), "{error}");
    auth.server.stop().await;
}
