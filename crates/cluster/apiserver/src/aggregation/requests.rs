//! Writes of APIServices by the server itself.

use std::sync::Arc;

use longshore_engine::{
    Create, Delete, DeleteOptions, Engine, Error, Patch, ReadVersion, Subresource, Target,
    WriteOptions,
};
use longshore_model::{KindInfo, PatchKind, time};
use serde_json::{Value, json};

use super::{availability::Availability, registration::Change};

fn options() -> WriteOptions {
    WriteOptions {
        user_agent: Some("kube-apiserver".into()),
        ..WriteOptions::default()
    }
}

fn target(kind: &Arc<KindInfo>, name: &str) -> Target {
    Target {
        kind: kind.clone(),
        namespace: None,
        name: name.to_owned(),
    }
}

/// Sets the condition `Available`, if it differs.
///
/// # Errors
/// The object cannot be written.
pub(super) async fn set_condition(
    engine: &Engine,
    kind: &Arc<KindInfo>,
    name: &str,
    availability: &Availability,
) -> Result<(), Error> {
    let object = match engine.get(kind, None, name, ReadVersion::Latest) {
        Ok(object) => object,
        Err(Error::NotFound(_)) => return Ok(()),
        Err(error) => return Err(error),
    };
    let now = time::seconds(engine.now());
    let Some(conditions) = availability.conditions(&object.value(), &now) else {
        return Ok(());
    };
    let patch = Patch {
        target: target(kind, name),
        subresource: Subresource::Status,
        kind: PatchKind::Merge,
        body: json!({
            "metadata": {"resourceVersion": object.revision().to_string()},
            "status": {"conditions": conditions},
        }),
        options: options(),
    };
    written(engine.patch(patch).await)
}

/// Executes a change.
///
/// # Errors
/// The object cannot be written.
pub(super) async fn execute(
    engine: &Engine,
    kind: &Arc<KindInfo>,
    change: Change,
) -> Result<(), Error> {
    match change {
        Change::Create(object) => {
            let create = Create {
                kind: kind.clone(),
                namespace: None,
                object,
                options: options(),
            };
            match engine.create(create).await {
                Err(Error::AlreadyExists(_)) => Ok(()),
                done => written(done),
            }
        }
        Change::Update(name, mut spec) => {
            let fields = ["service", "caBundle", "insecureSkipTLSVerify"];
            fields.iter().for_each(|field| spec[*field] = Value::Null);
            let patch = Patch {
                target: target(kind, &name),
                subresource: Subresource::None,
                kind: PatchKind::Merge,
                body: json!({"spec": spec}),
                options: options(),
            };
            written(engine.patch(patch).await)
        }
        Change::Delete(name) => {
            let delete = Delete {
                target: target(kind, &name),
                options: DeleteOptions::default(),
            };
            written(engine.delete(delete).await)
        }
    }
}

/// Ignores a conflict or a missing object. The object is read again after its event.
fn written<T>(result: Result<T, Error>) -> Result<(), Error> {
    match result {
        Ok(_) | Err(Error::NotFound(_) | Error::Conflict { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
