//! A cluster with a page, and raw HTTP requests to it.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::future::BoxFuture;
use longshore_client::{Cluster, Patch, View, kinds::Job};
use longshore_embedded::{EmbeddedCluster, Options as ClusterOptions};
use longshore_launcher::{RunSummary, runs};
use longshore_ui::{Links, Options, RemoveRuns, Server};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinHandle,
    time::{timeout, timeout_at},
};

/// An upper bound for any step, also on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// Removes runs, and records their names.
struct Removal {
    cluster: Cluster,
    removed: Arc<Mutex<Vec<String>>>,
}

impl RemoveRuns for Removal {
    fn remove<'a>(
        &'a self,
        _: &'a [RunSummary],
        run: &'a RunSummary,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async {
            self.removed.lock().unwrap().push(run.run.name.to_string());
            let removed = runs::remove(&self.cluster, &run.run).await;
            removed.map_err(|error| error.to_string())
        })
    }
}

pub(crate) struct Fixture {
    pub(crate) embedded: EmbeddedCluster,
    pub(crate) cluster: Cluster,
    pub(crate) jobs: View<Job>,
    pub(crate) address: SocketAddr,
    pub(crate) links: Links,
    pub(crate) removed: Arc<Mutex<Vec<String>>>,
    server: JoinHandle<()>,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let found = lines.find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value)
    }
}

/// A browser with a session.
pub(crate) struct Browser {
    pub(crate) address: SocketAddr,
    pub(crate) base: String,
    pub(crate) cookie: String,
    pub(crate) csrf: String,
}

impl Fixture {
    /// A cluster with a node.
    pub(crate) async fn start() -> Self {
        Self::on(
            EmbeddedCluster::start(ClusterOptions::default())
                .await
                .unwrap(),
        )
        .await
    }

    /// Only an API server.
    pub(crate) async fn without_node() -> Self {
        Self::on(longshore_embedded::start_server().await.unwrap()).await
    }

    /// Uses the given cluster.
    pub(crate) async fn on(embedded: EmbeddedCluster) -> Self {
        Self::with(embedded, |_| ()).await
    }

    /// Uses the given cluster, and other options of the page.
    pub(crate) async fn with(embedded: EmbeddedCluster, change: impl FnOnce(&mut Options)) -> Self {
        let cluster = embedded.cluster();
        let removed: Arc<Mutex<Vec<String>>> = Arc::default();
        let removal = Removal {
            cluster: cluster.clone(),
            removed: Arc::clone(&removed),
        };
        let mut options = Options {
            cluster: "test".to_owned(),
            namespace: Some("default".to_owned()),
            browse: true,
            ..Options::default()
        };
        change(&mut options);
        let server = Server::bind(cluster.clone(), options, Arc::new(removal));
        let server = server.await.unwrap();
        Self {
            jobs: cluster.jobs().in_namespace("default").unwrap(),
            embedded,
            cluster,
            address: server.address(),
            links: server.links(),
            removed,
            server: tokio::spawn(server.serve()),
        }
    }

    /// A browser that has opened a link.
    pub(crate) async fn browser(&self) -> Browser {
        let link = self.links.create();
        let path = link
            .strip_prefix(&format!("http://{}", self.address))
            .unwrap();
        let answer = request(self.address, "GET", path, &[]).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let cookie = answer.header("set-cookie").unwrap();
        let (cookie, rest) = cookie.split_once("; Path=").unwrap();
        let (base, _) = rest.split_once(';').unwrap();
        let mut browser = Browser {
            address: self.address,
            base: base.to_owned(),
            cookie: cookie.to_owned(),
            csrf: String::new(),
        };
        let page = browser.get("").await;
        let (_, csrf) = page.body.split_once(r#"name="csrf" content=""#).unwrap();
        browser.csrf = csrf.split_once('"').unwrap().0.to_owned();
        browser
    }

    /// A run with one role, whose tasks execute a script.
    pub(crate) async fn run(&self, name: &str, tasks: u32, script: &str) {
        self.jobs
            .create(&Self::job(name, tasks, script))
            .await
            .unwrap();
    }

    fn job(name: &str, tasks: u32, script: &str) -> Value {
        let labels = json!({
            "app.kubernetes.io/managed-by": "longshore",
            "longshore.dev/run": name,
            "longshore.dev/role": "worker",
        });
        let roles = json!([{"name": "worker", "count": tasks, "service": false}]);
        let container = json!({"name": "main", "image": "any", "command": ["sh", "-c", script]});
        json!({
            "metadata": {
                "name": format!("{name}-worker"),
                "labels": labels,
                "annotations": {
                    "longshore.dev/roles": roles.to_string(),
                    "longshore.dev/command": json!(["sh", "-c", script]).to_string(),
                },
            },
            "spec": {
                "completions": tasks,
                "parallelism": tasks,
                "completionMode": "Indexed",
                "backoffLimit": 0,
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"restartPolicy": "Never", "containers": [container]},
                },
            },
        })
    }

    /// Pods of a run's tasks that have ended, with a series of their usage.
    pub(crate) async fn ended_pods(&self, run: &str, tasks: u32) {
        let pods = self.cluster.pods().in_namespace("default").unwrap();
        for index in 0..tasks {
            let name = format!("{run}-worker-{index}");
            let labels = json!({
                "app.kubernetes.io/managed-by": "longshore",
                "longshore.dev/run": run,
                "longshore.dev/role": "worker",
            });
            let pod = json!({
                "metadata": {
                    "name": name,
                    "labels": labels,
                    "annotations": {"batch.kubernetes.io/job-completion-index": index.to_string()},
                },
                "spec": {"containers": [{"name": "main", "image": "any"}]},
            });
            pods.create(&pod).await.unwrap();
            let record = json!({
                "start": 1_800_000_000, "seconds": 60.0, "cpu_seconds": 30.0,
                "peak_memory": 300 << 20, "interval": 1,
                "points": (0..60).map(|n| json!([400 + 10 * n, 100 + n + 50 * index])).collect::<Vec<_>>(),
            });
            let ended = json!({
                "exitCode": 0, "reason": "Completed",
                "startedAt": "2027-01-15T08:00:00Z", "finishedAt": "2027-01-15T08:01:00Z",
                "message": format!("longshore-usage: {record}\n"),
            });
            let status = json!({"status": {"phase": "Succeeded", "containerStatuses": [{
                "name": "main", "image": "any", "imageID": "any", "ready": false,
                "restartCount": 0, "state": {"terminated": ended},
            }]}});
            let patch = Patch::merge(status);
            pods.patch_status(&name, &patch).await.unwrap();
        }
    }

    /// A sweep of the parameter `lr`, without a bootstrap in its pods.
    pub(crate) async fn sweep(&self, name: &str, values: &[&str], script: &str) {
        let combinations: Vec<_> = values.iter().map(|value| json!([value])).collect();
        let config = json!({
            "run": name,
            "roles": [{"name": "worker", "tasks": [], "env": {}}],
            "peer_timeout": 60,
            "bundle": null,
            "sweep": {"parameters": ["lr"], "combinations": combinations},
        });
        let secrets = self.cluster.secrets().in_namespace("default").unwrap();
        let secret = json!({
            "metadata": {"name": name, "labels": {"longshore.dev/run": name}},
            "stringData": {"run.json": config.to_string()},
        });
        secrets.create(&secret).await.unwrap();
        let tasks = u32::try_from(values.len()).unwrap();
        let mut job = Self::job(name, tasks, script);
        job["metadata"]["labels"]["longshore.dev/sweep"] = name.into();
        job["spec"]["template"]["metadata"]["labels"]["longshore.dev/sweep"] = name.into();
        job["metadata"]["annotations"]["longshore.dev/metrics"] = r#"["loss"]"#.into();
        // As the launcher does: a failed combination does not end the others.
        job["spec"]["backoffLimitPerIndex"] = 0.into();
        job["spec"]["backoffLimit"] = i32::MAX.into();
        self.jobs.create(&job).await.unwrap();
    }

    /// An object with a run's label.
    pub(crate) fn labelled(name: &str, run: &str, rest: Value) -> Value {
        let mut object = rest;
        object["metadata"] = json!({"name": name, "labels": {"longshore.dev/run": run}});
        object
    }
}

impl Browser {
    pub(crate) async fn get(&self, path: &str) -> Answer {
        let path = format!("{}{path}", self.base);
        let cookie = ("cookie", self.cookie.as_str());
        request(self.address, "GET", &path, &[cookie]).await
    }

    pub(crate) async fn post(&self, path: &str) -> Answer {
        let path = format!("{}{path}", self.base);
        let origin = format!("http://{}", self.address);
        let headers = [
            ("cookie", self.cookie.as_str()),
            ("origin", &origin),
            ("x-longshore-token", &self.csrf),
            ("content-length", "0"),
        ];
        request(self.address, "POST", &path, &headers).await
    }

    /// Reads a stream of events until its text has all these parts.
    pub(crate) async fn events(&self, path: &str, wanted: &[&str]) -> String {
        let path = format!("{}{path}", self.base);
        let cookie = ("cookie", self.cookie.as_str());
        let mut stream = connect(self.address, "GET", &path, &[cookie]).await;
        let (mut text, mut piece) = (String::new(), vec![0; 1 << 16]);
        // The page sends comments when nothing has changed, so the time limit applies to the whole
        // read.
        let end = tokio::time::Instant::now() + TIMEOUT;
        while !wanted.iter().all(|part| text.contains(part)) {
            let count = timeout_at(end, stream.read(&mut piece)).await;
            let count = count.unwrap_or_else(|_| panic!("{wanted:?} is not in {text}"));
            let count = count.unwrap();
            assert!(count > 0, "{wanted:?} is not in {text}");
            text.push_str(&String::from_utf8_lossy(&piece[..count]));
        }
        text
    }

    /// Waits until a page contains a text.
    pub(crate) async fn wait_for(&self, path: &str, wanted: &str) -> Answer {
        let waiting = async {
            loop {
                let answer = self.get(path).await;
                if answer.body.contains(wanted) {
                    return answer;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let answer = timeout(TIMEOUT, waiting).await;
        answer.unwrap_or_else(|_| panic!("{path} never contains {wanted}"))
    }
}

async fn connect(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut text = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
    if !headers.iter().any(|(name, _)| *name == "host") {
        text.push_str(&format!("host: {address}\r\n"));
    }
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

/// Sends a request, and reads the whole response.
pub(crate) async fn request(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> Answer {
    let mut stream = connect(address, method, path, headers).await;
    let mut bytes = Vec::new();
    let read = timeout(TIMEOUT, stream.read_to_end(&mut bytes)).await;
    read.unwrap().unwrap();
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer {
        status,
        head: head.to_owned(),
        body: body.to_owned(),
    }
}
