//! The loop: watches both kinds, restores the defaults, and writes the condition.

use std::sync::Arc;

use futures::future;
use longshore_client::{Cache, Cluster, DeleteOptions, Error, Patch, View, kinds::Any};
use longshore_model::{
    flow_control::{self, CONSUMER, DANGLING, DefaultObject, GROUP, LEVELS, PRODUCER, SCHEMAS},
    time,
};
use serde_json::{Value, json};

use super::revise::{Change, change};
use crate::{
    caches::Caches,
    queue::{Next, Queue},
    reconcile::{self, feed},
};

/// The controller's name in the log.
const NAME: &str = "flow control";
/// The number of workers.
const WORKERS: usize = 1;

/// An object to reconcile.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Key {
    Level(String),
    Schema(String),
}

/// The objects of a kind.
struct Objects {
    view: View<Any>,
    cache: Cache<Any>,
    defaults: &'static [DefaultObject],
}

struct Controller {
    levels: Objects,
    schemas: Objects,
    queue: Queue<Key>,
}

/// Runs the controller until its cluster is closed.
pub(crate) async fn run(cluster: Cluster, caches: Arc<Caches>) {
    let objects = |kind: &str, defaults| {
        let (info, cache) = caches.of(GROUP, kind)?;
        Some(Objects {
            view: cluster.view_of::<Any>(info.clone()).field_manager(PRODUCER),
            cache: cache.clone(),
            defaults,
        })
    };
    let (Some(levels), Some(schemas)) = (
        objects("PriorityLevelConfiguration", LEVELS),
        objects("FlowSchema", SCHEMAS),
    ) else {
        return;
    };
    let controller = Controller {
        levels,
        schemas,
        queue: Queue::new(&caches.clock),
    };
    let levels = feed(NAME, &controller.levels.cache, |key, _| {
        controller.add_schemas_of(&key.name);
        controller.queue.add(Key::Level(key.name));
    });
    let schemas = feed(NAME, &controller.schemas.cache, |key, _| {
        controller.queue.add(Key::Schema(key.name));
    });
    // The cache does not report default objects that do not exist.
    for level in LEVELS {
        controller.queue.add(Key::Level(level.name.to_owned()));
    }
    for schema in SCHEMAS {
        controller.queue.add(Key::Schema(schema.name.to_owned()));
    }
    let feeds = future::join(levels, schemas);
    let reconcile = async |key: Key| controller.reconcile(key).await;
    reconcile::run(NAME, WORKERS, &controller.queue, feeds, reconcile).await;
}

/// Returns the name of the level to which a FlowSchema refers.
fn level_of(schema: &Value) -> &str {
    let level = &schema["spec"]["priorityLevelConfiguration"]["name"];
    level.as_str().unwrap_or_default()
}

/// Returns the condition if it differs from the FlowSchema's condition.
fn condition(schema: &Value, exists: bool, now: &str) -> Option<Value> {
    let wanted = flow_control::dangling(level_of(schema), exists, now);
    let mut known = schema["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten();
    let is_same = |known: &Value| {
        let mut fields = ["type", "status", "reason", "message"].iter();
        fields.all(|field| known[*field] == wanted[*field])
    };
    match known.find(|known| known["type"] == DANGLING) {
        Some(known) if is_same(known) => None,
        _ => Some(wanted),
    }
}

impl Objects {
    /// Updates the object of a name to its default.
    async fn keep(&self, name: &str) -> Result<(), Error> {
        let default = self.defaults.iter().find(|default| default.name == name);
        let stored = self.cache.get(None, name);
        let stored = stored.map(|item| item.raw()).transpose()?;
        let uid = stored
            .as_ref()
            .and_then(|stored| stored["metadata"]["uid"].as_str());
        let options = DeleteOptions {
            uid: uid.map(str::to_owned),
            ..DeleteOptions::background()
        };
        let done = match change(default, stored) {
            Change::None => Ok(()),
            Change::Create(object) => self.view.create(&object).await.map(drop),
            Change::Replace(object) => self.view.replace(name, &object).await.map(drop),
            Change::Delete => self.view.delete(name, &options).await,
        };
        match done {
            // The cache will report the newer state.
            Err(error)
                if error.is_already_exists() || error.is_conflict() || error.is_not_found() =>
            {
                Ok(())
            }
            done => done,
        }
    }
}

impl Controller {
    /// Queues the FlowSchemas that refer to a level.
    fn add_schemas_of(&self, level: &str) {
        let schemas = self.schemas.cache.snapshot();
        for schema in schemas.iter() {
            // Decodes only one field: levels rarely change, but all of them are new at the start.
            let name = schema.field::<String>(&["spec", "priorityLevelConfiguration", "name"]);
            if name.is_ok_and(|name| name.as_deref() == Some(level)) {
                self.queue.add(Key::Schema(schema.name().to_owned()));
            }
        }
    }

    async fn reconcile(&self, key: Key) -> Result<Next, Error> {
        match key {
            Key::Level(name) => self.levels.keep(&name).await?,
            Key::Schema(name) => {
                self.schemas.keep(&name).await?;
                self.report(&name).await?;
            }
        }
        Ok(Next::Done)
    }

    /// Writes the condition of a FlowSchema.
    async fn report(&self, name: &str) -> Result<(), Error> {
        let Some(schema) = self.schemas.cache.get(None, name) else {
            return Ok(());
        };
        let schema = schema.raw()?;
        let exists = self.levels.cache.get(None, level_of(&schema)).is_some();
        let now = time::seconds(self.queue.clock().now());
        let Some(condition) = condition(&schema, exists, &now) else {
            return Ok(());
        };
        let status = json!({"status": {"conditions": [condition]}});
        let patch = Patch::apply(status, CONSUMER, true);
        match self.schemas.view.patch_status(name, &patch).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_condition_is_written_only_if_it_changes() {
        let mut schema = json!({"spec": {"priorityLevelConfiguration": {"name": "a"}}});
        let first = condition(&schema, true, "t1");
        assert_eq!(first, Some(flow_control::dangling("a", true, "t1")));
        schema["status"]["conditions"] = json!([{"type": "Other"}, first]);
        assert_eq!(condition(&schema, true, "t2"), None);
        let dangling = flow_control::dangling("a", false, "t3");
        assert_eq!(condition(&schema, false, "t3"), Some(dangling));
        schema["spec"]["priorityLevelConfiguration"]["name"] = "b".into();
        let other = flow_control::dangling("b", true, "t4");
        assert_eq!(condition(&schema, true, "t4"), Some(other));
    }
}
