//! Writes that send what was read before, or a part of it.

use longshore_engine::{Patch, Subresource, Update, WriteOptions};
use longshore_model::PatchKind;
use serde_json::{Value, json};

use super::{Doing, Outcome};
use crate::model::{
    body::{make, options, status},
    kind::{Key, Kind},
    operation::{Change, How, Precondition},
    thing::{Thing, body},
};

impl Doing<'_> {
    /// The version to send along.
    pub(super) fn version(&mut self, key: &Key, version: Precondition) -> Option<u64> {
        // An object that is not there has no version; a write then finds that out.
        let read = || self.read(key).map(|object| object.revision());
        self.version = sent_version(version, read);
        self.version
    }

    pub(super) async fn patch(
        &self,
        key: &Key,
        subresource: Subresource,
        sort: PatchKind,
        body: Value,
        options: WriteOptions,
    ) -> Outcome {
        let patch = Patch {
            target: key.target(self.via),
            subresource,
            kind: sort,
            body,
            options,
        };
        self.written(key.kind, self.engine.patch(patch).await)
    }

    /// Puts back what was read and changed.
    async fn put(
        &mut self,
        key: &Key,
        subresource: Subresource,
        mut object: Value,
        version: Precondition,
        dry: bool,
    ) -> Outcome {
        let metadata = &object["metadata"];
        let read = || metadata["resourceVersion"].as_str()?.parse().ok();
        self.version = sent_version(version, read);
        object["metadata"]["resourceVersion"] = self
            .version
            .map_or(Value::Null, |version| version.to_string().into());
        if key.kind != Kind::ConfigMap {
            // Who owns what is only known of ConfigMaps, and not sent of others.
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.remove("managedFields");
            }
        }
        self.sent = Some(Thing::read(key.kind, &object));
        let update = Update {
            target: key.target(self.via),
            subresource,
            object,
            options: options(dry),
        };
        self.written(key.kind, self.engine.update(update).await)
    }

    pub(super) async fn update(
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
        make(key.kind, &mut object, change);
        self.put(key, Subresource::None, object, version, dry).await
    }

    pub(super) async fn status(&mut self, key: &Key, how: How, value: u8, dry: bool) -> Outcome {
        let (field, value) = status(key.kind, value);
        let sort = match how {
            How::Patch(sort) => sort,
            How::Put(version) => {
                let Some(object) = self.read(key) else {
                    return Outcome::Refused("NotFound".into());
                };
                let mut object = object.value();
                object["status"][field] = value;
                make(key.kind, &mut object, Change::Label(9));
                make(key.kind, &mut object, Change::Value(9));
                return self
                    .put(key, Subresource::Status, object, version, dry)
                    .await;
            }
        };
        let body = match (sort, key.kind) {
            // Shoes come without a status.
            (PatchKind::Json, Kind::Shoe) => {
                json!([{"op": "add", "path": "/status", "value": {field: value}}])
            }
            (PatchKind::Json, _) => {
                json!([{"op": "add", "path": format!("/status/{field}"), "value": value}])
            }
            _ => json!({"status": {field: value}, "metadata": {"labels": {"l": "9"}}}),
        };
        self.patch(key, Subresource::Status, sort, body, options(dry))
            .await
    }
}

fn sent_version(version: Precondition, read: impl FnOnce() -> Option<u64>) -> Option<u64> {
    match version {
        Precondition::None => None,
        Precondition::Fresh => read(),
        Precondition::Stale => Some(1),
    }
}
