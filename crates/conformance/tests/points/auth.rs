//! Points 1 and 49: the ways to a cluster that a kubeconfig may describe, and
//! credentials that no longer serve.

use std::{os::unix::fs::PermissionsExt, path::PathBuf};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use futures::future::try_join_all;
use longshore::Cluster;
use longshore_conformance::{ApiTest, Server};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufStream},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

/// A server that lets in who shows its token, and what its kubeconfig tells.
struct Door {
    server: Server,
    cluster: Value,
    token: String,
}

impl Door {
    /// `None` where a test cannot know the token.
    async fn find() -> Option<Self> {
        if ApiTest::start()
            .await
            .is_without("a token that the tests know")
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

    /// A client whose kubeconfig has these fields of the cluster more, and this
    /// user.
    async fn client(&self, more: Value, user: &Value) -> longshore::client::Result<Cluster> {
        let mut cluster = self.cluster.clone();
        for (key, value) in more.as_object().unwrap() {
            cluster[key] = value.clone();
        }
        let path = self.write("config", &kubeconfig(&cluster, user));
        Cluster::from_kubeconfig(Some(&path), None).await
    }

    async fn opens(&self, more: Value) -> longshore::client::Result<usize> {
        let client = self.client(more, &json!({"token": self.token})).await?;
        Ok(client.namespaces().list().await?.items.len())
    }

    /// A user whose token is told by a program: that of the file `token`. It
    /// counts its runs, and notes what it was told.
    fn program(&self) -> Value {
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
async fn point_01_a_program_tells_the_token() {
    let Some(door) = Door::find().await else {
        return;
    };
    door.write("token", &door.token);
    let client = door.client(json!({}), &door.program()).await.unwrap();
    assert!(!client.namespaces().list().await.unwrap().items.is_empty());
    assert_eq!(door.runs(), 1);
    let info: Value = serde_json::from_str(&door.read("info")).unwrap();
    assert_eq!(info["kind"], "ExecCredential");
    let told = &info["spec"]["cluster"];
    assert_eq!(told["server"], door.cluster["server"]);
    let authority = "certificate-authority-data";
    assert_eq!(told[authority], door.cluster[authority]);
    door.server.stop().await;
}

#[tokio::test]
async fn point_01_a_program_that_fails_is_told_without_its_words() {
    let Some(door) = Door::find().await else {
        return;
    };
    door.write("token", "s3cret");
    let mut user = door.program();
    user["exec"]["env"][0]["value"] = "fail".into();
    let error = door.client(json!({}), &user).await.unwrap_err().to_string();
    assert!(
        error.contains("/program\" failed with exit status: 3: run it by hand"),
        "{error}"
    );
    assert!(!error.contains("s3cret"), "{error}");

    user["exec"]["command"] = "no-such-program".into();
    user["exec"]["installHint"] = "it is in the package credentials".into();
    let error = door.client(json!({}), &user).await.unwrap_err().to_string();
    let told = "the credential program \"no-such-program\" cannot be started: \
                No such file or directory (os error 2); it is in the package credentials";
    assert!(error.ends_with(told), "{error}");

    // What it prints is none of an error's business either.
    let printed = json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "echo",
        "args": ["s3cret"],
        "interactiveMode": "Never",
    }});
    let error = door.client(json!({}), &printed).await.unwrap_err();
    let error = error.to_string();
    assert!(
        error.ends_with("\"echo\" wrote something else than an ExecCredential: run it by hand"),
        "{error}"
    );
    door.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn point_49_many_that_are_refused_ask_for_credentials_once() {
    let Some(door) = Door::find().await else {
        return;
    };
    door.write("token", "stale");
    let client = door.client(json!({}), &door.program()).await.unwrap();
    assert_eq!(door.runs(), 1);
    // As long as nothing better comes, the refusal is told, without the token.
    let error = client.namespaces().list().await.unwrap_err();
    assert!(error.is_unauthorized(), "{error}");
    let shown = format!("{error} {error:?} {client:?}");
    assert!(!shown.contains("stale"), "{shown}");
    let before = door.runs();

    door.write("token", &door.token);
    let all = (0..20).map(|_| {
        let client = client.clone();
        async move { client.namespaces().list().await }
    });
    try_join_all(all).await.unwrap();
    assert_eq!(door.runs(), before + 1);
    let shown = format!("{client:?}");
    assert!(!shown.contains(&door.token), "{shown}");
    door.server.stop().await;
}

/// Whoever took the inner client is no worse off.
#[tokio::test]
async fn point_49_credentials_that_expire_are_asked_for_again() {
    let Some(door) = Door::find().await else {
        return;
    };
    let mut user = door.program();
    // Its first answer expires at once.
    user["exec"]["env"][0]["value"] = "expire".into();
    door.write("token", &door.token);
    let client = door.client(json!({}), &user).await.unwrap();
    for request in 2..4 {
        client.namespaces().list().await.unwrap();
        assert_eq!(door.runs(), request);
    }
    let inner = client.kube_client();
    inner.apiserver_version().await.unwrap();
    assert_eq!(door.runs(), 4);
    door.server.stop().await;
}

#[tokio::test]
async fn point_49_a_file_with_the_token_is_read_again() {
    let Some(door) = Door::find().await else {
        return;
    };
    let file = door.write("token", "stale");
    let user = json!({"tokenFile": file});
    let client = door.client(json!({}), &user).await.unwrap();
    assert!(
        client
            .namespaces()
            .list()
            .await
            .unwrap_err()
            .is_unauthorized()
    );
    door.write("token", &door.token);
    client.namespaces().list().await.unwrap();
    door.server.stop().await;
}

#[tokio::test]
async fn point_01_certificates_and_their_names() {
    let Some(door) = Door::find().await else {
        return;
    };
    assert!(
        door.opens(json!({"tls-server-name": "localhost"}))
            .await
            .unwrap()
            > 0
    );
    let other = door.opens(json!({"tls-server-name": "example.org"})).await;
    let other = other.unwrap_err().to_string();
    assert!(
        other.starts_with("cannot reach the cluster at https://127.0.0.1:")
            && other.contains("certificate not valid for name \"example.org\""),
        "{other}"
    );
    // Without the authority nobody vouches for the server.
    let unknown = door
        .opens(json!({"certificate-authority-data": null}))
        .await
        .unwrap_err()
        .to_string();
    assert!(unknown.contains("certificate"), "{unknown}");
    let unchecked = json!({"certificate-authority-data": null, "insecure-skip-tls-verify": true});
    assert!(door.opens(unchecked).await.unwrap() > 0);
    let broken = door
        .opens(json!({"certificate-authority-data": "bm9uZQ=="}))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        broken.ends_with(
            "the certificate authority of the kubeconfig holds no certificate: it must be PEM"
        ),
        "{broken}"
    );
    door.server.stop().await;
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
        .any(|(key, told)| key.eq_ignore_ascii_case(name) && told == value)
}

/// A proxy that tells the head of each request, and connects.
async fn proxy() -> (String, mpsc::UnboundedReceiver<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (tell, told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let tell = tell.clone();
            tokio::spawn(async move {
                let mut stream = BufStream::new(stream);
                let lines = head(&mut stream).await;
                let target = lines[0].split(' ').nth(1).unwrap().to_owned();
                tell.send(lines).unwrap();
                let mut there = TcpStream::connect(target).await.unwrap();
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                stream.flush().await.unwrap();
                // Either side may hang up first.
                let _ = tokio::io::copy_bidirectional(&mut stream, &mut there).await;
            });
        }
    });
    (address, told)
}

#[tokio::test]
async fn point_01_a_proxy_on_the_way() {
    let Some(door) = Door::find().await else {
        return;
    };
    let (address, mut told) = proxy().await;
    let url = format!("http://ann:s3cret@{address}");
    assert!(door.opens(json!({"proxy-url": url})).await.unwrap() > 0);
    let head = told.recv().await.unwrap();
    let server = door.cluster["server"].as_str().unwrap();
    let authority = server.strip_prefix("https://").unwrap();
    assert_eq!(head[0], format!("CONNECT {authority} HTTP/1.1"));
    let credentials = has_header(&head, "proxy-authorization", "Basic YW5uOnMzY3JldA==");
    assert!(credentials, "{head:?}");

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let dead = listener.local_addr().unwrap();
    drop(listener);
    for scheme in ["http", "socks5"] {
        let url = format!("{scheme}://ann:s3cret@{dead}");
        let error = door.opens(json!({"proxy-url": url})).await.unwrap_err();
        let error = error.to_string();
        assert!(
            error.starts_with("cannot reach the cluster at https://127.0.0.1:"),
            "{error}"
        );
        assert!(!error.contains("s3cret"), "{error}");
    }
    let odd = door
        .opens(json!({"proxy-url": "ftp://ann:s3cret@there"}))
        .await;
    let odd = odd.unwrap_err().to_string();
    let told = "the proxy ftp://there is of no known kind: it must be http, https or socks5";
    assert!(odd.ends_with(told), "{odd}");
    door.server.stop().await;
}

/// A server without TLS that lists no namespaces to whoever shows the token.
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
            let answer = format!(
                "HTTP/1.1 {line}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
            stream.flush().await.unwrap();
        }
    });
    format!("http://{address}")
}

#[tokio::test]
async fn point_01_tokens_of_an_identity_provider() {
    let Some(door) = Door::find().await else {
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
    let client = door.client(more.clone(), &user(&fresh)).await.unwrap();
    assert!(client.namespaces().list().await.unwrap().items.is_empty());

    let stale = token(1);
    let outcome = match door.client(more, &user(&stale)).await {
        Ok(client) => client.namespaces().list().await.map(|_| ()),
        Err(error) => Err(error),
    };
    let error = outcome.unwrap_err().to_string();
    assert!(error.contains("OIDC") && !error.contains(&stale), "{error}");
    door.server.stop().await;
}
