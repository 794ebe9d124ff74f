//! Server-side apply: merging what a manager wants into an object, taking out
//! what it alone wanted before and wants no more, and finding whose fields
//! that would change.

use serde_json::Value;

use super::{
    check, collect,
    compare::Changes,
    entry::{Entry, Manager, Operation},
    merge,
    realign::realign_all,
    scope::{BEFORE_FIRST_APPLY, Scope, ownable},
    set::FieldSet,
};
use crate::json::{self, Object};

/// The annotation in which kubectl keeps what it applied last.
pub(super) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The manager whose annotation is trusted and kept up to date.
const KUBECTL: &str = "kubectl";
/// Bytes of all annotations of an object, at most.
const ANNOTATIONS: usize = 256 << 10;

/// Fields of another manager, which has other values for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Conflict {
    /// Whose they are.
    pub(crate) manager: Manager,
    pub(crate) fields: FieldSet,
}

/// Why a configuration was not applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It does not have the form of its type.
    Malformed(String),
    /// Others own fields it has other values for.
    Conflicts(Vec<Conflict>),
}

/// An applied configuration.
#[derive(Debug, Clone)]
pub(crate) struct Applied {
    pub(crate) object: Object,
    pub(crate) entries: Vec<Entry>,
}

/// Who applies, and when.
#[derive(Clone, Copy)]
pub(crate) struct Applier<'a> {
    pub(crate) name: &'a str,
    /// Whether to take over fields of others.
    pub(crate) force: bool,
    pub(crate) now: &'a str,
}

/// Applies a configuration to an object, or makes one of it.
pub(crate) fn apply(
    scope: &Scope<'_>,
    live: Option<&Object>,
    mut entries: Vec<Entry>,
    config: &Object,
    applier: Applier<'_>,
) -> Result<Applied, Refusal> {
    if let Some(problem) = check::configuration(scope.root, config) {
        return Err(Refusal::Malformed(problem));
    }
    let nothing = Object::new();
    if entries.is_empty()
        && let Some(live) = live
    {
        // What was there before anything was tracked has a manager of its own.
        let all = ownable(scope.changes(scope.root, &nothing, live).changed);
        if !all.is_empty() {
            let manager = scope.manager(BEFORE_FIRST_APPLY, Operation::Update);
            let mut entry = Entry::new(manager, &all);
            entry.time = Some(applier.now.to_owned());
            entries.push(entry);
        }
    }
    let live = live.unwrap_or(&nothing);
    realign_all(scope, &mut entries, live);
    let mut job = Job {
        scope,
        live,
        config,
        applier,
    };
    let outcome = match job.run(&entries) {
        Err(Refusal::Conflicts(conflicts)) if applier.name == KUBECTL => {
            let known = applied_by_client(scope, live).unwrap_or_default();
            let conflicts = without(conflicts, &known);
            if conflicts.is_empty() {
                job.applier.force = true;
                job.run(&entries)
            } else {
                Err(Refusal::Conflicts(conflicts))
            }
        }
        outcome => outcome,
    };
    let mut applied = outcome?;
    if applier.name == KUBECTL {
        renew_last_applied(&mut applied.object, config);
    }
    Ok(applied)
}

struct Job<'a, 's> {
    scope: &'a Scope<'s>,
    live: &'a Object,
    config: &'a Object,
    applier: Applier<'a>,
}

impl Job<'_, '_> {
    fn run(&self, before: &[Entry]) -> Result<Applied, Refusal> {
        let scope = self.scope;
        let manager = scope.manager(self.applier.name, Operation::Apply);
        let last = before.iter().find(|entry| entry.manager.is(&manager));
        let wanted = scope.in_reach(collect::of_object(scope.root, self.config));
        let merged = merge::merge(scope.root, self.live, self.config);
        let others: Vec<&Entry> = before
            .iter()
            .filter(|entry| !entry.manager.is(&manager))
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

    /// What is left to the others; their conflicts when there are any.
    fn others_after(
        &self,
        others: &[&Entry],
        changes: &Changes,
        object: &Object,
    ) -> Result<Vec<Entry>, Refusal> {
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
        Err(Refusal::Conflicts(conflicts))
    }

    /// Takes out what the applier wanted last time and wants no more, if
    /// nobody else wants it.
    fn prune(&self, merged: Object, last: &Entry, others: &[&Entry], wanted: &FieldSet) -> Object {
        let last_set = last.set();
        let root = match self.scope.version(&last.manager.api_version) {
            // Of another form of the object nothing is known in this one.
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
        // What goes with its parent though somebody else wants it stays.
        let wanted = others
            .iter()
            .fold(wanted.clone(), |all, entry| all.union(entry.set()))
            .with_named(root);
        let pruned = merge::remove(root, &merged, &all.difference(&left.union(wanted)));
        // And so does what the applier never had.
        let left = collect::of_object(root, &pruned).with_named(root);
        let gone = all.difference(&left).intersection(&last_set);
        merge::remove(root, &merged, &ownable(gone))
    }
}

/// Fields of the live object that still are as client-side apply made them.
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

/// The conflicts about other fields than those of a set.
fn without(conflicts: Vec<Conflict>, known: &FieldSet) -> Vec<Conflict> {
    conflicts
        .into_iter()
        .filter_map(|conflict| {
            let fields = conflict.fields.difference(known);
            (!fields.is_empty()).then_some(Conflict { fields, ..conflict })
        })
        .collect()
}

/// Where client-side apply keeps what it applied, this is it now.
fn renew_last_applied(object: &mut Object, config: &Object) {
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
    if size > ANNOTATIONS {
        annotations.remove(LAST_APPLIED);
    }
}
