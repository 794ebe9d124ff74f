//! Server-side apply: merges the configuration of a manager into an object,
//! removes fields that only this manager applied before and no longer applies,
//! and detects conflicts with other managers.

use longshore_builtin::json::{self, Object};
use serde_json::Value;

use super::{
    check, collect,
    compare::Changes,
    entry::{Entry, Manager, Operation},
    merge,
    reconcile::reconcile_entries,
    scope::{BEFORE_FIRST_APPLY, Scope, ownable},
    set::FieldSet,
};

/// The annotation in which kubectl stores the last applied configuration.
pub(super) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The manager whose annotation is read and kept up to date.
const KUBECTL: &str = "kubectl";
/// Maximum total size of an object's annotations in bytes.
const MAX_ANNOTATION_BYTES: usize = 256 << 10;

/// Fields of another manager that the configuration would change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Conflict {
    /// The manager that owns the fields.
    pub(crate) manager: Manager,
    pub(crate) fields: FieldSet,
}

/// The reason why a configuration was not applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ApplyError {
    /// The configuration does not match its schema.
    Malformed(String),
    /// The configuration conflicts with fields of other managers.
    Conflicts(Vec<Conflict>),
}

/// The result of an apply.
#[derive(Debug, Clone)]
pub(crate) struct Applied {
    pub(crate) object: Object,
    pub(crate) entries: Vec<Entry>,
}

/// The applying manager and the time.
#[derive(Clone, Copy)]
pub(crate) struct Applier<'a> {
    pub(crate) name: &'a str,
    /// True if the applier takes over fields of other managers.
    pub(crate) force: bool,
    pub(crate) now: &'a str,
}

/// Applies a configuration to an object, or creates the object.
pub(crate) fn apply(
    scope: &Scope<'_>,
    live: Option<&Object>,
    mut entries: Vec<Entry>,
    config: &Object,
    applier: Applier<'_>,
) -> Result<Applied, ApplyError> {
    if let Some(problem) = check::configuration(scope.root, config) {
        return Err(ApplyError::Malformed(problem));
    }
    let nothing = Object::new();
    if entries.is_empty()
        && let Some(live) = live
    {
        // Fields that existed before ownership was tracked get a separate manager.
        let all = ownable(scope.changes(scope.root, &nothing, live).changed);
        if !all.is_empty() {
            let manager = scope.manager(BEFORE_FIRST_APPLY, Operation::Update);
            let mut entry = Entry::new(manager, &all);
            entry.time = Some(applier.now.to_owned());
            entries.push(entry);
        }
    }
    let live = live.unwrap_or(&nothing);
    reconcile_entries(scope, &mut entries, live);
    let mut run = ApplyRun {
        scope,
        live,
        config,
        applier,
    };
    let outcome = match run.run(&entries) {
        Err(ApplyError::Conflicts(conflicts)) if applier.name == KUBECTL => {
            let known = applied_by_client(scope, live).unwrap_or_default();
            let conflicts = without_fields(conflicts, &known);
            if conflicts.is_empty() {
                run.applier.force = true;
                run.run(&entries)
            } else {
                Err(ApplyError::Conflicts(conflicts))
            }
        }
        outcome => outcome,
    };
    let mut applied = outcome?;
    if applier.name == KUBECTL {
        update_last_applied(&mut applied.object, config);
    }
    Ok(applied)
}

struct ApplyRun<'a, 's> {
    scope: &'a Scope<'s>,
    live: &'a Object,
    config: &'a Object,
    applier: Applier<'a>,
}

impl ApplyRun<'_, '_> {
    fn run(&self, before: &[Entry]) -> Result<Applied, ApplyError> {
        let scope = self.scope;
        let manager = scope.manager(self.applier.name, Operation::Apply);
        let last = before
            .iter()
            .find(|entry| entry.manager.is_same_entry(&manager));
        let wanted = scope.writable_part(collect::of_object(scope.root, self.config));
        let merged = merge::merge(scope.root, self.live, self.config);
        let others: Vec<&Entry> = before
            .iter()
            .filter(|entry| !entry.manager.is_same_entry(&manager))
            .collect();
        let object = match last {
            Some(last) => self.prune(merged, last, &others, &wanted),
            None => merged,
        };
        let changes = scope.changes(scope.root, self.live, &object);
        let mut entries = self.others_after(&others, &changes, &object)?;
        let own = ownable(wanted);
        let is_same = last.is_some_and(|last| last.set() == own);
        if !own.is_empty() {
            let mut entry = Entry::new(manager, &own);
            entry.time = match last {
                Some(last) if is_same && changes.is_empty() => last.time.clone(),
                _ => Some(self.applier.now.to_owned()),
            };
            entries.push(entry);
        }
        Ok(Applied { object, entries })
    }

    /// Returns the remaining entries of the other managers, or the conflicts.
    fn others_after(
        &self,
        others: &[&Entry],
        changes: &Changes,
        object: &Object,
    ) -> Result<Vec<Entry>, ApplyError> {
        let scope = self.scope;
        let (mut kept, mut conflicts) = (Vec::new(), Vec::new());
        for entry in others {
            let of_version;
            let changes = if entry.manager.api_version == scope.api_version {
                changes
            } else if let Some(version) = scope.version(&entry.manager.api_version) {
                of_version = scope.changes_in(&version, self.live, object);
                &of_version
            } else {
                continue;
            };
            let set = entry.set();
            let taken = set.intersection(&changes.changed);
            let rest = set.difference(&taken).difference(&changes.removed);
            if !taken.is_empty() {
                conflicts.push(Conflict {
                    manager: entry.manager.clone(),
                    fields: taken,
                });
            }
            if rest == set {
                kept.push((*entry).clone());
            } else if !rest.is_empty() {
                kept.push(Entry {
                    fields: rest.to_text(),
                    ..(*entry).clone()
                });
            }
        }
        if conflicts.is_empty() || self.applier.force {
            return Ok(kept);
        }
        conflicts.sort_by(|a, b| {
            let key = |conflict: &Conflict| {
                let manager = &conflict.manager;
                (
                    manager.name.clone(),
                    manager.operation,
                    manager.api_version.clone(),
                    manager.subresource.clone(),
                )
            };
            key(a).cmp(&key(b))
        });
        Err(ApplyError::Conflicts(conflicts))
    }

    /// Removes fields that the applier owned and no longer applies, unless
    /// another manager owns them.
    fn prune(&self, merged: Object, last: &Entry, others: &[&Entry], wanted: &FieldSet) -> Object {
        let last_set = last.set();
        let root = match self.scope.version(&last.manager.api_version) {
            // If the entry's version uses other field names, its paths do not
            // apply here.
            Some(version) if version.form.is_none() => version.root,
            _ => return merged,
        };
        if last_set.is_empty() {
            return merged;
        }
        let last_set = last_set.with_named(root);
        let all = collect::of_object(root, &merged).with_named(root);
        let pruned = merge::remove(root, &merged, &last_set);
        let left = collect::of_object(root, &pruned).with_named(root);
        // Keep fields of other managers that were removed together with their
        // parent.
        let wanted = others
            .iter()
            .fold(wanted.clone(), |all, entry| all.union(entry.set()))
            .with_named(root);
        let pruned = merge::remove(root, &merged, &all.difference(&left.union(wanted)));
        // Also keep fields that the applier never owned.
        let left = collect::of_object(root, &pruned).with_named(root);
        let gone = all.difference(&left).intersection(&last_set);
        merge::remove(root, &merged, &ownable(gone))
    }
}

/// Fields of the live object that client-side apply set and that have not changed since.
fn applied_by_client(scope: &Scope<'_>, live: &Object) -> Option<FieldSet> {
    let text = json::at(live, "metadata")?
        .get("annotations")?
        .get(LAST_APPLIED)?
        .as_str()?;
    let Value::Object(applied) = serde_json::from_str(text).ok()? else {
        return None;
    };
    if json::text(&applied, "apiVersion") != scope.api_version
        || check::configuration(scope.root, &applied).is_some()
    {
        return None;
    }
    let changes = super::compare::objects(scope.root, &applied, live);
    let fields = collect::of_object(scope.root, &applied);
    Some(
        fields
            .difference(&changes.changed)
            .difference(&changes.removed),
    )
}

/// Removes a set of fields from conflicts.
fn without_fields(conflicts: Vec<Conflict>, known: &FieldSet) -> Vec<Conflict> {
    conflicts
        .into_iter()
        .filter_map(|conflict| {
            let fields = conflict.fields.difference(known);
            (!fields.is_empty()).then_some(Conflict { fields, ..conflict })
        })
        .collect()
}

/// Updates the annotation of client-side apply if the object has it.
fn update_last_applied(object: &mut Object, config: &Object) {
    let has = json::at(object, "metadata")
        .and_then(|metadata| metadata.get("annotations")?.get(LAST_APPLIED)?.as_str())
        .is_some_and(|text| !text.is_empty());
    if !has {
        return;
    }
    let mut config = config.clone();
    if let Some(Value::Object(metadata)) = config.get_mut("metadata")
        && let Some(Value::Object(annotations)) = metadata.get_mut("annotations")
    {
        annotations.remove(LAST_APPLIED);
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
    let annotations = json::child(json::child(object, "metadata"), "annotations");
    let text = format!("{}\n", Value::Object(config));
    annotations.insert(LAST_APPLIED.to_owned(), text.into());
    let size: usize = annotations
        .iter()
        .map(|(name, value)| name.len() + value.as_str().map_or(0, str::len))
        .sum();
    if size > MAX_ANNOTATION_BYTES {
        annotations.remove(LAST_APPLIED);
    }
}
