//! Helpers for the tests.

#![allow(dead_code, clippy::unwrap_used, missing_docs, unreachable_pub)]

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering},
};

use jiff::{SignedDuration, Timestamp};
use longshore_engine::{
    Clock, Create, Delete, DeleteOptions, Deleted, Engine, Error, FieldValidation, Ids,
    ListRequest, Object, Options, Page, Patch, ReadVersion, Storage, Subresource, Target, Update,
    Watch, WatchEvent, WriteOptions, Written,
};
use longshore_model::{KindInfo, PatchKind};
use serde_json::{Value, json};

pub struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        "2026-01-02T03:04:05.678Z".parse().unwrap()
    }
}

/// A clock that the test advances.
pub struct ManualClock(Mutex<Timestamp>);

impl Default for ManualClock {
    fn default() -> Self {
        Self(Mutex::new(FixedClock.now()))
    }
}

impl ManualClock {
    /// Advances the clock.
    pub fn advance(&self, time: SignedDuration) {
        *self.0.lock().unwrap() += time;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }
}

/// A deterministic generator: `uid-1`, `uid-2`; suffixes `00001`, `00002`.
#[derive(Default)]
pub struct Counting(AtomicU64, AtomicU64);

impl Ids for Counting {
    fn uid(&self) -> String {
        format!("uid-{}", self.0.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn suffix(&self) -> String {
        // Each suffix comes three times, so that generated names collide.
        format!("{:05}", self.1.fetch_add(1, Ordering::Relaxed) / 3)
    }
}

#[derive(Clone)]
pub struct Api(pub Engine);

pub fn options(storage: Storage) -> Options {
    Options {
        storage,
        clock: Arc::new(FixedClock),
        ids: Arc::new(Counting::default()),
        ..Options::default()
    }
}

pub fn api() -> Api {
    Api(Engine::open(options(Storage::Memory)).unwrap())
}

pub fn kind(plural: &str) -> Arc<KindInfo> {
    let info = longshore_model::kind::BUILTIN
        .iter()
        .find(|info| info.plural == plural);
    Arc::new(info.unwrap().clone())
}

/// A pod without the volume of its service account, so that an update may send it again.
pub fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {
        "automountServiceAccountToken": false, "containers": [{"name": "c", "image": "i:1"}]}})
}

pub fn job(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]}}}})
}

pub fn config(name: &str) -> Value {
    json!({"metadata": {"name": name}, "data": {"a": "1"}})
}

impl Api {
    fn namespace(kind: &KindInfo) -> Option<String> {
        kind.is_namespaced().then(|| "default".to_owned())
    }

    pub fn target(plural: &str, name: &str) -> Target {
        let kind = kind(plural);
        Target {
            namespace: Self::namespace(&kind),
            kind,
            name: name.to_owned(),
        }
    }

    pub async fn create_with(
        &self,
        plural: &str,
        object: Value,
        options: WriteOptions,
    ) -> Result<Written, Error> {
        let kind = kind(plural);
        let namespace = Self::namespace(&kind);
        self.0
            .create(Create {
                kind,
                namespace,
                object,
                options,
            })
            .await
    }

    pub async fn create(&self, plural: &str, object: Value) -> Result<Arc<Object>, Error> {
        Ok(self
            .create_with(plural, object, WriteOptions::default())
            .await?
            .object)
    }

    pub async fn create_in(
        &self,
        namespace: &str,
        plural: &str,
        object: Value,
    ) -> Result<Arc<Object>, Error> {
        let (kind, namespace) = (kind(plural), Some(namespace.to_owned()));
        let options = WriteOptions::default();
        Ok(self
            .0
            .create(Create {
                kind,
                namespace,
                object,
                options,
            })
            .await?
            .object)
    }

    pub fn get(&self, plural: &str, name: &str) -> Result<Arc<Object>, Error> {
        let kind = kind(plural);
        self.0.get(
            &kind,
            Self::namespace(&kind).as_deref(),
            name,
            ReadVersion::Latest,
        )
    }

    pub async fn update_part(
        &self,
        plural: &str,
        name: &str,
        subresource: Subresource,
        object: Value,
    ) -> Result<Arc<Object>, Error> {
        let options = WriteOptions::default();
        let target = Self::target(plural, name);
        Ok(self
            .0
            .update(Update {
                target,
                subresource,
                object,
                options,
            })
            .await?
            .object)
    }

    pub async fn update(
        &self,
        plural: &str,
        name: &str,
        object: Value,
    ) -> Result<Arc<Object>, Error> {
        self.update_part(plural, name, Subresource::None, object)
            .await
    }

    pub async fn patch_with(
        &self,
        target: Target,
        subresource: Subresource,
        kind: PatchKind,
        body: Value,
        field_validation: FieldValidation,
    ) -> Result<Written, Error> {
        let options = WriteOptions {
            field_validation,
            ..WriteOptions::default()
        };
        self.0
            .patch(Patch {
                target,
                subresource,
                kind,
                body,
                options,
            })
            .await
    }

    pub async fn merge(&self, plural: &str, name: &str, body: Value) -> Result<Arc<Object>, Error> {
        let target = Self::target(plural, name);
        let validation = FieldValidation::Warn;
        let written = self
            .patch_with(
                target,
                Subresource::None,
                PatchKind::Merge,
                body,
                validation,
            )
            .await;
        Ok(written?.object)
    }

    pub async fn merge_status(
        &self,
        plural: &str,
        name: &str,
        body: Value,
    ) -> Result<Arc<Object>, Error> {
        let target = Self::target(plural, name);
        let validation = FieldValidation::Warn;
        let written = self
            .patch_with(
                target,
                Subresource::Status,
                PatchKind::Merge,
                body,
                validation,
            )
            .await;
        Ok(written?.object)
    }

    pub async fn delete_with(
        &self,
        plural: &str,
        name: &str,
        options: DeleteOptions,
    ) -> Result<Deleted, Error> {
        self.0
            .delete(Delete {
                target: Self::target(plural, name),
                options,
            })
            .await
    }

    pub async fn delete(&self, plural: &str, name: &str) -> Result<Deleted, Error> {
        self.delete_with(plural, name, DeleteOptions::default())
            .await
    }

    pub fn list(&self, plural: &str) -> Page {
        self.0.list(&ListRequest::of(kind(plural))).unwrap()
    }

    pub async fn bind(&self, name: &str, node: &str) -> Result<(), Error> {
        let bind = longshore_engine::Bind {
            namespace: "default".into(),
            name: name.into(),
            node: node.into(),
            ..longshore_engine::Bind::default()
        };
        self.0.bind(bind).await
    }
}

/// The events that are available now, as `ADDED a`, `MODIFIED a`, ….
pub fn available_events(watch: &mut Watch) -> Vec<String> {
    let mut events = Vec::new();
    while let Some(event) = watch.try_next().unwrap() {
        events.push(match event {
            WatchEvent::Added(object) => format!("ADDED {}", object.name()),
            WatchEvent::Modified(object) => format!("MODIFIED {}", object.name()),
            WatchEvent::Deleted(object) => format!("DELETED {}", object.name()),
            WatchEvent::Unfiltered { before, after } => {
                let name = |object: Option<Arc<Object>>| object.map(|o| o.name().to_owned());
                format!("UNFILTERED {:?} {:?}", name(before), name(after))
            }
            WatchEvent::Bookmark(version) => format!("BOOKMARK {version}"),
            WatchEvent::InitialEventsEnd(version) => format!("END {version}"),
        });
    }
    events
}

pub fn names(page: &Page) -> Vec<&str> {
    page.items.iter().map(|object| object.name()).collect()
}

/// The code, the reason and the message of an error.
pub fn status<T: std::fmt::Debug>(result: Result<T, Error>) -> (u16, String, String) {
    let status = result.unwrap_err().status();
    (
        status.code,
        status.reason.as_str().to_owned(),
        status.message,
    )
}
