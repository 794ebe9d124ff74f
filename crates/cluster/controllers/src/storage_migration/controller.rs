//! The loop: watches migrations and executes their steps.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use longshore_client::{Cluster, Error, Item, View, kinds::Any};
use longshore_model::{FieldSelector, kind::builtin};

use super::{
    definition,
    facts::{FAILED, Migration, RUNNING, SUCCEEDED},
    objects::{self, End, Written},
    requests::store_status,
    resource::{self, Found},
    step::{self, Step},
};
use crate::{
    caches::Caches,
    queue::{Next, Queue},
    reconcile::{self, feed},
    refusal::message,
};

/// The controller's name in the log.
const NAME: &str = "storage-version-migrator";
/// The number of workers, as in Kubernetes.
const WORKERS: usize = 5;
/// The interval at which a resource that does not exist is looked up.
const LOOKUP_INTERVAL: Duration = Duration::from_secs(1);
/// The API group of migrations.
const GROUP: &str = "storagemigration.k8s.io";
const MIGRATION_RUNNING: &str = "MigrationRunning";
/// The error of a resource whose objects the garbage collector of Kubernetes does not
/// watch: Events.
const NOT_COLLECTED: &str = "resource does not exist in GC: %!w(<nil>)";

struct Controller {
    cluster: Cluster,
    migrations: View<Any>,
    definitions: View<Any>,
    caches: Arc<Caches>,
}

/// Runs the controller until its cluster is closed.
pub(crate) async fn run(cluster: Cluster, caches: Arc<Caches>) {
    let definition = builtin("apiextensions.k8s.io", "CustomResourceDefinition");
    let (Some((kind, cache)), Some(definition)) =
        (caches.of(GROUP, "StorageVersionMigration"), definition)
    else {
        return;
    };
    let queue: Queue<String> = Queue::new(&caches.clock);
    let controller = Controller {
        migrations: cluster.view_of::<Any>(kind.clone()),
        definitions: cluster.view_of::<Any>(Arc::new(definition.clone())),
        caches: caches.clone(),
        cluster,
    };
    let feeds = feed(NAME, cache, |key, _| {
        queue.add(key.name);
        // Other migrations of the resource may wait for this one.
        for item in cache.items() {
            queue.add(item.name().to_owned());
        }
    });
    let reconcile = async |name: String| controller.reconcile(&name).await;
    reconcile::run(NAME, WORKERS, &queue, feeds, reconcile).await;
}

impl Controller {
    async fn reconcile(&self, name: &str) -> Result<Next, Error> {
        let Some((_, cache)) = self.caches.of(GROUP, "StorageVersionMigration") else {
            return Ok(Next::Done);
        };
        let Some(item) = cache.get(None, name) else {
            return Ok(Next::Done);
        };
        let mut migration = Migration::of(&item)?;
        let all = cache.items();
        let all: Result<Vec<_>, _> = all.iter().map(Migration::of).collect();
        let now = self.caches.clock.now();
        match step::next(&migration, &all?) {
            Step::Wait => Ok(Next::Done),
            Step::Start => {
                let resource = &migration.resource;
                definition::start(&self.definitions, resource, name, now).await?;
                let message = step::running(None, None);
                migration.set(RUNNING, ("True", MIGRATION_RUNNING, &message), now);
                self.store(&item, &migration).await
            }
            Step::SetVersion => self.set_version(&item, migration, now).await,
            Step::Migrate => self.migrate(&item, migration, now).await,
            Step::Finish => {
                let (resource, success) = (&migration.resource, migration.is_true(SUCCEEDED));
                definition::finish(&self.definitions, resource, success, now).await?;
                let ended = ("False", "MigrationCompleted", "Migration completed");
                migration.set(RUNNING, ended, now);
                self.store(&item, &migration).await
            }
        }
    }

    async fn store(&self, item: &Item<Any>, migration: &Migration) -> Result<Next, Error> {
        store_status(&self.migrations, item, migration).await?;
        Ok(Next::Done)
    }

    async fn fail(
        &self,
        item: &Item<Any>,
        mut migration: Migration,
        message: &str,
        now: Timestamp,
    ) -> Result<Next, Error> {
        migration.set(
            FAILED,
            ("True", "StorageVersionMigrationFailed", message),
            now,
        );
        self.store(item, &migration).await
    }

    /// Stores the newest resource version of the resource.
    async fn set_version(
        &self,
        item: &Item<Any>,
        mut migration: Migration,
        now: Timestamp,
    ) -> Result<Next, Error> {
        match resource::find(&self.cluster, &migration.resource).await? {
            Found::Nothing if step::may_appear(&migration, now) => Ok(Next::Retry(LOOKUP_INTERVAL)),
            Found::Nothing => {
                let problem = "resource does not exist in discovery";
                self.fail(item, migration, problem, now).await
            }
            Found::NotMigratable(problem) => self.fail(item, migration, &problem, now).await,
            Found::Kind(view) => {
                // No object can have this name, so nothing is converted.
                let none = FieldSelector::everything().with("metadata.name", "@");
                migration.version = view.fields(none).list().await?.version;
                self.store(item, &migration).await
            }
        }
    }

    async fn migrate(
        &self,
        item: &Item<Any>,
        mut migration: Migration,
        now: Timestamp,
    ) -> Result<Next, Error> {
        let unhandled = |problem: &str| format!("migration encountered unhandled error: {problem}");
        let Found::Kind(view) = resource::find(&self.cluster, &migration.resource).await? else {
            if step::may_appear(&migration, now) {
                return Ok(Next::Retry(LOOKUP_INTERVAL));
            }
            let problem = unhandled("unable to obtain GVR from discovery");
            return self.fail(item, migration, &problem, now).await;
        };
        let objects = match &*view.kind().gvk.kind {
            "Event" => None,
            _ => view.list().await.ok(),
        };
        let Some(objects) = objects else {
            if step::may_appear(&migration, now) {
                return Ok(Next::Retry(LOOKUP_INTERVAL));
            }
            let problem = unhandled(NOT_COLLECTED);
            return self.fail(item, migration, &problem, now).await;
        };
        let until = migration.version.parse().unwrap_or(0);
        let Written { left, all, end } = objects::write(&view, &objects.items, until).await?;
        let problem = match &end {
            End::Retry(error) => Some(message(error)),
            _ => None,
        };
        let message = step::running(Some((left, all)), problem.as_deref());
        migration.set(RUNNING, ("True", MIGRATION_RUNNING, &message), now);
        match end {
            End::Done => {
                let done = (
                    "True",
                    "StorageVersionMigrationSucceeded",
                    "Migration completed",
                );
                migration.set(SUCCEEDED, done, now);
                self.store(item, &migration).await
            }
            End::Retry(error) => {
                self.store(item, &migration).await?;
                Err(error)
            }
            End::Fail(problem) => {
                let problem = unhandled(&problem);
                let message = format!("{left}/{all} not yet migrated. {problem}");
                self.fail(item, migration, &message, now).await
            }
        }
    }
}
