//! Drafts of new objects: every step of a creation that only reads the state.
//! These steps run before the writer's turn.

use std::sync::Arc;

use longshore_builtin::{
    Admission, Generation, KindRules, Lifecycle, cause::Cause, defaults, json, validate,
};
use longshore_model::KindInfo;
use serde_json::Value;

use crate::{
    Create, Error, FieldValidation, Subject,
    decode::complete,
    kinds,
    machine::{
        JsonObject, Reviews, Transaction, admission, namespace,
        ownership::{self, Author},
        reviews,
    },
    managed::{self, Entry},
    options::Ids,
    state::State,
    view::View,
};

/// Maximum length of a name prefix; the generated suffix takes five more
/// characters.
const MAX_PREFIX_LENGTH: usize = 58;
/// An object that is complete except for the values that the writer assigns.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(super) view: Arc<View>,
    pub(super) info: Arc<KindInfo>,
    pub(super) object: JsonObject,
    /// The object without its generated name, for another attempt with a new name.
    pub(super) unnamed: Option<JsonObject>,
    pub(super) author: Author,
    /// The managed fields entries; the writer sets their time.
    pub(super) entries: Vec<Entry>,
    pub(super) warnings: Vec<String>,
    /// True if the request creates this object directly, so that admission outside of the engine
    /// reviews it.
    pub(super) is_reviewed: bool,
}

/// Executes every step of a creation that only reads the state.
pub(crate) fn admit(state: &State, ids: &dyn Ids, request: Create) -> Result<Draft, Error> {
    draft(state, ids, request, None, None)
}

/// Like [`admit`], but the author defaults to the sender of the request, and the new object is
/// reviewed if `reviews` is set.
pub(in crate::machine) fn draft(
    state: &State,
    ids: &dyn Ids,
    request: Create,
    author: Option<Author>,
    reviews: Option<&Reviews>,
) -> Result<Draft, Error> {
    let dry_run = request.options.dry_run;
    let kinds = &state.kinds;
    let (kind, view) = kinds.resolve(&request.kind)?;
    let info = kinds.entry(kind).info.clone();
    check_not_terminating(kinds.entry(kind), json_name(&request.object))?;
    let decoded = view.decode(request.object, request.options.field_validation)?;
    let (object, warnings) = (decoded.object, decoded.warnings);
    let mut author = author.unwrap_or_else(|| Author::new(&request.options, decoded.managed));
    let place_of = Kind {
        entry: kinds.entry(kind),
        view,
    };
    let mut object = view.to_stored_form(object);
    set_namespace(&info, request.namespace.as_deref(), &mut object)?;
    let metadata = json::child(&mut object, "metadata");
    let has_version = is_version(json::text(metadata, "resourceVersion"));
    for name in [
        "resourceVersion",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        metadata.remove(name);
    }
    if let Some(namespace) = namespace_of(&info, &object) {
        let shown = match json::text(&object, "metadata.name") {
            "" => json::text(&object, "metadata.generateName"),
            name => name,
        };
        namespace::check(state, &info, namespace, shown)?;
    }
    if let Some(reviews) = reviews {
        let namespace = request.namespace.as_deref();
        author = mutate(
            place_of,
            (state, ids),
            reviews,
            (&mut object, namespace),
            author,
        )?;
    }
    set_generation(&kinds.entry(kind).rules, &mut object);
    let name = json::text(&object, "metadata.name").to_owned();
    let prefix = json::text(&object, "metadata.generateName").to_owned();
    // Kubernetes' store checks this: after validation, and not in a dry run.
    let check_version = || {
        if has_version && !dry_run {
            return Err(Error::BadRequest(
                "resourceVersion should not be set on objects to be created".into(),
            ));
        }
        Ok(())
    };
    if !name.is_empty() {
        let entries = prepare(place_of, state, ids, &mut object, &author)?;
        check_version()?;
        return Ok(Draft {
            view: view.clone(),
            info,
            object,
            unnamed: None,
            author,
            entries,
            warnings,
            is_reviewed: reviews.is_some(),
        });
    }
    if prefix.is_empty() {
        let cause = Cause::required("metadata.name", "name or generateName is required");
        return Err(Error::Invalid {
            subject: Subject::new(&info, ""),
            causes: vec![cause],
        });
    }
    let unnamed = object.clone();
    generate_name(ids, &mut object);
    let entries = prepare(place_of, state, ids, &mut object, &author)?;
    check_version()?;
    Ok(Draft {
        view: view.clone(),
        info,
        object,
        unnamed: Some(unnamed),
        author,
        entries,
        warnings,
        is_reviewed: reviews.is_some(),
    })
}

/// Sets the generation of a new object.
fn set_generation(rules: &KindRules, object: &mut JsonObject) {
    let metadata = json::child(object, "metadata");
    match rules.generation {
        // As in Kubernetes, the value in the request is kept.
        Generation::Absent | Generation::SpecFromNone => {
            if metadata.get("generation").and_then(Value::as_i64) == Some(0) {
                metadata.remove("generation");
            }
        }
        _ => {
            metadata.insert("generation".into(), 1.into());
        }
    }
}

/// Executes mutating admission outside of the engine on a new object. As in Kubernetes, the author
/// manages the object as it was before.
fn mutate(
    kind: Kind<'_>,
    (state, ids): (&State, &dyn Ids),
    reviews: &Reviews,
    (object, namespace): (&mut JsonObject, Option<&str>),
    author: Author,
) -> Result<Author, Error> {
    let (info, rules, view) = (&kind.entry.info, &kind.entry.rules, kind.view);
    (rules.fill)(object);
    let entries = view.with_converted(object, |shown| {
        author.entries_of_new(kind.entry, view, shown)
    });
    if view.custom_kind().is_none() {
        admission::apply_classes(state, rules, info, ids, object)?;
        if rules.admission == Admission::PodClasses {
            defaults::admit_pod(object);
        }
    }
    let shown = view.convert(object.clone());
    let mut shown_entries = entries.clone();
    ownership::set_times(&mut shown_entries, &reviews.now);
    let shown = reviews::with_managed(shown, &managed::text(shown_entries));
    let mutated = reviews.mutate((&view.info, None), shown, || None)?;
    let mut mutated = view.to_stored_form(reviews::decode(view, mutated)?);
    set_namespace(info, namespace, &mut mutated)?;
    let metadata = json::child(&mut mutated, "metadata");
    for name in [
        "uid",
        "creationTimestamp",
        "resourceVersion",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        metadata.remove(name);
    }
    *object = mutated;
    Ok(match author {
        Author::Applied(_) => Author::Applied(entries),
        _ => Author::Recorded(entries),
    })
}

/// Returns true if a string is the resource version of a stored object. Zero is the version of an
/// object that is not stored yet. As in Kubernetes, a version that is not a number is ignored.
fn is_version(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
        && text.parse::<u64>().is_ok_and(|version| version > 0)
}

/// Rejects a creation if the kind is being removed.
pub(super) fn check_not_terminating(kind: &kinds::Entry, name: &str) -> Result<(), Error> {
    if !kind.is_terminating {
        return Ok(());
    }
    Err(Error::Forbidden {
        subject: Subject::new(&kind.info, name),
        reason: "create not allowed while custom resource definition is terminating".into(),
        causes: Vec::new(),
    })
}

fn json_name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// Sets the namespace of the object to the namespace of the request.
fn set_namespace(
    info: &KindInfo,
    namespace: Option<&str>,
    object: &mut JsonObject,
) -> Result<(), Error> {
    let metadata = json::child(object, "metadata");
    if !info.is_namespaced() {
        metadata.remove("namespace");
        return Ok(());
    }
    let given = json::text(metadata, "namespace");
    match namespace {
        Some(namespace) if given.is_empty() || given == namespace => {
            metadata.insert("namespace".into(), namespace.into());
            Ok(())
        }
        None if !given.is_empty() => Ok(()),
        None => Err(Error::BadRequest(
            "an empty namespace may not be set during creation".into(),
        )),
        Some(_) => Err(Error::BadRequest(
            "the namespace of the provided object does not match the namespace sent on the request"
                .into(),
        )),
    }
}

pub(super) fn namespace_of<'a>(info: &KindInfo, object: &'a JsonObject) -> Option<&'a str> {
    info.is_namespaced()
        .then(|| json::text(object, "metadata.namespace"))
}

pub(super) fn generate_name(ids: &dyn Ids, object: &mut JsonObject) {
    let metadata = json::child(object, "metadata");
    let prefix = json::text(metadata, "generateName");
    let cut = prefix
        .char_indices()
        .map(|(at, c)| at + c.len_utf8())
        .take_while(|end| *end <= MAX_PREFIX_LENGTH);
    let name = format!("{}{}", &prefix[..cut.last().unwrap_or(0)], ids.suffix());
    metadata.insert("name".into(), name.into());
}

/// A stored kind and a version of it.
#[derive(Clone, Copy)]
pub(super) struct Kind<'a> {
    pub(super) entry: &'a kinds::Entry,
    pub(super) view: &'a View,
}

/// Sets the uid and defaults, tracks managed fields and validates. The author manages the fields of
/// the request and their defaults, but not the fields that the kind's rules add.
pub(super) fn prepare(
    kind: Kind<'_>,
    state: &State,
    ids: &dyn Ids,
    object: &mut JsonObject,
    author: &Author,
) -> Result<Vec<Entry>, Error> {
    let info = &*kind.entry.info;
    let rules = &*kind.entry.rules;
    (rules.fill)(object);
    let view = kind.view;
    let entries = view.with_converted(object, |shown| {
        author.entries_of_new(kind.entry, view, shown)
    });
    json::child(object, "metadata").insert("uid".into(), ids.uid().into());
    match view.custom_kind() {
        Some(kind) if kind.has_status => drop(object.remove("status")),
        Some(_) => {}
        None => {
            admission::apply_classes(state, rules, info, ids, object)?;
            defaults::on_create(info, rules, object);
        }
    }
    (rules.fill)(object);
    (rules.derive_fields)(None, object);
    let mut causes = validate::object(info, rules, object);
    causes.extend(validate::new_object(rules, object));
    // Only updates have warnings.
    causes.extend(view.validate(None, object, &mut Vec::new()));
    let causes = view.rename_cause_fields(causes);
    if causes.is_empty() {
        complete(info, object);
        return Ok(entries);
    }
    let subject = Subject::new(info, json::text(object, "metadata.name"));
    Err(Error::Invalid { subject, causes })
}

impl Draft {
    /// Returns true if this is a namespace, which gets initial contents.
    pub(super) fn is_namespace(&self) -> bool {
        self.view.rules.lifecycle == Lifecycle::Namespace
    }

    /// Updates the draft if the definition of its kind has changed since it was prepared: the
    /// current schema applies to all later objects, and the object is stored in the current storage
    /// version.
    pub(super) fn refreshed(mut self, tx: &Transaction<'_>) -> Result<Self, Error> {
        let (kind, view) = tx.kinds().resolve(&self.view.info)?;
        if view.custom_kind().is_none() || Arc::ptr_eq(view, &self.view) {
            return Ok(self);
        }
        let refreshed = |object| view.to_stored_form(view.convert(object));
        self.unnamed = self.unnamed.map(refreshed);
        self.object = view.to_stored_form(view.convert(self.object));
        let place = Kind {
            entry: tx.kinds().entry(kind),
            view,
        };
        self.entries = prepare(place, tx.state(), tx.ids(), &mut self.object, &self.author)?;
        self.view = view.clone();
        Ok(self)
    }
}

/// Prepares a draft within the writer's turn, for objects that accompany
/// others.
pub(super) fn draft_in_transaction(
    tx: &Transaction<'_>,
    kind: &Arc<KindInfo>,
    namespace: Option<&str>,
    object: Value,
    author: Author,
    reviews: Option<&Reviews>,
) -> Result<Draft, Error> {
    let request = Create {
        kind: kind.clone(),
        namespace: namespace.map(str::to_owned),
        object,
        options: crate::WriteOptions {
            field_validation: FieldValidation::Ignore,
            ..crate::WriteOptions::default()
        },
    };
    draft(tx.state(), tx.ids(), request, Some(author), reviews)
}
