//! A client performs operations on the engine, and records the responses and the revisions
//! before and after.

mod read;
mod write;

use std::sync::Arc;

use longshore_engine::{
    Bind, Create, Delete, DeleteCollection, DeleteOptions, Engine, Error, Object, Subresource,
    Update, WriteOptions, Written,
};
use longshore_model::PatchKind;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    body::{configuration, options, patch, request},
    kind::{ApiVersion, Key, Kind, known},
    model_object::{FINALIZED, ModelObject, body},
    operation::{Call, Operation, Precondition},
};

/// The response to an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// An error, by its reason.
    Rejected(String),
    Objects(Vec<(Key, ModelObject)>),
    /// A read at a version.
    State(u64, Vec<(Key, ModelObject)>),
    /// A list whose continue token expired: the first pages, and the rest from another
    /// state.
    Inconsistent {
        first: (u64, Vec<(Key, ModelObject)>),
        rest: (u64, Vec<(Key, ModelObject)>),
    },
    Done,
}

/// A call and its response.
#[derive(Debug, Clone)]
pub struct Record {
    pub api_version: ApiVersion,
    pub operation: Operation,
    pub note: Note,
}

/// The results that are known only when an operation is done.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Note {
    /// The newest revision before and after.
    pub before: u64,
    pub after: u64,
    /// The content that an update sent; the version and UID that any write sent.
    pub sent: Option<ModelObject>,
    pub version: Option<u64>,
    pub uid: Option<String>,
    /// The version that a read requested.
    pub asked: Option<u64>,
    pub outcome: Outcome,
}

/// Performs one operation. Watches run in separate tasks.
pub async fn act(engine: &Engine, call: Call) -> Record {
    let Call {
        api_version,
        operation,
    } = call;
    let before = engine.revision();
    let mut doing = Execution {
        engine,
        api_version,
        sent: None,
        version: None,
        uid: None,
        asked: None,
        before,
    };
    let outcome = doing.run(&operation).await;
    let Execution {
        sent,
        version,
        uid,
        asked,
        ..
    } = doing;
    let after = engine.revision();
    let note = Note {
        before,
        after,
        sent,
        version,
        uid,
        asked,
        outcome,
    };
    Record {
        api_version,
        operation,
        note,
    }
}

struct Execution<'a> {
    engine: &'a Engine,
    api_version: ApiVersion,
    before: u64,
    sent: Option<ModelObject>,
    version: Option<u64>,
    uid: Option<String>,
    asked: Option<u64>,
}

fn rejected(error: &Error) -> Outcome {
    Outcome::Rejected(error.status().reason.as_str().to_owned())
}

impl Execution<'_> {
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
                let target = key.target(self.api_version);
                let create = Create {
                    kind: target.kind,
                    namespace: target.namespace,
                    object,
                    options: options(*dry),
                };
                self.written(key.kind, self.engine.create(create).await)
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
                self.patch(key, Subresource::None, *sort, body, options(*dry))
                    .await
            }
            Operation::Apply {
                key,
                manager,
                config,
                force,
                version,
                dry,
            } => {
                let version = self.version(key, *version);
                let body = configuration(key, config, version);
                let options = WriteOptions {
                    field_manager: Some((*manager).to_owned()),
                    force: *force,
                    ..options(*dry)
                };
                self.patch(key, Subresource::None, PatchKind::Apply, body, options)
                    .await
            }
            Operation::Status {
                key,
                how,
                value,
                dry,
            } => self.status(key, *how, *value, *dry).await,
            Operation::Delete {
                key,
                propagation,
                grace,
                version,
                uid,
                dry,
            } => {
                self.uid = match uid {
                    Precondition::None => None,
                    Precondition::Fresh => self.read(key).map(|object| object.uid().to_owned()),
                    Precondition::Stale => Some("other".to_owned()),
                };
                let version = self.version(key, *version);
                let options = DeleteOptions {
                    propagation: *propagation,
                    grace_seconds: *grace,
                    version: version.map(|version| version.to_string()),
                    uid: self.uid.clone(),
                    dry_run: *dry,
                    ..DeleteOptions::default()
                };
                let target = key.target(self.api_version);
                let deleted = self.engine.delete(Delete { target, options }).await;
                self.one(key.kind, deleted.map(|deleted| deleted.object().clone()))
            }
            Operation::DeleteCollection { scope, grace, dry } => {
                let list = request(scope, self.api_version);
                let options = DeleteOptions {
                    grace_seconds: *grace,
                    dry_run: *dry,
                    ..DeleteOptions::default()
                };
                let delete = DeleteCollection { list, options };
                match self.engine.delete_collection(delete).await {
                    Ok(page) => Outcome::Objects(self.model_objects(scope.kind, &page.items)),
                    Err(error) => rejected(&error),
                }
            }
            Operation::Bind { name, node, dry } => {
                let bind = Bind {
                    namespace: "default".into(),
                    name: name.clone(),
                    node: format!("node{node}"),
                    dry_run: *dry,
                    ..Bind::default()
                };
                match self.engine.bind(bind).await {
                    Ok(()) => Outcome::Done,
                    Err(error) => rejected(&error),
                }
            }
            Operation::Finalize { name, dry } => {
                let key = Key::new(Kind::Namespace, "", name);
                let mut object = body(&key, FINALIZED, 0, false);
                object["spec"] = json!({"finalizers": []});
                let finalize = Update {
                    target: key.target(self.api_version),
                    subresource: Subresource::Finalize,
                    object,
                    options: options(*dry),
                };
                self.written(Kind::Namespace, self.engine.update(finalize).await)
            }
            Operation::Get { key, at } => {
                let (target, at) = (key.target(self.api_version), self.asked(*at));
                let namespace = target.namespace.as_deref();
                let got = self.engine.get(&target.kind, namespace, &target.name, at);
                self.one(key.kind, got)
            }
            Operation::List { scope, at, limit } => self.list(scope, *at, *limit).await,
            Operation::ExpireHistory => {
                self.engine.expire_history().await;
                Outcome::Done
            }
            Operation::Watch { .. } | Operation::Follow { .. } => Outcome::Done,
        }
    }

    fn one(&self, kind: Kind, result: Result<Arc<Object>, Error>) -> Outcome {
        match result {
            Ok(object) => Outcome::Objects(vec![known(kind, self.api_version, &object)]),
            Err(error) => rejected(&error),
        }
    }

    fn written(&self, kind: Kind, result: Result<Written, Error>) -> Outcome {
        self.one(kind, result.map(|written| written.object))
    }

    fn model_objects(&self, kind: Kind, objects: &[Arc<Object>]) -> Vec<(Key, ModelObject)> {
        let one = |object: &Arc<Object>| known(kind, self.api_version, object);
        objects.iter().map(one).collect()
    }
}
