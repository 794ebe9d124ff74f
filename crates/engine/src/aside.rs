//! Which writes are worked out beside the writer, and how. The writer does
//! small pieces of work itself: nothing can change in between. What may take it
//! longer than a few milliseconds is done by a thread of its own on a copy of
//! the state; the writer takes over what came of it, if what it rests on is
//! unchanged, and it is done again otherwise.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::oneshot;

use crate::{
    Bind, Create, Delete, DeleteOptions, Error, Evict, Object, Patch, Target, Update,
    machine::{self, Prepared, Transaction, message},
    object,
    options::{Clock, Ids},
    state::State,
};

/// Operations of a JSON patch that the writer does itself.
const OPERATIONS: usize = 64;

/// Budgets that the writer reads itself for an eviction.
const BUDGETS: usize = 64;

/// Pieces of work done aside at a time. Each needs a multiple of the memory of
/// its body.
pub(crate) const ASIDE: usize = 2;

/// How often work is done again when something else has changed what it rests
/// on (as often as Kubernetes tries a patch).
pub(crate) const ATTEMPTS: usize = 5;

/// A write, as far as it matters for the question of who does it.
pub(crate) trait Work {
    /// Whether it may take the writer long, as far as the request tells; `light`
    /// are the bytes up to which it does not.
    fn is_large(&self, light: usize) -> bool;

    /// Whether it may take the writer long, for what it is about.
    fn is_about_much(&self, state: &State, light: usize) -> bool;
}

impl Work for Create {
    fn is_large(&self, light: usize) -> bool {
        is_definition(&self.kind.gvk.kind) || is_larger(&self.object, light)
    }

    fn is_about_much(&self, _: &State, _: usize) -> bool {
        // It is checked before the writer's turn in any case.
        false
    }
}

impl Work for Update {
    fn is_large(&self, light: usize) -> bool {
        is_definition(&self.target.kind.gvk.kind) || is_larger(&self.object, light)
    }

    fn is_about_much(&self, state: &State, light: usize) -> bool {
        is_large_object(state, &self.target, light)
    }
}

/// An update that is read already.
impl Work for machine::ReadUpdate {
    fn is_large(&self, _: usize) -> bool {
        false
    }

    fn is_about_much(&self, state: &State, light: usize) -> bool {
        self.request.is_about_much(state, light)
    }
}

impl Work for Patch {
    fn is_large(&self, light: usize) -> bool {
        let operations = self.body.as_array().map_or(0, Vec::len);
        is_definition(&self.target.kind.gvk.kind)
            || operations > OPERATIONS
            || is_larger(&self.body, light)
    }

    fn is_about_much(&self, state: &State, light: usize) -> bool {
        is_large_object(state, &self.target, light)
    }
}

impl Work for Delete {
    fn is_large(&self, _: usize) -> bool {
        is_definition(&self.target.kind.gvk.kind)
    }

    fn is_about_much(&self, state: &State, light: usize) -> bool {
        is_large_object(state, &self.target, light)
    }
}

impl Work for Bind {
    fn is_large(&self, _: usize) -> bool {
        false
    }

    fn is_about_much(&self, state: &State, light: usize) -> bool {
        is_large_pod(state, &self.namespace, &self.name, light)
    }
}

impl Work for Evict {
    fn is_large(&self, _: usize) -> bool {
        false
    }

    fn is_about_much(&self, state: &State, light: usize) -> bool {
        let budgets = state.kinds.builtin_id("policy", "PodDisruptionBudget");
        budgets.is_some_and(|kind| state.table(kind).objects.len() > BUDGETS)
            || is_large_pod(state, &self.namespace, &self.name, light)
    }
}

/// Objects of a list that are deleted.
#[derive(Debug, Clone)]
pub(crate) struct Listed {
    pub(crate) kind: Arc<longshore_model::KindInfo>,
    pub(crate) objects: Vec<Arc<Object>>,
    pub(crate) options: DeleteOptions,
}

impl Work for Listed {
    fn is_large(&self, light: usize) -> bool {
        is_definition(&self.kind.gvk.kind)
            || self.objects.iter().any(|object| is_large(object, light))
    }

    fn is_about_much(&self, state: &State, light: usize) -> bool {
        let Ok(kind) = state.kinds.id(&self.kind) else {
            return false;
        };
        let table = &state.table(kind).objects;
        let mut found = self
            .objects
            .iter()
            .filter_map(|object| table.get(object.key()));
        found.any(|object| is_large(object, light))
    }
}

/// What definitions say is compiled, whatever the size of a change.
fn is_definition(kind: &str) -> bool {
    kind == "CustomResourceDefinition"
}

/// Whether an object is too large for the writer.
fn is_large(object: &Object, light: usize) -> bool {
    object.bytes().len() > light
}

fn is_large_object(state: &State, target: &Target, light: usize) -> bool {
    let Ok((kind, view)) = state.kinds.resolve(&target.kind) else {
        return false;
    };
    if view.custom_kind().is_some_and(|custom| custom.is_costly) {
        return true;
    }
    let namespace = target
        .namespace
        .as_deref()
        .filter(|_| target.kind.is_namespaced());
    let key = object::key(namespace, &target.name);
    let found = state.table(kind).objects.get(&*key);
    found.is_some_and(|object| is_large(object, light))
}

fn is_large_pod(state: &State, namespace: &str, name: &str, light: usize) -> bool {
    let key = object::key(Some(namespace), name);
    let kind = state.kinds.builtin_id("", "Pod");
    let found = kind.and_then(|kind| state.table(kind).objects.get(&*key));
    found.is_some_and(|object| is_large(object, light))
}

/// Whether a value is about larger than so many bytes of JSON.
fn is_larger(value: &Value, bytes: usize) -> bool {
    let mut left = bytes;
    !fits(value, &mut left)
}

fn fits(value: &Value, left: &mut usize) -> bool {
    let take = |left: &mut usize, bytes: usize| match left.checked_sub(bytes) {
        Some(rest) => {
            *left = rest;
            true
        }
        None => false,
    };
    match value {
        Value::String(text) => take(left, text.len() + 3),
        Value::Array(items) => take(left, 2) && items.iter().all(|item| fits(item, left)),
        Value::Object(fields) => {
            take(left, 2)
                && fields
                    .iter()
                    .all(|(name, value)| take(left, name.len() + 4) && fits(value, left))
        }
        _ => take(left, 2),
    }
}

/// Does a piece of work on a copy of the state, by a thread of its own.
pub(crate) async fn prepare<T: Send + 'static>(
    base: State,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    dry_run: bool,
    work: impl FnOnce(&mut Transaction<'_>) -> Result<T, Error> + Send + 'static,
) -> Result<(T, Prepared), Error> {
    let (answer, answered) = oneshot::channel();
    let work = move || {
        let prepared = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            machine::prepare(base, clock, ids, dry_run, work)
        }));
        let prepared = prepared.unwrap_or_else(|panic| {
            let panic = message(&*panic);
            tracing::error!(panic, "a write panicked: nothing of it is kept");
            Err(Error::Internal(format!(
                "the write failed by a fault of the server: {panic}"
            )))
        });
        // A caller that has gone wants no answer.
        let _ = answer.send(prepared);
    };
    std::thread::Builder::new()
        .name("longshore-aside".into())
        .spawn(work)
        .map_err(|error| Error::Internal(format!("no thread can be started: {error}")))?;
    let lost = || Error::Internal("the thread of a write ended without an answer".into());
    answered.await.map_err(|_| lost())?
}
