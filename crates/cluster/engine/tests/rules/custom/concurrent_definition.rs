//! A definition changes while an object of its kind is being created.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
    mpsc,
};

use longshore_engine::{Engine, Ids, Options, Storage, Subresource};
use longshore_model::PatchKind;
use serde_json::json;

use super::{DEFINITIONS, create, definition, get, patch, version};
use crate::support::{Api, Counting, options};

/// A generator that blocks one UID: the engine requests it between the first check of a new
/// object and the writer's turn.
struct Gate {
    counting: Counting,
    is_shut: AtomicBool,
    reached: mpsc::Sender<()>,
    open: Mutex<mpsc::Receiver<()>>,
}

impl Ids for Gate {
    fn uid(&self) -> String {
        if self.is_shut.swap(false, Ordering::SeqCst) {
            self.reached.send(()).unwrap();
            self.open.lock().unwrap().recv().unwrap();
        }
        self.counting.uid()
    }

    fn suffix(&self) -> String {
        self.counting.suffix()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_30_an_object_is_stored_under_the_definition_of_its_turn() {
    let (reached, is_reached) = mpsc::channel();
    let (open, opened) = mpsc::channel();
    let gate = Arc::new(Gate {
        counting: Counting::default(),
        is_shut: AtomicBool::new(false),
        reached,
        open: Mutex::new(opened),
    });
    let options = Options {
        ids: gate.clone(),
        ..options(Storage::Memory)
    };
    let api = Api(Engine::open(options).unwrap());
    let crd = definition(json!([version("v1", true), version("v2", false)]));
    api.create(DEFINITIONS, crd).await.unwrap();

    gate.is_shut.store(true, Ordering::SeqCst);
    let making = tokio::spawn({
        let api = api.clone();
        let shoe = json!({"metadata": {"name": "a"}, "spec": {"size": 40, "replicas": 2}});
        async move { create(&api, "v1", shoe).await }
    });
    tokio::task::spawn_blocking(move || is_reached.recv().unwrap())
        .await
        .unwrap();
    let mut versions = json!([version("v1", false), version("v2", true)]);
    for version in versions.as_array_mut().unwrap() {
        let spec = &mut version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
        spec["width"] = json!({"type": "string", "default": "wide"});
        spec.as_object_mut().unwrap().remove("replicas");
        version["subresources"]
            .as_object_mut()
            .unwrap()
            .remove("scale");
    }
    let change = json!({"spec": {"versions": versions}});
    api.merge(DEFINITIONS, "shoes.example.com", change)
        .await
        .unwrap();
    open.send(()).unwrap();

    let made = making.await.unwrap().unwrap().object;
    let spec = json!({"size": 40, "colour": "red", "width": "wide"});
    assert_eq!(made.value()["spec"], spec);
    assert_eq!(get(&api, "v2", "a").unwrap()["spec"], spec);
    // The object is stored in the current storage version: the same update is not a write.
    let same = json!({"spec": {"size": 40}});
    let patched = patch(&api, "v1", Subresource::None, PatchKind::Merge, same).await;
    assert_eq!(patched.unwrap().revision(), made.revision());
}
