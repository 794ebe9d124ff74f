//! Decides the next step of a migration.

use std::time::Duration;

use jiff::Timestamp;

use super::facts::Migration;

/// The time for which a new resource may be unknown.
const UNKNOWN_TIME: Duration = Duration::from_mins(1);

#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(super) enum Step {
    /// Nothing to do, or another migration of the resource comes first.
    Wait,
    /// Mark the migration as running.
    Start,
    /// Store the resource version up to which objects are migrated.
    SetVersion,
    /// Migrate the objects.
    Migrate,
    /// Mark the migration as no longer running.
    Finish,
}

/// Returns the next step of a migration. `all` contains the migrations of all resources.
pub(super) fn next(migration: &Migration, all: &[Migration]) -> Step {
    match (migration.is_running(), migration.has_ended()) {
        (true, true) => Step::Finish,
        (false, true) => Step::Wait,
        (true, false) if migration.version.is_empty() => Step::SetVersion,
        (true, false) => Step::Migrate,
        (false, false) => match is_first(migration, all) {
            true => Step::Start,
            false => Step::Wait,
        },
    }
}

/// Returns true if no migration of the resource is running, and all older migrations have ended.
fn is_first(migration: &Migration, all: &[Migration]) -> bool {
    let mut others = all.iter().filter(|other| {
        other.resource == migration.resource && other.name != migration.name && !other.has_ended()
    });
    let key = |found: &Migration| (found.created, found.name.clone());
    others.all(|other| !other.is_running() && key(migration) < key(other))
}

/// Returns true if a resource that does not exist may still appear.
pub(super) fn may_appear(migration: &Migration, now: Timestamp) -> bool {
    migration
        .created
        .is_some_and(|created| now.duration_since(created).unsigned_abs() < UNKNOWN_TIME)
}

/// Returns the message of the condition `Running`. `objects` contains the number of objects that
/// are not migrated yet and the total number.
pub(super) fn running(objects: Option<(usize, usize)>, problem: Option<&str>) -> String {
    let mut message = "The migration is running".to_owned();
    match objects {
        None | Some((_, 0)) => {}
        Some((0, all)) => message.push_str(&format!(", {all} objects verified migrated")),
        Some((left, all)) => {
            message.push_str(&format!(", {left}/{all} objects not yet migrated"));
        }
    }
    if let Some(problem) = problem {
        message.push_str(&format!("; transient error: {problem}"));
    }
    message
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{
        super::facts::{FAILED, GroupResource, RUNNING, SUCCEEDED},
        *,
    };

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn migration(name: &str, second: i64, conditions: &[&str]) -> Migration {
        let mut migration = Migration {
            name: name.into(),
            created: Some(at(second)),
            resource: GroupResource {
                group: String::new(),
                resource: "configmaps".into(),
            },
            version: String::new(),
            conditions: Vec::new(),
        };
        for kind in conditions {
            migration.set(kind, ("True", "R", ""), at(second));
        }
        migration
    }

    #[test]
    fn migrations_of_a_resource_run_by_age() {
        let (old, new) = (migration("b", 1, &[]), migration("a", 2, &[]));
        let all = [new.clone(), old.clone()];
        assert_eq!(next(&old, &all), Step::Start);
        assert_eq!(next(&new, &all), Step::Wait);
        let all = [new.clone(), migration("b", 1, &[RUNNING])];
        assert_eq!(next(&new, &all), Step::Wait);
        let all = [new.clone(), migration("b", 1, &[FAILED])];
        assert_eq!(next(&new, &all), Step::Start);
        let mut other = old.clone();
        other.resource.group = "apps".into();
        assert_eq!(next(&new, &[new.clone(), other]), Step::Start);
        // Migrations with the same creation time are ordered by name.
        let (a, b) = (migration("a", 1, &[]), migration("b", 1, &[]));
        let all = [a.clone(), b.clone()];
        assert_eq!((next(&a, &all), next(&b, &all)), (Step::Start, Step::Wait));
    }

    #[test]
    fn a_running_migration_is_finished_after_its_end() {
        let mut running = migration("a", 1, &[RUNNING]);
        assert_eq!(next(&running, &[]), Step::SetVersion);
        running.version = "5".into();
        assert_eq!(next(&running, &[]), Step::Migrate);
        for end in [SUCCEEDED, FAILED] {
            assert_eq!(next(&migration("a", 1, &[RUNNING, end]), &[]), Step::Finish);
            assert_eq!(next(&migration("a", 1, &[end]), &[]), Step::Wait);
        }
    }

    #[test]
    fn a_resource_may_appear_for_a_minute() {
        let migration = migration("a", 100, &[]);
        assert!(may_appear(&migration, at(159)));
        assert!(!may_appear(&migration, at(160)));
    }

    #[test]
    fn messages_count_objects() {
        assert_eq!(running(None, None), "The migration is running");
        assert_eq!(running(Some((0, 0)), None), "The migration is running");
        let message = "The migration is running, 3 objects verified migrated";
        assert_eq!(running(Some((0, 3)), None), message);
        let message =
            "The migration is running, 2/3 objects not yet migrated; transient error: late";
        assert_eq!(running(Some((2, 3)), Some("late")), message);
    }
}
