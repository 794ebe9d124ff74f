//! Creates, patches, reads and deletes objects with extreme values. The server may reject
//! any of them; it must not respond with a server error.

use std::time::Duration;

use longshore::{Cluster, Patch, client::ApiServerProxy};
use rand::{RngExt as _, rngs::StdRng, seq::IndexedRandom as _};
use serde_json::{Map, Value, json};

use crate::{
    Stage,
    generator::{Schemas, Template, limit_pods, templates},
};

/// The namespace of the objects.
const NAMESPACE: &str = "soak";
/// Maximum number of objects before they are deleted.
const MAX_OBJECTS: usize = 60;
/// Maximum time to delete everything.
const DELETE_TIMEOUT: Duration = Duration::from_secs(120);

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

pub(crate) async fn connect(stage: &Stage) -> Cluster {
    let kubeconfig = stage.machine.data().join("kubeconfig");
    Cluster::from_kubeconfig(Some(&kubeconfig), None)
        .await
        .unwrap()
}

/// Creates and changes objects until the stage ends.
pub(crate) fn act(stage: &Stage, mut rng: StdRng) {
    runtime().block_on(async {
        let proxy = connect(stage).await.proxy();
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        let _ = proxy.post("/api/v1/namespaces", &[], &namespace).await;
        let schemas = read_schemas(&proxy).await;
        let templates = templates(&stage.marker);
        let mut actor = Actor {
            stage,
            proxy,
            schemas,
            names: Vec::new(),
        };
        while !stage.is_over() {
            let template = templates.choose(&mut rng).unwrap();
            actor.create(template, &mut rng).await;
            if rng.random_bool(0.5) {
                actor.change(&mut rng).await;
            }
            if actor.names.len() > MAX_OBJECTS {
                actor.delete(&mut rng).await;
            }
        }
    });
}

/// Retries a read that an injected fault rejects or aborts.
async fn read(proxy: &ApiServerProxy, path: &str, query: &[(&str, &str)]) -> Value {
    let mut answer = proxy.get(path, query).await;
    for _ in 0..30 {
        if answer.is_ok() {
            break;
        }
        answer = proxy.get(path, query).await;
    }
    answer.unwrap()
}

async fn read_schemas(proxy: &ApiServerProxy) -> Schemas {
    let mut all = Map::new();
    let index = read(proxy, "/openapi/v3", &[]).await;
    for (name, entry) in index["paths"].as_object().unwrap() {
        if !name.starts_with("api") {
            continue;
        }
        let url = entry["serverRelativeURL"].as_str().unwrap();
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let query: Vec<(&str, &str)> = query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .collect();
        let document = read(proxy, path, &query).await;
        if let Some(schemas) = document["components"]["schemas"].as_object() {
            all.extend(schemas.clone());
        }
    }
    assert!(all.len() > 100, "{} schemas", all.len());
    Schemas(all)
}

struct Actor<'a> {
    stage: &'a Stage,
    proxy: ApiServerProxy,
    schemas: Schemas,
    /// The created objects: their paths and values.
    names: Vec<(String, Value)>,
}

impl Actor<'_> {
    async fn create(&mut self, template: &Template, rng: &mut StdRng) {
        let mut object = template.object.clone();
        object["metadata"]["name"] = json!(format!("o{}", rng.random_range(0..u64::MAX)));
        self.mutate(&mut object, rng);
        let path = template.path.replace("{ns}", NAMESPACE);
        let answer = self.proxy.post(&path, &[], &object).await;
        match self.accepted(answer, "create", &object) {
            Some(made) => {
                self.stage.tally.count("objects created");
                let name = made["metadata"]["name"].as_str().unwrap_or_default();
                self.names.push((format!("{path}/{name}"), made));
            }
            None => self.stage.tally.count("objects refused"),
        }
    }

    fn mutate(&self, object: &mut Value, rng: &mut StdRng) {
        let Some(schema) = self.schemas.of(object).cloned() else {
            return;
        };
        for _ in 0..rng.random_range(0..4) {
            self.schemas.mutate(object, &schema, rng);
        }
        limit_pods(object);
    }

    async fn change(&mut self, rng: &mut StdRng) {
        let Some((path, object)) = self.names.choose(rng).cloned() else {
            return;
        };
        let mut wanted = object.clone();
        self.mutate(&mut wanted, rng);
        if let Some(metadata) = wanted
            .pointer_mut("/metadata")
            .and_then(Value::as_object_mut)
        {
            metadata.remove("resourceVersion");
            metadata.remove("managedFields");
        }
        let status = if rng.random_bool(0.3) { "/status" } else { "" };
        let path = format!("{path}{status}");
        let patch = match rng.random_range(0..5) {
            0 => Patch::merge(wanted.clone()),
            1 => Patch::strategic(wanted.clone()),
            2 => Patch::json(json!([
                {"op": "add", "path": "/metadata/labels", "value": wanted["metadata"]["labels"]},
                {"op": "replace", "path": "/spec", "value": wanted["spec"]},
            ])),
            3 => Patch::apply(wanted.clone(), "soak", true),
            _ => {
                let answer = self.proxy.put(&path, &[], &wanted).await;
                self.accepted(answer, "replace", &wanted);
                return;
            }
        };
        let answer = self.proxy.patch(&path, &[], &patch).await;
        if self.accepted(answer, "patch", &wanted).is_some() {
            self.stage.tally.count("objects changed");
        }
    }

    async fn delete(&mut self, rng: &mut StdRng) {
        for (path, _) in std::mem::take(&mut self.names) {
            let seconds = [0, 1, -1, i64::MAX].choose(rng).unwrap();
            let options = json!({"gracePeriodSeconds": seconds});
            let answer = self.proxy.delete(&path, &[], Some(&options)).await;
            self.accepted(answer, "delete", &json!({"path": path, "options": options}));
        }
        delete_objects(&self.proxy).await;
    }

    /// Returns the value of a successful response. Reports server errors that were not
    /// injected as failures.
    fn accepted<T>(&self, answer: longshore::Result<T>, verb: &str, what: &Value) -> Option<T> {
        match answer {
            Ok(value) => return Some(value),
            Err(error) if error.code() == Some(500) => {
                // As in Kubernetes: an apply with a malformed object of its type.
                if verb != "patch" {
                    let text = what.to_string();
                    let text: String = text.chars().take(3_000).collect();
                    self.stage.tally.fail(format!("{verb}: {error}: {text}"));
                }
            }
            Err(error) if error.code().is_none() => {
                let text: String = what.to_string().chars().take(3_000).collect();
                self.stage.tally.fail(format!("{verb}: {error}: {text}"));
            }
            Err(_) => {}
        }
        None
    }
}

/// Removes the finalizers of all objects of the templates' kinds, and deletes the objects.
async fn delete_objects(proxy: &ApiServerProxy) -> usize {
    let mut left = 0;
    for template in templates("") {
        let path = template.path.replace("{ns}", NAMESPACE);
        let Ok(list) = proxy.get(&path, &[]).await else {
            left += 1;
            continue;
        };
        for item in list["items"].as_array().into_iter().flatten() {
            let name = item["metadata"]["name"].as_str().unwrap_or_default();
            if template.object["kind"] == "ServiceAccount" && name == "default"
                || name == "kube-root-ca.crt"
            {
                continue;
            }
            left += 1;
            let path = format!("{path}/{name}");
            if item["metadata"]["finalizers"].is_array() {
                let none = Patch::merge(json!({"metadata": {"finalizers": null}}));
                let _ = proxy.patch(&path, &[], &none).await;
            }
            let now = json!({"gracePeriodSeconds": 0, "propagationPolicy": "Background"});
            let _ = proxy.delete(&path, &[], Some(&now)).await;
        }
    }
    left
}

/// Removes all runs and objects, and waits until they are deleted.
pub(crate) fn delete_everything(stage: &Stage) {
    runtime().block_on(async {
        let proxy = connect(stage).await.proxy();
        let _ = proxy.delete("/longshore.dev/v1/faults", &[], None).await;
        stage.machine.longshore(&["rm", "--finished"]);
        let begin = std::time::Instant::now();
        while delete_objects(&proxy).await > 0 {
            if begin.elapsed() > DELETE_TIMEOUT {
                stage.tally.fail("objects cannot be deleted".into());
                return;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    });
}
