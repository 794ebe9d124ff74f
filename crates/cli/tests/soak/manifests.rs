//! Objects with extreme values are created, patched, read and deleted. The
//! server may refuse any of them; it must not answer with a server error.

use std::time::Duration;

use longshore::{Cluster, Patch, client::ApiServerProxy};
use rand::{Rng as _, rngs::StdRng, seq::IndexedRandom as _};
use serde_json::{Map, Value, json};

use crate::{
    Stage,
    generator::{Schemas, Template, templates},
};

/// Where the objects are made.
const NAMESPACE: &str = "soak";
/// How many objects may be there before they are deleted.
const MAX_OBJECTS: usize = 60;
/// How long the deletion of everything may take.
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

/// Creates and changes objects until the stage is over.
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

/// Reads until no fault stands in the way: some reads are refused or broken off.
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
    /// Objects that were made: their paths and values.
    names: Vec<(String, Value)>,
}

impl Actor<'_> {
    async fn create(&mut self, template: &Template, rng: &mut StdRng) {
        let mut object = template.object.clone();
        object["metadata"]["name"] = json!(format!("o{}", rng.random_range(0..u64::MAX)));
        self.mutate(&mut object, rng);
        let path = template.path.replace("{ns}", NAMESPACE);
        let answer = self.proxy.post(&path, &[], &object).await;
        match self.judge(answer, "create", &object) {
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
                self.judge(answer, "replace", &wanted);
                return;
            }
        };
        let answer = self.proxy.patch(&path, &[], &patch).await;
        if self.judge(answer, "patch", &wanted).is_some() {
            self.stage.tally.count("objects changed");
        }
    }

    async fn delete(&mut self, rng: &mut StdRng) {
        for (path, _) in std::mem::take(&mut self.names) {
            let seconds = [0, 1, -1, i64::MAX].choose(rng).unwrap();
            let options = json!({"gracePeriodSeconds": seconds});
            let answer = self.proxy.delete(&path, &[], Some(&options)).await;
            self.judge(answer, "delete", &json!({"path": path, "options": options}));
        }
        delete_objects(&self.proxy).await;
    }

    /// Server errors other than injected ones are failures.
    fn judge<T>(&self, answer: longshore::Result<T>, verb: &str, what: &Value) -> Option<T> {
        match answer {
            Ok(value) => return Some(value),
            Err(error) if error.code() == Some(500) => {
                // As by Kubernetes: an apply that does not have the form of its type.
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

/// Takes finalizers off and deletes whatever the templates' kinds have.
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

/// Removes all runs and objects, and waits until they are gone.
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
