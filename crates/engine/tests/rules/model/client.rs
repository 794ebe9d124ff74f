//! A client: does operations on the engine and notes what came back, and
//! between which revisions.

use std::sync::Arc;

use longshore_engine::{
    Bind, Create, Delete, DeleteCollection, DeleteOptions, Engine, Error, Finalize, ListRequest,
    Object, Patch, ReadVersion, Subresource, Update, WriteOptions, Written,
};
use longshore_model::{FieldSelector, LabelSelector, PatchKind};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    operation::{At, Change, Operation, Precondition, Scope},
    thing::{Key, Kind, Thing, body, image},
};

/// What an operation answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// An error, by its reason.
    Refused(String),
    Things(Vec<(Key, Thing)>),
    /// A read, of the state at a version.
    State(u64, Vec<(Key, Thing)>),
    Done,
}

/// An operation and what came of it.
#[derive(Debug, Clone)]
pub struct Record {
    pub operation: Operation,
    pub note: Note,
}

/// What is not known before an operation is done.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Note {
    /// The newest revision before and after.
    pub before: u64,
    pub after: u64,
    /// The content an update sent; the version any write sent.
    pub sent: Option<Thing>,
    pub version: Option<u64>,
    /// The version a read asked for.
    pub asked: Option<u64>,
    pub outcome: Outcome,
}

pub fn labels(selector: u8) -> LabelSelector {
    let text = ["", "l=1", "l!=1", "l in (0,2)", ""];
    text[usize::from(selector) % 5].parse().unwrap()
}

pub fn fields(scope: &Scope) -> FieldSelector {
    let text = match (scope.selector % 5, scope.kind) {
        (4, Kind::Pod) => "spec.nodeName=node1",
        (4, _) => "metadata.name!=o1",
        _ => "",
    };
    text.parse().unwrap()
}

pub fn request(scope: &Scope) -> ListRequest {
    ListRequest {
        namespace: scope.namespace.map(str::to_owned),
        labels: labels(scope.selector),
        fields: fields(scope),
        ..ListRequest::of(scope.kind.info())
    }
}

/// Does one operation. Watches are not the client's own work.
pub async fn act(engine: &Engine, operation: Operation) -> Record {
    let before = engine.revision();
    let mut call = Call {
        engine,
        sent: None,
        version: None,
        asked: None,
        before,
    };
    let outcome = call.run(&operation).await;
    let (sent, version, asked) = (call.sent, call.version, call.asked);
    let after = engine.revision();
    Record {
        operation,
        note: Note {
            before,
            after,
            sent,
            version,
            asked,
            outcome,
        },
    }
}

struct Call<'a> {
    engine: &'a Engine,
    before: u64,
    sent: Option<Thing>,
    version: Option<u64>,
    asked: Option<u64>,
}

fn options(dry: bool) -> WriteOptions {
    WriteOptions {
        dry_run: dry,
        user_agent: Some("model".into()),
        ..WriteOptions::default()
    }
}

fn one(kind: Kind, result: Result<Arc<Object>, Error>) -> Outcome {
    match result {
        Ok(object) => Outcome::Things(vec![(Key::of(kind, &object), Thing::of(kind, &object))]),
        Err(error) => refused(&error),
    }
}

fn refused(error: &Error) -> Outcome {
    Outcome::Refused(error.status().reason.as_str().to_owned())
}

fn written(result: Result<Written, Error>) -> Result<Arc<Object>, Error> {
    result.map(|written| written.object)
}

fn finalizers(bits: u8) -> Vec<&'static str> {
    let all = ["a.b/c", "d.e/f"];
    all.into_iter()
        .enumerate()
        .filter(|(i, _)| bits & (1 << i) != 0)
        .map(|(_, name)| name)
        .collect()
}

impl Call<'_> {
    async fn run(&mut self, operation: &Operation) -> Outcome {
        match operation {
            Operation::Create {
                key,
                label,
                value,
                finalizer,
                generated,
                dry,
            } => {
                let mut object = body(key, *label, *value, *finalizer);
                if *generated {
                    object["metadata"]["name"] = Value::Null;
                    object["metadata"]["generateName"] = json!("g-");
                }
                let target = key.target();
                let create = Create {
                    kind: target.kind,
                    namespace: target.namespace,
                    object,
                    options: options(*dry),
                };
                one(key.kind, written(self.engine.create(create).await))
            }
            Operation::Update {
                key,
                change,
                version,
                dry,
            } => self.update(key, *change, *version, *dry).await,
            Operation::Patch {
                key,
                sort,
                change,
                version,
                dry,
            } => {
                let version = self.version(key, *version);
                let body = patch(key.kind, *sort, *change, version);
                let patch = Patch {
                    target: key.target(),
                    subresource: Subresource::None,
                    kind: *sort,
                    body,
                    options: options(*dry),
                };
                one(key.kind, written(self.engine.patch(patch).await))
            }
            Operation::Status { key, sort, value } => {
                let (field, value) = match key.kind {
                    Kind::Job => ("active", json!(value)),
                    _ => ("message", json!(format!("s{value}"))),
                };
                let body = match sort {
                    PatchKind::Json => {
                        json!([{"op": "add", "path": format!("/status/{field}"), "value": value}])
                    }
                    _ => json!({"status": {field: value}, "metadata": {"labels": {"l": "9"}}}),
                };
                let patch = Patch {
                    target: key.target(),
                    subresource: Subresource::Status,
                    kind: *sort,
                    body,
                    options: options(false),
                };
                one(key.kind, written(self.engine.patch(patch).await))
            }
            Operation::Delete {
                key,
                propagation,
                grace,
                version,
            } => {
                let version = self
                    .version(key, *version)
                    .map(|version| version.to_string());
                let options = DeleteOptions {
                    propagation: *propagation,
                    grace_seconds: *grace,
                    version,
                    ..DeleteOptions::default()
                };
                let deleted = self
                    .engine
                    .delete(Delete {
                        target: key.target(),
                        options,
                    })
                    .await;
                one(key.kind, deleted.map(|deleted| deleted.object().clone()))
            }
            Operation::DeleteCollection { scope, grace } => {
                let list = request(scope);
                let options = DeleteOptions {
                    grace_seconds: *grace,
                    ..DeleteOptions::default()
                };
                let delete = DeleteCollection {
                    kind: list.kind,
                    namespace: list.namespace,
                    labels: list.labels,
                    fields: list.fields,
                    options,
                };
                match self.engine.delete_collection(delete).await {
                    Ok(objects) => Outcome::Things(things(scope.kind, &objects)),
                    Err(error) => refused(&error),
                }
            }
            Operation::Bind { name, node } => {
                let bind = Bind {
                    namespace: "default".into(),
                    name: name.clone(),
                    node: format!("node{node}"),
                    ..Bind::default()
                };
                match self.engine.bind(bind).await {
                    Ok(()) => Outcome::Done,
                    Err(error) => refused(&error),
                }
            }
            Operation::Finalize { name } => {
                let object = json!({"metadata": {"name": name}, "spec": {"finalizers": []}});
                let finalize = Finalize {
                    name: name.clone(),
                    object,
                    dry_run: false,
                };
                one(Kind::Namespace, self.engine.finalize(finalize).await)
            }
            Operation::Get { key, at } => self.get(key, *at),
            Operation::List { scope, at, limit } => self.list(scope, *at, *limit).await,
            Operation::Forget => {
                self.engine.expire_history().await;
                Outcome::Done
            }
            Operation::Watch { .. } => Outcome::Done,
        }
    }

    fn read(&self, key: &Key) -> Option<Arc<Object>> {
        let target = key.target();
        self.engine
            .get(
                &target.kind,
                target.namespace.as_deref(),
                &target.name,
                ReadVersion::Latest,
            )
            .ok()
    }

    /// The version to send along.
    fn version(&mut self, key: &Key, version: Precondition) -> Option<u64> {
        self.version = match version {
            Precondition::None => None,
            // An object that is not there has no version; a write then finds that out.
            Precondition::Fresh => self.read(key).map(|object| object.revision()),
            Precondition::Stale => Some(1),
        };
        self.version
    }

    /// Reads, changes, and puts back.
    async fn update(
        &mut self,
        key: &Key,
        change: Change,
        version: Precondition,
        dry: bool,
    ) -> Outcome {
        let mut object = match self.read(key) {
            Some(object) => object.value(),
            None => body(key, 0, 0, false),
        };
        self.version = match version {
            Precondition::None => None,
            Precondition::Fresh => object["metadata"]["resourceVersion"]
                .as_str()
                .map(|version| version.parse().unwrap()),
            Precondition::Stale => Some(1),
        };
        object["metadata"]["resourceVersion"] = self
            .version
            .map_or(Value::Null, |version| version.to_string().into());
        match change {
            Change::Finalizers(bits) => object["metadata"]["finalizers"] = json!(finalizers(bits)),
            Change::Value(value) if key.kind == Kind::ConfigMap => {
                object["data"]["a"] = json!(value.to_string())
            }
            Change::Value(value) if key.kind == Kind::Pod => {
                object["spec"]["containers"][0]["image"] = json!(image(value))
            }
            Change::Value(value) if key.kind == Kind::Job => {
                object["spec"]["parallelism"] = json!(value)
            }
            Change::Label(label) | Change::Value(label) => {
                object["metadata"]["labels"]["l"] = json!(label.to_string())
            }
        }
        self.sent = Some(Thing::read(key.kind, &object));
        let update = Update {
            target: key.target(),
            subresource: Subresource::None,
            object,
            options: options(dry),
        };
        one(key.kind, written(self.engine.update(update).await))
    }

    fn asked(&mut self, at: At) -> ReadVersion {
        match at {
            At::Latest => ReadVersion::Latest,
            At::Ago(ago) => {
                let asked = self.before.saturating_sub(u64::from(ago)).max(1);
                self.asked = Some(asked);
                ReadVersion::Exact(asked)
            }
        }
    }

    fn get(&mut self, key: &Key, at: At) -> Outcome {
        let (target, at) = (key.target(), self.asked(at));
        one(
            key.kind,
            self.engine
                .get(&target.kind, target.namespace.as_deref(), &target.name, at),
        )
    }

    async fn list(&mut self, scope: &Scope, at: At, limit: Option<usize>) -> Outcome {
        let mut list = ListRequest {
            limit,
            version: self.asked(at),
            ..request(scope)
        };
        let (mut found, mut revision, mut remaining) = (Vec::new(), None, None);
        loop {
            let page = match self.engine.list(&list) {
                Ok(page) => page,
                Err(error) => return refused(&error),
            };
            assert_eq!(
                *revision.get_or_insert(page.revision),
                page.revision,
                "a page of another version"
            );
            if let Some(expected) = remaining {
                assert_eq!(
                    page.items.len() as u64 + page.remaining.unwrap_or_default(),
                    expected,
                    "items remained"
                );
            }
            remaining = page.remaining;
            found.extend(things(scope.kind, &page.items));
            let Some(cursor) = page.cursor else {
                return Outcome::State(page.revision, found);
            };
            assert_eq!(
                Some(page.items.len()),
                limit,
                "a page that is not full goes on"
            );
            list.cursor = Some(cursor);
            list.version = ReadVersion::Latest;
            // Others write between the pages.
            tokio::task::yield_now().await;
        }
    }
}

fn things(kind: Kind, objects: &[Arc<Object>]) -> Vec<(Key, Thing)> {
    objects
        .iter()
        .map(|object| (Key::of(kind, object), Thing::of(kind, object)))
        .collect()
}

/// The body of a patch.
fn patch(kind: Kind, sort: PatchKind, change: Change, version: Option<u64>) -> Value {
    // Namespaces have no value to change: a label it is.
    let change = match (kind, change) {
        (Kind::Namespace, Change::Value(value)) => Change::Label(value),
        (_, change) => change,
    };
    let (path, field, value) = match change {
        Change::Label(label) => (
            "/metadata/labels/l",
            json!({"metadata": {"labels": {"l": label.to_string()}}}),
            json!(label.to_string()),
        ),
        Change::Finalizers(bits) => (
            "/metadata/finalizers",
            json!({"metadata": {"finalizers": finalizers(bits)}}),
            json!(finalizers(bits)),
        ),
        Change::Value(value) => match kind {
            Kind::Pod => (
                "/spec/containers/0/image",
                json!({"spec": {"containers": [{"name": "c", "image": image(value)}]}}),
                json!(image(value)),
            ),
            Kind::Job => (
                "/spec/parallelism",
                json!({"spec": {"parallelism": value}}),
                json!(value),
            ),
            _ => (
                "/data/a",
                json!({"data": {"a": value.to_string()}}),
                json!(value.to_string()),
            ),
        },
    };
    let version = version.map(|version| version.to_string());
    match sort {
        PatchKind::Json => {
            let mut steps = vec![json!({"op": "add", "path": path, "value": value})];
            if let Some(version) = version {
                steps.push(
                    json!({"op": "replace", "path": "/metadata/resourceVersion", "value": version}),
                );
            }
            steps.into()
        }
        _ => {
            let mut body = field;
            if let Some(version) = version {
                body["metadata"]["resourceVersion"] = json!(version);
            }
            body
        }
    }
}
