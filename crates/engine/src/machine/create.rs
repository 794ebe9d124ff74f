//! Creating objects. All that needs no state (reading, defaults, validation)
//! is done before the writer's turn; the writer checks the namespace and the
//! name, and gives what is scarce.

use std::sync::Arc;

use longshore_model::{KindInfo, time};
use serde_json::Value;

use super::{
    Draftable, Transaction, namespace,
    ownership::{self, Author},
    priority, runtime_class,
};
use crate::{
    Create, Error, FieldValidation, Object, Subject, Written,
    cause::Cause,
    decode::complete,
    defaults,
    facts::Generation,
    json,
    kinds::{self, KindId},
    managed::{self, Entry},
    object,
    options::Ids,
    state::State,
    validate,
    view::View,
};

/// The longest prefix that leaves place for the five characters of a suffix.
const PREFIX: usize = 58;
/// Names tried for one `generateName`.
const TRIES: usize = 8;

/// An object that is ready but for what the writer gives.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    view: Arc<View>,
    info: Arc<KindInfo>,
    object: Draftable,
    /// The object before its name was made, to make another from.
    unnamed: Option<Draftable>,
    author: Author,
    /// Who manages its fields; the time is yet to come.
    entries: Vec<Entry>,
    warnings: Vec<String>,
}

/// Does all of a creation that needs no more than a look at the state.
pub(crate) fn admit(state: &State, ids: &dyn Ids, request: Create) -> Result<Draft, Error> {
    draft(state, ids, request, None)
}

/// As [`admit`]; the author is who sent the request, if no other is given.
pub(super) fn draft(
    state: &State,
    ids: &dyn Ids,
    request: Create,
    author: Option<Author>,
) -> Result<Draft, Error> {
    let kinds = &state.kinds;
    let (kind, view) = kinds.resolve(&request.kind)?;
    let info = kinds.entry(kind).info.clone();
    check_stays(kinds.entry(kind), json_name(&request.object))?;
    let decoded = view.decode(request.object, request.options.field_validation)?;
    let (object, warnings) = (decoded.object, decoded.warnings);
    let author = author.unwrap_or_else(|| Author::new(&request.options, decoded.managed));
    let place_of = Kind {
        entry: kinds.entry(kind),
        view,
    };
    let mut object = view.stored_form(object);
    place(&info, request.namespace.as_deref(), &mut object)?;
    let metadata = json::child(&mut object, "metadata");
    // Zero is the version of what is not stored yet; what is no number counts
    // for nothing (as in Kubernetes).
    if is_version(json::text(metadata, "resourceVersion")) {
        return Err(Error::BadRequest(
            "resourceVersion should not be set on objects to be created".into(),
        ));
    }
    for name in [
        "resourceVersion",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        metadata.remove(name);
    }
    match kinds.entry(kind).facts.generation {
        // They keep what they are given (as in Kubernetes).
        Generation::Absent | Generation::SpecFromNone => {
            if metadata.get("generation").and_then(Value::as_i64) == Some(0) {
                metadata.remove("generation");
            }
        }
        _ => {
            metadata.insert("generation".into(), 1.into());
        }
    }
    let name = json::text(metadata, "name").to_owned();
    let prefix = json::text(metadata, "generateName").to_owned();
    if let Some(namespace) = namespace_of(&info, &object) {
        let shown = if name.is_empty() { &prefix } else { &name };
        namespace::check(state, &info, namespace, shown)?;
    }
    if !name.is_empty() {
        let entries = prepare(place_of, state, ids, &mut object, &author)?;
        return Ok(Draft {
            view: view.clone(),
            info,
            object,
            unnamed: None,
            author,
            entries,
            warnings,
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
    name_it(ids, &mut object);
    let entries = prepare(place_of, state, ids, &mut object, &author)?;
    Ok(Draft {
        view: view.clone(),
        info,
        object,
        unnamed: Some(unnamed),
        author,
        entries,
        warnings,
    })
}

/// Whether a text is the version of a stored object.
fn is_version(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
        && text.parse::<u64>().is_ok_and(|version| version > 0)
}

/// Nothing is made of a kind that is on its way out.
fn check_stays(kind: &kinds::Entry, name: &str) -> Result<(), Error> {
    if !kind.terminating {
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

/// Puts the object in the namespace of the request.
fn place(info: &KindInfo, namespace: Option<&str>, object: &mut Draftable) -> Result<(), Error> {
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

fn namespace_of<'a>(info: &KindInfo, object: &'a Draftable) -> Option<&'a str> {
    info.is_namespaced()
        .then(|| json::text(object, "metadata.namespace"))
}

fn name_it(ids: &dyn Ids, object: &mut Draftable) {
    let metadata = json::child(object, "metadata");
    let prefix = json::text(metadata, "generateName");
    let cut = prefix
        .char_indices()
        .map(|(at, c)| at + c.len_utf8())
        .take_while(|end| *end <= PREFIX);
    let name = format!("{}{}", &prefix[..cut.last().unwrap_or(0)], ids.suffix());
    metadata.insert("name".into(), name.into());
}

/// A stored kind, in one of its versions.
#[derive(Clone, Copy)]
struct Kind<'a> {
    entry: &'a kinds::Entry,
    view: &'a View,
}

/// The uid, defaults, managed fields and validation. What the author manages
/// is what was sent and its defaults, not what the kind's rules add.
fn prepare(
    kind: Kind<'_>,
    state: &State,
    ids: &dyn Ids,
    object: &mut Draftable,
    author: &Author,
) -> Result<Vec<Entry>, Error> {
    let info = &*kind.entry.info;
    defaults::fill(info, object);
    let view = kind.view;
    let entries = view.with_shown(object, |shown| author.of_new(kind.entry, view, shown));
    json::child(object, "metadata").insert("uid".into(), ids.uid().into());
    match view.custom_kind() {
        Some(kind) if kind.has_status => drop(object.remove("status")),
        Some(_) => {}
        None => {
            if info.gvk.group.is_empty() && info.gvk.kind == "Pod" {
                priority::of_pod(state, info, object)?;
                runtime_class::of_pod(state, info, object)?;
            }
            defaults::on_create(info, object);
        }
    }
    defaults::fill(info, object);
    defaults::settle(info, None, object);
    let mut causes = validate::object(info, object);
    causes.extend(validate::new_object(info, object));
    causes.extend(view.validate(None, object));
    let causes = view.in_own_words(causes);
    if causes.is_empty() {
        complete(info, object);
        return Ok(entries);
    }
    let subject = Subject::new(info, json::text(object, "metadata.name"));
    Err(Error::Invalid { subject, causes })
}

impl Draft {
    /// The draft under today's definition of its kind, which may have changed
    /// since the look at the state: its schema holds for all objects after it,
    /// and its stored version is the one they are kept in.
    fn renewed(mut self, tx: &Transaction<'_>) -> Result<Self, Error> {
        let (kind, view) = tx.kinds().resolve(&self.view.info)?;
        if view.custom_kind().is_none() || Arc::ptr_eq(view, &self.view) {
            return Ok(self);
        }
        let renewed = |object| view.stored_form(view.shown(object));
        self.unnamed = self.unnamed.map(renewed);
        self.object = view.stored_form(view.shown(self.object));
        let place = Kind {
            entry: tx.kinds().entry(kind),
            view,
        };
        self.entries = prepare(place, tx.state(), tx.ids(), &mut self.object, &self.author)?;
        self.view = view.clone();
        Ok(self)
    }
}

/// The writer's part of a creation.
pub(crate) fn create(tx: &mut Transaction<'_>, draft: Draft) -> Result<Written, Error> {
    let draft = draft.renewed(tx)?;
    let Draft {
        view,
        info,
        mut object,
        unnamed,
        author,
        mut entries,
        warnings,
    } = draft;
    let kind = tx.kinds().id(&view.info)?;
    check_stays(tx.kinds().entry(kind), json::text(&object, "metadata.name"))?;
    let key = |object: &Draftable| {
        object::key(
            namespace_of(&info, object),
            json::text(object, "metadata.name"),
        )
    };
    if let Some(namespace) = namespace_of(&info, &object) {
        let name = json::text(&object, "metadata.name");
        namespace::check(tx.state(), &info, namespace, name)?;
    }
    for _ in 1..TRIES {
        let Some(unnamed) = &unnamed else { break };
        if tx.get(kind, &key(&object)).is_none() {
            break;
        }
        object = unnamed.clone();
        name_it(tx.ids(), &mut object);
        let place = Kind {
            entry: tx.kinds().entry(kind),
            view: &view,
        };
        entries = prepare(place, tx.state(), tx.ids(), &mut object, &author)?;
    }
    if let Some(other) = tx.get(kind, &key(&object)) {
        let subject = Subject::new(&info, json::text(&object, "metadata.name"));
        let leaving = other.map().get("metadata").is_some_and(|metadata| {
            metadata
                .get("deletionTimestamp")
                .is_some_and(|at| !at.is_null())
        });
        return Err(match leaving {
            true => Error::StillThere(subject),
            false => Error::AlreadyExists(subject),
        });
    }
    let created = time::seconds(tx.now);
    ownership::date(&mut entries, &created);
    let managed = managed::text(entries);
    if info.gvk.group.is_empty() && &*info.gvk.kind == "PersistentVolume" {
        let status = json::child(&mut object, "status");
        status.insert("lastPhaseTransitionTime".into(), created.clone().into());
    }
    if &*info.gvk.group == "apiregistration.k8s.io" {
        let status = json::child(&mut object, "status");
        for condition in json::items_mut(status, "conditions") {
            condition.insert("lastTransitionTime".into(), created.clone().into());
        }
    }
    json::child(&mut object, "metadata").insert("creationTimestamp".into(), created.into());
    match (&*info.gvk.group, &*info.gvk.kind) {
        ("", "Service") => super::service::allocate(tx, kind, &info, &mut object, None)?,
        ("scheduling.k8s.io", "PriorityClass") => priority::one_default(tx, &info, &object)?,
        ("", "Namespace") => {
            let object = tx.put_managed(kind, &object, Some(&managed))?;
            namespace::furnish(tx, object.name())?;
            return Ok(Written {
                object,
                created: true,
                warnings,
            });
        }
        _ => {}
    }
    let object = view.kept_form(&object).unwrap_or(object);
    Ok(Written {
        object: put(tx, kind, &object, &managed, &author)?,
        created: true,
        warnings,
    })
}

/// Writes an object. One that is too large is written without its managed
/// fields, unless it was applied.
pub(super) fn put(
    tx: &mut Transaction<'_>,
    kind: KindId,
    object: &Draftable,
    managed: &str,
    author: &Author,
) -> Result<Arc<Object>, Error> {
    match tx.put_managed(kind, object, Some(managed)) {
        Err(Error::ObjectTooLarge) if matches!(author, Author::Manager { .. }) => {
            tx.put_managed(kind, object, Some(""))
        }
        result => result,
    }
}

/// Creates from within the writer: for objects that come with others.
pub(super) fn create_here(
    tx: &mut Transaction<'_>,
    kind: &Arc<KindInfo>,
    namespace: Option<&str>,
    object: Value,
    author: Author,
) -> Result<Written, Error> {
    let request = Create {
        kind: kind.clone(),
        namespace: namespace.map(str::to_owned),
        object,
        options: crate::WriteOptions {
            field_validation: FieldValidation::Ignore,
            ..crate::WriteOptions::default()
        },
    };
    let draft = draft(tx.state(), tx.ids(), request, Some(author))?;
    create(tx, draft)
}
