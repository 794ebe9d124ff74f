//! Writes that send an object that was read, or a part of it.

use longshore_engine::{Patch, Subresource, Update, WriteOptions};
use longshore_model::PatchKind;
use serde_json::{Value, json};

use super::{Execution, Outcome};
use crate::model::{
    body::{apply_change, options, status},
    kind::{Key, Kind},
    model_object::{ModelObject, body},
    operation::{Change, Precondition, StatusWrite},
};

impl Execution<'_> {
    /// The resource version to send.
    pub(super) fn version(&mut self, key: &Key, version: Precondition) -> Option<u64> {
        // An object that does not exist has no version; the write then fails.
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
            target: key.target(self.api_version),
            subresource,
            kind: sort,
            body,
            options,
        };
        self.written(key.kind, self.engine.patch(patch).await)
    }

    /// Replaces an object that was read and changed.
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
            // The model only knows the owners of ConfigMaps, so other updates omit them.
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.remove("managedFields");
            }
        }
        self.sent = Some(ModelObject::read(key.kind, &object));
        let update = Update {
            target: key.target(self.api_version),
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
        apply_change(key.kind, &mut object, change);
        self.put(key, Subresource::None, object, version, dry).await
    }

    pub(super) async fn status(
        &mut self,
        key: &Key,
        how: StatusWrite,
        value: u8,
        dry: bool,
    ) -> Outcome {
        let (field, value) = status(key.kind, value);
        let sort = match how {
            StatusWrite::Patch(sort) => sort,
            StatusWrite::Put(version) => {
                let Some(object) = self.read(key) else {
                    return Outcome::Rejected("NotFound".into());
                };
                let mut object = object.value();
                object["status"][field] = value;
                apply_change(key.kind, &mut object, Change::Label(9));
                apply_change(key.kind, &mut object, Change::Value(9));
                return self
                    .put(key, Subresource::Status, object, version, dry)
                    .await;
            }
        };
        let body = match (sort, key.kind) {
            // Shoes are created without a status.
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
