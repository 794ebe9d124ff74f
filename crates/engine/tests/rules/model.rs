//! The engine against a plain sequential model: random operations must give
//! the same answers, old versions must stay readable, and every watcher's
//! replayed view must equal a list.

use std::collections::BTreeMap;

use crate::support::{Api, kind, options};
use longshore_engine::{
    Engine, Error, ListRequest, Options, ReadVersion, Storage, Watch, WatchEvent, WatchRequest,
    WatchStart,
};
use proptest::prelude::*;
use serde_json::json;

#[derive(Debug, Clone)]
enum Step {
    Create(u8, u8, bool),
    Label(u8, u8),
    Data(u8, u8),
    Release(u8),
    Delete(u8),
    Stale(u8),
    Other,
    Watch(u8),
    Resume(u8, u8),
    Read(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let (name, value) = (0..5_u8, 0..3_u8);
    prop_oneof![
        4 => (name.clone(), value.clone(), any::<bool>()).prop_map(|(n, v, f)| Step::Create(n, v, f)),
        4 => (name.clone(), value.clone()).prop_map(|(n, v)| Step::Label(n, v)),
        3 => (name.clone(), value.clone()).prop_map(|(n, v)| Step::Data(n, v)),
        2 => name.clone().prop_map(Step::Release),
        3 => name.clone().prop_map(Step::Delete),
        1 => name.prop_map(Step::Stale),
        1 => Just(Step::Other),
        1 => value.clone().prop_map(Step::Watch),
        1 => (value.clone(), any::<u8>()).prop_map(|(s, v)| Step::Resume(s, v)),
        2 => any::<u8>().prop_map(Step::Read),
    ]
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Model {
    label: u8,
    data: u8,
    finalizer: bool,
    deleting: bool,
    version: u64,
}

type State = BTreeMap<String, Model>;

/// A watcher, and what it has been told of the objects.
struct Watcher {
    watch: Watch,
    selector: u8,
    view: BTreeMap<String, u64>,
    last: u64,
}

fn selector(number: u8) -> longshore_model::LabelSelector {
    ["", "l=1", "l!=1"][usize::from(number) % 3]
        .parse()
        .unwrap()
}

fn selects(number: u8, object: &Model) -> bool {
    match number % 3 {
        0 => true,
        1 => object.label == 1,
        _ => object.label != 1,
    }
}

fn view(state: &State, number: u8) -> BTreeMap<String, u64> {
    let selected = state.iter().filter(|(_, object)| selects(number, object));
    selected
        .map(|(name, object)| (name.clone(), object.version))
        .collect()
}

struct World {
    api: Api,
    state: State,
    /// Every version of the state there was.
    past: BTreeMap<u64, State>,
    watchers: Vec<Watcher>,
}

impl World {
    fn new() -> Self {
        let limits = Options {
            history: 1000,
            ..options(Storage::Memory)
        };
        let api = Api(Engine::open(limits).unwrap());
        let past = [(api.0.revision(), State::new())].into();
        Self {
            api,
            state: State::new(),
            past,
            watchers: Vec::new(),
        }
    }

    /// The revision must be one more after a write, and the same after none.
    fn wrote(&mut self, name: &str, object: Option<Model>) {
        let revision = self.api.0.revision();
        assert_eq!(revision, self.past.last_key_value().unwrap().0 + 1);
        match object {
            Some(object) => self.state.insert(
                name.to_owned(),
                Model {
                    version: revision,
                    ..object
                },
            ),
            None => self.state.remove(name),
        };
        self.past.insert(revision, self.state.clone());
    }

    fn wrote_nothing(&self) {
        assert_eq!(
            self.api.0.revision(),
            *self.past.last_key_value().unwrap().0
        );
    }

    async fn change(&mut self, name: &str, body: serde_json::Value, edit: impl Fn(&mut Model)) {
        let result = self.api.merge("configmaps", name, body).await;
        let Some(old) = self.state.get(name).cloned() else {
            assert!(matches!(result, Err(Error::NotFound(_))));
            return self.wrote_nothing();
        };
        let mut new = old.clone();
        edit(&mut new);
        if new == old {
            assert_eq!(result.unwrap().revision(), old.version);
            self.wrote_nothing();
        } else if new.deleting && !new.finalizer {
            result.unwrap();
            self.wrote(name, None);
        } else {
            assert_eq!(result.unwrap().revision(), self.api.0.revision());
            self.wrote(name, Some(new));
        }
    }

    async fn step(&mut self, step: Step) {
        let name = |n: u8| format!("c{n}");
        match step {
            Step::Create(n, label, finalizer) => {
                let (name, label_text) = (name(n), label.to_string());
                let mut object = json!({"metadata": {"name": name, "labels": {"l": label_text}}, "data": {"a": "0"}});
                if finalizer {
                    object["metadata"]["finalizers"] = json!(["a.b/c"]);
                }
                let result = self.api.create("configmaps", object).await;
                if self.state.contains_key(&name) {
                    assert!(matches!(result, Err(Error::AlreadyExists(_))));
                    self.wrote_nothing();
                } else {
                    result.unwrap();
                    let new = Model {
                        label,
                        data: 0,
                        finalizer,
                        deleting: false,
                        version: 0,
                    };
                    self.wrote(&name, Some(new));
                }
            }
            Step::Label(n, label) => {
                let body = json!({"metadata": {"labels": {"l": label.to_string()}}});
                self.change(&name(n), body, |object| object.label = label)
                    .await;
            }
            Step::Data(n, data) => {
                let body = json!({"data": {"a": data.to_string()}});
                self.change(&name(n), body, |object| object.data = data)
                    .await;
            }
            Step::Release(n) => {
                let body = json!({"metadata": {"finalizers": null}});
                self.change(&name(n), body, |object| object.finalizer = false)
                    .await;
            }
            Step::Delete(n) => {
                let name = name(n);
                let result = self.api.delete("configmaps", &name).await;
                match self.state.get(&name).cloned() {
                    None => {
                        assert!(matches!(result, Err(Error::NotFound(_))));
                        self.wrote_nothing();
                    }
                    Some(object) if object.finalizer && object.deleting => self.wrote_nothing(),
                    Some(object) if object.finalizer => {
                        self.wrote(
                            &name,
                            Some(Model {
                                deleting: true,
                                ..object
                            }),
                        );
                    }
                    Some(_) => self.wrote(&name, None),
                }
            }
            Step::Stale(n) => {
                let body = json!({"metadata": {"resourceVersion": "1"}, "data": {"a": "9"}});
                assert!(self.api.merge("configmaps", &name(n), body).await.is_err());
                self.wrote_nothing();
            }
            Step::Other => {
                let event = json!({"metadata": {"generateName": "e"}, "involvedObject": {"namespace": "default"}});
                self.api.create("events", event).await.unwrap();
                let state = self.state.clone();
                self.past.insert(self.api.0.revision(), state);
            }
            Step::Watch(number) => self.watch(number, WatchStart::Latest, BTreeMap::new()),
            Step::Resume(number, pick) => {
                let (version, state) = self.some_past(pick);
                let seen = view(&state, number);
                self.watch(number, WatchStart::After(version), seen);
            }
            Step::Read(pick) => {
                let (version, state) = self.some_past(pick);
                assert_eq!(self.pages(version), view(&state, 0));
            }
        }
    }

    fn some_past(&self, pick: u8) -> (u64, State) {
        let (version, state) = self
            .past
            .iter()
            .nth(usize::from(pick) % self.past.len())
            .unwrap();
        (*version, state.clone())
    }

    fn watch(&mut self, number: u8, since: WatchStart, seen: BTreeMap<String, u64>) {
        let request = WatchRequest {
            labels: selector(number),
            ..WatchRequest::of(kind("configmaps"), since)
        };
        let last = match since {
            WatchStart::After(version) => version,
            WatchStart::Latest => 0,
        };
        let watch = self.api.0.watch(&request).unwrap();
        self.watchers.push(Watcher {
            watch,
            selector: number,
            view: seen,
            last,
        });
    }

    /// A list at a version, in pages of two.
    fn pages(&self, version: u64) -> BTreeMap<String, u64> {
        let mut request = ListRequest {
            limit: Some(2),
            version: ReadVersion::Exact(version),
            ..ListRequest::of(kind("configmaps"))
        };
        let mut found = BTreeMap::new();
        loop {
            let page = self.api.0.list(&request).unwrap();
            assert_eq!(page.revision, version);
            for object in &page.items {
                let value = object.value();
                assert_eq!(
                    value["metadata"]["resourceVersion"],
                    object.revision().to_string()
                );
                found.insert(object.name().to_owned(), object.revision());
            }
            let Some(cursor) = page.cursor else {
                return found;
            };
            request.cursor = Some(cursor);
            request.version = ReadVersion::Latest;
        }
    }

    fn check_watchers(&mut self) {
        for watcher in &mut self.watchers {
            let initial = watcher.last == 0;
            while let Some(event) = watcher.watch.try_next().unwrap() {
                let (object, told) = match &event {
                    WatchEvent::Added(object) => (object, "added"),
                    WatchEvent::Modified(object) => (object, "modified"),
                    WatchEvent::Deleted(object) => (object, "deleted"),
                    other => panic!("not asked for: {other:?}"),
                };
                let known = watcher.view.contains_key(object.name());
                assert_eq!(known, told != "added", "{told} {}", object.name());
                // The initial state comes by name, all else by version.
                assert!(initial || object.revision() > watcher.last);
                watcher.last = watcher.last.max(object.revision());
                if told == "deleted" {
                    watcher.view.remove(object.name());
                } else {
                    watcher
                        .view
                        .insert(object.name().to_owned(), object.revision());
                }
            }
            assert_eq!(watcher.view, view(&self.state, watcher.selector));
            assert_eq!(watcher.watch.bookmark().unwrap(), self.api.0.revision());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn the_engine_does_what_the_model_does(steps in prop::collection::vec(step(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut world = World::new();
            for (index, step) in steps.into_iter().enumerate() {
                world.step(step).await;
                if index % 4 == 0 {
                    world.check_watchers();
                }
            }
            world.check_watchers();
            let revision = world.api.0.revision();
            assert_eq!(world.pages(revision), view(&world.state, 0));
        });
    }
}
