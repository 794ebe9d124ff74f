//! An API server and a node agent, and the pods of a test.

use super::*;

/// An upper bound for any step on a busy machine. No test waits for the whole time.
pub(super) const TIMEOUT: Duration = Duration::from_secs(60);

pub(super) struct Stage {
    pub(super) cluster: Cluster,
    pub(super) access: Option<ApiAccess>,
    pub(super) agent: Option<NodeAgent>,
    pub(super) folder: tempfile::TempDir,
    pub(super) fill_volumes: Option<Arc<dyn FillVolumes>>,
    pub(super) collect_files: Option<Arc<dyn CollectFiles>>,
}

impl Stage {
    pub(super) async fn new() -> Self {
        Self::with(None, None).await
    }

    /// Starts with a signing key for service account tokens, and a connection to the API server.
    pub(super) async fn with(token_key: Option<TokenKey>, access: Option<ApiAccess>) -> Self {
        let mut stage = Self::without_agent(token_key, access);
        stage.start().await;
        stage
    }

    pub(super) fn without_agent(token_key: Option<TokenKey>, access: Option<ApiAccess>) -> Self {
        let engine = Engine::open(longshore_engine::Options::default()).unwrap();
        let server = ApiServer::new(longshore_apiserver::Options {
            engine,
            token: None,
            authorization: longshore_apiserver::AuthorizationMode::Rbac,
            token_key,
            node_logs: Arc::new(NoLogs),
            node_streams: Arc::new(NoStreams),
            faults: false,
            warn_unhandled_kinds: false,
        });
        let cluster = Cluster::from_service(server.service(), "default");
        Self {
            cluster,
            access,
            agent: None,
            folder: tempfile::tempdir().unwrap(),
            fill_volumes: None,
            collect_files: None,
        }
    }

    pub(super) async fn start(&mut self) {
        let agent = NodeAgent::start(self.options("here", "data"))
            .await
            .unwrap();
        agent.run_pods().await;
        self.agent = Some(agent);
    }

    /// The options of an agent with a node and a data folder of these names.
    pub(super) fn options(&self, node: &str, data: &str) -> Options {
        Options {
            cluster: self.cluster.clone(),
            nodes: vec![node.to_owned()],
            data_dir: self.folder.path().join(data),
            path_prepend: None,
            access: self.access.clone(),
            log_limits: LogLimits::default(),
            keep_logs: true,
            kept_logs_limit: None,
            image_entrypoints: vec![
                "trainer=echo trained".parse().unwrap(),
                "nginx=no-such-nginx -g".parse().unwrap(),
            ],
            image_users: vec!["hardened=1234:1235".parse().unwrap()],
            device_root: self.folder.path().join("root"),
            fill_volumes: self.fill_volumes.clone(),
            collect_files: self.collect_files.clone(),
            last_end: None,
            clock: longshore_clock::Clock::system(),
        }
    }

    /// Creates a pod and binds it.
    pub(super) async fn run(&self, name: &str, spec: Value) {
        let metadata = json!({"name": name, "labels": {"app": "x"}});
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
        let pods = self.cluster.pods().in_namespace("default").unwrap();
        pods.create(&pod).await.unwrap();
        pods.bind(name, "here").await.unwrap();
    }

    /// Waits until the pod satisfies `done`, and returns it; `Null` if it was deleted.
    pub(super) async fn until(&self, name: &str, done: impl Fn(&Value) -> bool) -> Value {
        let pods = self.cluster.pods().in_namespace("default").unwrap();
        let mut watch = pods.watch().await.unwrap();
        let mut last = match pods.find(name).await.unwrap() {
            Some(item) => item.raw().unwrap(),
            None => Value::Null,
        };
        while !done(&last) {
            let event = tokio::time::timeout(TIMEOUT, watch.next(None)).await;
            let Ok(event) = event else {
                panic!("{name} did not come to it: {last:#}")
            };
            match event.unwrap() {
                WatchEvent::Added(item) | WatchEvent::Modified(item) if item.name() == name => {
                    last = item.raw().unwrap();
                }
                WatchEvent::Deleted(item) if item.name() == name => last = Value::Null,
                _ => {}
            }
        }
        last
    }

    pub(super) async fn ended(&self, name: &str) -> Value {
        let ended = |pod: &Value| {
            ["Succeeded", "Failed"]
                .iter()
                .any(|p| pod["status"]["phase"] == *p)
        };
        self.until(name, ended).await
    }

    pub(super) async fn log(&self, pod: &Value) -> String {
        self.read(query(pod)).await.unwrap()
    }

    /// The log of one of several containers.
    pub(super) async fn log_of(&self, pod: &Value, container: &str) -> String {
        let mut query = query(pod);
        query.container = container.to_owned();
        self.read(query).await.unwrap()
    }

    pub(super) async fn read(&self, query: LogRequest) -> Result<String, LogError> {
        let mut stream = std::pin::pin!(self.agent.as_ref().unwrap().logs().open(query).await?);
        let mut all = Vec::new();
        while let Some(chunk) = stream.next().await {
            all.extend_from_slice(&chunk.unwrap());
        }
        Ok(String::from_utf8(all).unwrap())
    }

    pub(super) async fn events(&self, pod: &str) -> Vec<(String, String)> {
        let events = self
            .cluster
            .events()
            .in_namespace("default")
            .unwrap()
            .list()
            .await
            .unwrap();
        let events = events.items.iter().map(|item| item.raw().unwrap());
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        events
            .filter(|event| event["involvedObject"]["name"] == pod)
            .map(|event| (text(&event["reason"]), text(&event["message"])))
            .collect()
    }

    /// Waits for an event, which may be written after the change that it reports.
    pub(super) async fn event(&self, pod: &str, reason: &str) -> String {
        let search = async {
            loop {
                let found = self
                    .events(pod)
                    .await
                    .into_iter()
                    .find(|(known, _)| known == reason);
                if let Some((_, message)) = found {
                    return message;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(TIMEOUT, search).await.unwrap()
    }

    pub(super) async fn stop(mut self) {
        self.agent.take().unwrap().stop().await;
    }
}

pub(super) fn query(pod: &Value) -> LogRequest {
    LogRequest {
        namespace: "default".to_owned(),
        pod: pod["metadata"]["name"].as_str().unwrap().to_owned(),
        uid: pod["metadata"]["uid"].as_str().unwrap().to_owned(),
        ..LogRequest::default()
    }
}

/// The container `main` of a pod.
pub(super) fn main_container(pod: &Value) -> ContainerRef {
    ContainerRef {
        uid: pod["metadata"]["uid"].as_str().unwrap().to_owned(),
        container: "main".to_owned(),
        ..ContainerRef::default()
    }
}

pub(super) fn shell(script: &str) -> Value {
    json!({"name": "main", "image": "none", "command": ["sh", "-c", script]})
}

pub(super) fn run_once(script: &str) -> Value {
    json!({"restartPolicy": "Never", "containers": [shell(script)]})
}

/// Returns true if the first container waits for its configuration.
pub(super) fn waits_for_config(pod: &Value) -> bool {
    let state = &pod["status"]["containerStatuses"][0]["state"];
    state["waiting"]["reason"] == "CreateContainerConfigError"
}

pub(super) fn terminated(pod: &Value) -> &Value {
    &pod["status"]["containerStatuses"][0]["state"]["terminated"]
}
