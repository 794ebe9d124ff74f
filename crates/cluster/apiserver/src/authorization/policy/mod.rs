//! The default roles and bindings, which every cluster with RBAC has. They are
//! created when the server starts, and brought up to date.

mod bindings;
mod controller_roles;
mod objects;
mod reconcile;
mod system_roles;
mod table;
mod user_roles;

use longshore_engine::{
    Create, Delete, DeleteOptions, Engine, Error, ReadVersion, Subresource, Target, Update,
    WriteOptions,
};

use self::{
    objects::DefaultObject,
    reconcile::{Change, reconcile},
};
use super::GROUP;

/// Creates the missing default objects, and updates default objects that lack permissions or
/// subjects.
pub(crate) async fn ensure(engine: &Engine) -> Result<(), Error> {
    let mut missing = Vec::new();
    for default in objects::all() {
        let Some(kind) = engine.find(GROUP, "v1", default.plural) else {
            continue;
        };
        let found = engine.get(&kind, default.namespace, &default.name, ReadVersion::Latest);
        let stored = match found {
            Ok(stored) => stored,
            Err(Error::NotFound(_)) => {
                missing.push(Create {
                    kind,
                    namespace: default.namespace.map(str::to_owned),
                    object: default.object.clone(),
                    options: options(),
                });
                continue;
            }
            Err(error) => return Err(error),
        };
        let target = Target {
            kind,
            namespace: default.namespace.map(str::to_owned),
            name: default.name.clone(),
        };
        let change = reconcile(&stored.value(), &default.object);
        apply(engine, target, default, change).await?;
    }
    engine.create_missing(missing).await
}

fn options() -> WriteOptions {
    WriteOptions {
        user_agent: Some("kube-apiserver".to_owned()),
        ..WriteOptions::default()
    }
}

async fn apply(
    engine: &Engine,
    target: Target,
    default: &DefaultObject,
    change: Change,
) -> Result<(), Error> {
    match change {
        Change::None => Ok(()),
        Change::Update(object) => {
            let update = Update {
                target,
                subresource: Subresource::None,
                object,
                options: options(),
            };
            engine.update(update).await.map(drop)
        }
        Change::Recreate => {
            let (kind, namespace) = (target.kind.clone(), target.namespace.clone());
            let options = DeleteOptions::default();
            engine.delete(Delete { target, options }).await?;
            let create = Create {
                kind,
                namespace,
                object: default.object.clone(),
                options: self::options(),
            };
            engine.create(create).await.map(drop)
        }
    }
}
