//! Records requests to a real API server, and replays them without it.
#![allow(clippy::unwrap_used)]

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures::StreamExt as _;
use longshore_apiserver::{ApiServer, AuthorizationMode, NoLogs, NoStreams};
use longshore_client::{Cluster, DeleteOptions, Error, Patch, WatchEvent};
use longshore_engine::Engine;
use longshore_recording::{MARKER, RecordOptions, Recorder, Recording, Replay, ReplayOptions};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

/// An upper bound for any step on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);
const MAPS: [&str; 4] = ["api/v1", "namespaces", "default", "configmaps"];

/// A cluster in this process.
fn cluster() -> Cluster {
    let server = ApiServer::new(longshore_apiserver::Options {
        engine: Engine::open(longshore_engine::Options::default()).unwrap(),
        token: None,
        authorization: AuthorizationMode::AlwaysAllow,
        token_key: None,
        node_logs: Arc::new(NoLogs),
        node_streams: Arc::new(NoStreams),
        faults: false,
        warn_unhandled_kinds: false,
    });
    Cluster::from_service(server.service(), "default")
}

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("recording.jsonl")
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.file()).unwrap()
    }

    async fn record(&self, cluster: Cluster) -> Recorder {
        let options = RecordOptions::default();
        Recorder::start(cluster, &self.file(), options)
            .await
            .unwrap()
    }

    async fn replay(&self, change: impl FnOnce(&mut ReplayOptions)) -> Replay {
        let mut options = ReplayOptions::default();
        change(&mut options);
        Replay::open_with(self.file(), options).await.unwrap()
    }
}

async fn client(kubeconfig: &Path) -> Cluster {
    Cluster::from_kubeconfig(Some(kubeconfig), None)
        .await
        .unwrap()
}

/// A program with reads, writes and failures.
async fn program(cluster: &Cluster) -> Vec<Value> {
    let maps = cluster.configmaps().in_namespace("default").unwrap();
    let missing = maps.fetch("a").await.unwrap_err();
    assert!(missing.is_not_found(), "{missing}");
    let map = json!({"metadata": {"name": "a"}, "data": {"colour": "blue"}});
    let created = maps.create(&map).await.unwrap();
    let conflict = maps.create(&map).await.unwrap_err();
    let patch = Patch::merge(json!({"data": {"size": "3"}}));
    let patched = maps.patch("a", &patch).await.unwrap();
    let table = maps.table().await.unwrap();
    let secrets = cluster.secrets().in_namespace("default").unwrap();
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"password": "hunter2"}});
    let secret = secrets.create(&secret).await.unwrap();
    maps.fetch("a")
        .await
        .unwrap()
        .delete(&DeleteOptions::default())
        .await
        .unwrap();
    vec![
        created.raw().unwrap(),
        json!(conflict.to_string()),
        patched.raw().unwrap(),
        json!(table.rows.len()),
        secret.raw().unwrap()["metadata"].clone(),
    ]
}

#[tokio::test]
async fn a_program_gets_the_same_responses_without_the_cluster() {
    let place = Place::new();
    let recorder = place.record(cluster()).await;
    let recorded = program(&client(recorder.kubeconfig()).await).await;
    let summary = recorder.finish().await;
    assert_eq!((summary.omitted, summary.failed), (0, 0));
    assert!(
        summary.requests >= 8 && summary.incomplete.is_none(),
        "{summary:?}"
    );

    let text = place.text();
    assert!(
        !text.contains("hunter2") && !text.contains("aHVudGVyMg"),
        "{text}"
    );
    assert!(text.contains(MARKER), "{text}");

    let replay = place.replay(|options| options.strict = true).await;
    let replayed = program(&replay.cluster().await.unwrap()).await;
    assert_eq!(replayed, recorded);
    let report = replay.report();
    assert!(report.is_complete(), "{report:?}");
    assert_eq!(report.served, summary.requests);
}

#[tokio::test]
async fn a_watch_replays_its_events_and_stays_open() {
    let place = Place::new();
    let origin = cluster();
    let recorder = place.record(origin.clone()).await;
    let through = client(recorder.kubeconfig()).await;
    let maps = origin.configmaps().in_namespace("default").unwrap();
    let watched = through.configmaps().in_namespace("default").unwrap();
    let mut watch = watched.watch().await.unwrap();
    for name in ["a", "b"] {
        maps.create(&json!({"metadata": {"name": name}}))
            .await
            .unwrap();
        let event = watch.next(Some(TIMEOUT)).await.unwrap();
        let WatchEvent::Added(item) = event else {
            panic!("{event:?}");
        };
        assert_eq!(item.name(), name);
    }
    drop(watch);
    recorder.finish().await;

    let replay = place.replay(|_| {}).await;
    let replayed = replay.cluster().await.unwrap();
    let mut watch = replayed
        .configmaps()
        .in_namespace("default")
        .unwrap()
        .watch()
        .await
        .unwrap();
    for name in ["a", "b"] {
        let event = watch.next(Some(TIMEOUT)).await.unwrap();
        let WatchEvent::Added(item) = event else {
            panic!("{event:?}");
        };
        assert_eq!(item.name(), name);
    }
    let quiet = watch
        .next(Some(Duration::from_millis(50)))
        .await
        .unwrap_err();
    assert!(quiet.is_timeout(), "{quiet}");
    assert!(replay.report().is_complete());
}

#[tokio::test]
async fn a_watch_ends_at_its_timeout() {
    let place = Place::new();
    let recorder = place.record(cluster()).await;
    let query = |seconds: &'static str| [("timeoutSeconds", seconds)];
    let proxy = client(recorder.kubeconfig()).await.proxy();
    let mut watch = Box::pin(proxy.watch(MAPS, &query("1")).await.unwrap());
    while watch.next().await.is_some() {}
    recorder.finish().await;
    assert!(
        place.text().contains(r#""end":"server""#),
        "{}",
        place.text()
    );

    let replay = place.replay(|_| {}).await;
    let proxy = replay.cluster().await.unwrap().proxy();
    // Clients choose another timeout each time.
    let mut watch = Box::pin(proxy.watch(MAPS, &query("2")).await.unwrap());
    let ended = tokio::time::timeout(TIMEOUT, watch.next()).await.unwrap();
    assert!(ended.is_none(), "{ended:?}");
}

#[tokio::test]
async fn a_request_that_was_not_recorded_gets_an_error_with_the_nearest_one() {
    let place = Place::new();
    let recorder = place.record(cluster()).await;
    let proxy = client(recorder.kubeconfig()).await.proxy();
    proxy.get(MAPS, &[("limit", "5")]).await.unwrap();
    recorder.finish().await;

    let replay = place.replay(|_| {}).await;
    let proxy = replay.cluster().await.unwrap().proxy();
    let error = proxy.get(MAPS, &[("limit", "7")]).await.unwrap_err();
    let Error::Api { .. } = &error else {
        panic!("{error:?}");
    };
    let text = error.to_string();
    assert!(
        text.contains("NotRecorded")
            && text.contains("the nearest recorded request is 1")
            && text.contains("its limit is \"5\", not \"7\""),
        "{text}"
    );
    let report = replay.report();
    assert!(!report.is_complete());
    let request = "GET /api/v1/namespaces/default/configmaps?limit=";
    assert_eq!(report.not_recorded[0].request, format!("{request}7"));
    assert_eq!(report.unused, [format!("{request}5")]);
}

#[tokio::test]
async fn bodies_over_the_limit_are_forwarded_but_not_recorded() {
    let place = Place::new();
    let mut options = RecordOptions::default();
    options.body_limit = 1000;
    let recorder = Recorder::start(cluster(), &place.file(), options)
        .await
        .unwrap();
    let through = client(recorder.kubeconfig()).await;
    let maps = through.configmaps().in_namespace("default").unwrap();
    let map = json!({"metadata": {"name": "a"}, "data": {"x": "y".repeat(2000)}});
    let created = maps.create(&map).await.unwrap();
    assert_eq!(created.data().unwrap()["x"].len(), 2000);
    assert_eq!(recorder.finish().await.omitted, 2);
    assert!(
        place.text().contains("more than 1000 bytes"),
        "{}",
        place.text()
    );

    let replay = place.replay(|_| {}).await;
    let through = replay.cluster().await.unwrap();
    let maps = through.configmaps().in_namespace("default").unwrap();
    let error = maps.create(&map).await.unwrap_err().to_string();
    assert!(error.contains("more than 1000 bytes"), "{error}");
    assert!(!replay.report().is_complete());
}

/// Sends a request as text, and reads until the connection ends or has sent `until`.
async fn raw(url: &str, request: &str, until: &str) -> (TcpStream, String) {
    let address = url.strip_prefix("http://").unwrap();
    let (address, prefix) = address.split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = request.replace("PREFIX", &format!("/{prefix}"));
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut got = Vec::new();
    let mut buffer = [0; 1024];
    while !String::from_utf8_lossy(&got).contains(until) {
        let reading = stream.read(&mut buffer);
        let length = tokio::time::timeout(TIMEOUT, reading)
            .await
            .unwrap()
            .unwrap();
        assert!(length > 0, "{}", String::from_utf8_lossy(&got));
        got.extend_from_slice(&buffer[..length]);
    }
    (stream, String::from_utf8(got).unwrap())
}

#[tokio::test]
async fn only_the_url_of_the_kubeconfig_is_served() {
    let place = Place::new();
    let recorder = place.record(cluster()).await;
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    let url = recorder.url();
    for path in ["/version", "/", "PREFIXx/version"] {
        let (_, answer) = raw(url, &get(path), "random path").await;
        assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    }
    let (_, answer) = raw(url, &get("PREFIX/version"), "gitVersion").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(recorder.finish().await.requests, 1);
    assert_eq!(
        Recording::read(&place.file()).unwrap().requests().count(),
        1
    );
}

#[tokio::test]
async fn upgraded_connections_and_credentials_are_forwarded_but_not_recorded() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    // A server that upgrades a connection, and then returns what it receives.
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        let response =
            "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: SPDY/3.1\r\n\r\n";
        stream.write_all(response.as_bytes()).await.unwrap();
        let (mut from, mut to) = stream.split();
        tokio::io::copy(&mut from, &mut to).await.unwrap();
        String::from_utf8(head).unwrap()
    });
    let place = Place::new();
    let origin = Cluster::from_url(&format!("http://{address}/base")).unwrap();
    let recorder = place.record(origin).await;
    let exec = "POST PREFIX/api/v1/namespaces/a/pods/p/exec?command=ls&command=-l HTTP/1.1\r\n\
                host: x\r\nconnection: Upgrade\r\nupgrade: SPDY/3.1\r\ncontent-length: 0\r\n\
                authorization: Bearer 0123456789abcdef0123\r\ncookie: a=b\r\n\
                x-stream-protocol-version: v4.channel.k8s.io\r\n\r\n";
    let (mut stream, answer) = raw(recorder.url(), exec, "\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 101"), "{answer}");
    assert!(
        answer.to_lowercase().contains("upgrade: spdy/3.1"),
        "{answer}"
    );
    stream.write_all(b"echo").await.unwrap();
    let mut echo = [0; 4];
    let reading = stream.read_exact(&mut echo);
    tokio::time::timeout(TIMEOUT, reading)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(&echo, b"echo");
    drop(stream);
    let head = tokio::time::timeout(TIMEOUT, server)
        .await
        .unwrap()
        .unwrap();
    assert!(
        head.starts_with("POST /base/api/v1/namespaces/a/pods/p/exec?command=ls&command=-l "),
        "{head}"
    );
    let head = head.to_lowercase();
    assert!(
        head.contains("x-stream-protocol-version: v4.channel.k8s.io"),
        "{head}"
    );
    assert!(
        !head.contains("authorization") && !head.contains("cookie"),
        "{head}"
    );
    assert_eq!(recorder.finish().await.omitted, 1);
    let text = place.text();
    assert!(text.contains("its streams are not recorded"), "{text}");
    assert!(!text.contains("0123456789abcdef0123"), "{text}");

    let replay = place.replay(|_| {}).await;
    let (_, answer) = raw(replay.url(), exec, "its streams are not recorded").await;
    assert!(answer.starts_with("HTTP/1.1 501"), "{answer}");
}

#[tokio::test]
async fn a_cluster_without_a_response_is_reported() {
    let place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let origin = Cluster::from_url(&format!("http://{address}")).unwrap();
    let recorder = place.record(origin).await;
    let get = "GET PREFIX/version HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let (_, answer) = raw(recorder.url(), get, "BadGateway").await;
    assert!(answer.starts_with("HTTP/1.1 502"), "{answer}");
    let summary = recorder.finish().await;
    assert_eq!((summary.requests, summary.failed), (1, 1));
    assert_eq!(
        Recording::read(&place.file()).unwrap().requests().count(),
        0
    );
}

#[tokio::test]
async fn followed_logs_are_replayed_line_by_line_at_their_times() {
    let text = concat!(
        r#"{"recording":1,"namespace":"a"}"#,
        "\n",
        r#"{"id":1,"request":{"method":"GET","path":"/api/v1/namespaces/a/pods/p/log","query":["follow=true"]},"response":{"status":200,"headers":{"content-type":"text/plain"},"stream":true}}"#,
        "\n",
        r#"{"id":1,"after":0,"sent":{"text":"one\n"}}"#,
        "\n",
        r#"{"id":1,"after":200,"sent":{"base64":"dHdvCg=="}}"#,
        "\n",
        r#"{"id":1,"after":201,"end":"server"}"#,
        "\n",
    );
    for timing in [false, true] {
        let recording = Recording::parse(text.as_bytes()).unwrap();
        let mut options = ReplayOptions::default();
        options.timing = timing;
        let replay = Replay::serve(recording, options).await.unwrap();
        let cluster = replay.cluster().await.unwrap();
        assert_eq!(cluster.default_namespace(), "a");
        let begin = std::time::Instant::now();
        let path = ["api/v1", "namespaces", "a", "pods", "p", "log"];
        let log = cluster
            .proxy()
            .stream(path, &[("follow", "true")])
            .await
            .unwrap();
        let log: Vec<_> = log.map(Result::unwrap).collect().await;
        assert_eq!(log.concat(), b"one\ntwo\n");
        if timing {
            assert!(begin.elapsed() >= Duration::from_millis(200));
        }
    }
}

#[tokio::test]
async fn a_recording_is_replaced_and_other_files_are_not() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    let start = || Recorder::start(cluster(), &place.file(), RecordOptions::default());
    std::fs::write(place.file(), "notes\n").unwrap();
    let error = start().await.unwrap_err().to_string();
    assert!(error.contains("is not a recording"), "{error}");
    assert_eq!(place.text(), "notes\n");

    std::fs::write(place.file(), "{\"recording\":1,\"namespace\":\"x\"}\n").unwrap();
    drop(start().await.unwrap());
    assert_eq!(
        place.text(),
        "{\"recording\":1,\"namespace\":\"default\"}\n"
    );
    let mode = std::fs::metadata(place.file())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}
