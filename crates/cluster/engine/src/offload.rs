//! Decides which writes run outside the writer thread, and runs them. The writer executes small
//! writes itself, so the state cannot change while they run. A write that may take longer than a
//! few milliseconds runs on a separate thread, against a copy of the state. The writer then commits
//! the result if all data that the write read is unchanged; otherwise the write runs again.

use std::sync::Arc;

use longshore_model::KindInfo;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::{
    Bind, Create, Delete, DeleteOptions, Error, Evict, Object, Patch, Target, Update, custom,
    machine::{self, Prepared, Reviews, Transaction, message},
    object,
    options::{Clock, Ids},
    state::State,
};

/// Largest number of JSON patch operations that the writer executes itself.
const MAX_INLINE_OPERATIONS: usize = 64;

/// Largest number of PodDisruptionBudgets that the writer evaluates itself for
/// an eviction.
const MAX_INLINE_BUDGETS: usize = 64;

/// Number of writes that may be prepared concurrently. Each needs a multiple of the memory of its
/// body.
pub(crate) const MAX_OFFLOADED: usize = 2;

/// Number of times that a write is prepared again after a conflicting change. Kubernetes uses the
/// same limit for patches.
pub(crate) const MAX_ATTEMPTS: usize = 5;

/// The cost of a write, which decides where it runs.
pub(crate) trait WriteCost {
    /// Returns true if the request alone shows that the write may take long. Requests of up to
    /// `inline_limit` bytes do not.
    fn is_large_request(&self, inline_limit: usize) -> bool;

    /// Returns true if the objects that the write touches show that it may take long.
    fn affects_large_objects(&self, state: &State, inline_limit: usize) -> bool;
}

impl WriteCost for Create {
    fn is_large_request(&self, inline_limit: usize) -> bool {
        is_definition(&self.kind) || is_larger(&self.object, inline_limit)
    }

    fn affects_large_objects(&self, _: &State, _: usize) -> bool {
        // A create is validated before it is queued, whatever its size.
        false
    }
}

impl WriteCost for Update {
    fn is_large_request(&self, inline_limit: usize) -> bool {
        is_definition(&self.target.kind) || is_larger(&self.object, inline_limit)
    }

    fn affects_large_objects(&self, state: &State, inline_limit: usize) -> bool {
        is_large_object(state, &self.target, inline_limit)
    }
}

/// An update whose body has already been decoded.
impl WriteCost for machine::DecodedUpdate {
    fn is_large_request(&self, _: usize) -> bool {
        false
    }

    fn affects_large_objects(&self, state: &State, inline_limit: usize) -> bool {
        self.request.affects_large_objects(state, inline_limit)
    }
}

impl WriteCost for Patch {
    fn is_large_request(&self, inline_limit: usize) -> bool {
        let operations = self.body.as_array().map_or(0, Vec::len);
        is_definition(&self.target.kind)
            || operations > MAX_INLINE_OPERATIONS
            || is_larger(&self.body, inline_limit)
    }

    fn affects_large_objects(&self, state: &State, inline_limit: usize) -> bool {
        is_large_object(state, &self.target, inline_limit)
    }
}

impl WriteCost for Delete {
    fn is_large_request(&self, _: usize) -> bool {
        is_definition(&self.target.kind)
    }

    fn affects_large_objects(&self, state: &State, inline_limit: usize) -> bool {
        is_large_object(state, &self.target, inline_limit)
    }
}

impl WriteCost for Bind {
    fn is_large_request(&self, _: usize) -> bool {
        false
    }

    fn affects_large_objects(&self, state: &State, inline_limit: usize) -> bool {
        is_large_pod(state, &self.namespace, &self.name, inline_limit)
    }
}

impl WriteCost for Evict {
    fn is_large_request(&self, _: usize) -> bool {
        false
    }

    fn affects_large_objects(&self, state: &State, inline_limit: usize) -> bool {
        let budgets = state.kinds.builtin_id("policy", "PodDisruptionBudget");
        budgets.is_some_and(|kind| state.table(kind).objects.len() > MAX_INLINE_BUDGETS)
            || is_large_pod(state, &self.namespace, &self.name, inline_limit)
    }
}

/// The objects that a delete of a collection removes.
#[derive(Debug, Clone)]
pub(crate) struct ListedObjects {
    pub(crate) kind: Arc<KindInfo>,
    pub(crate) objects: Vec<Arc<Object>>,
    pub(crate) options: DeleteOptions,
}

impl WriteCost for ListedObjects {
    fn is_large_request(&self, inline_limit: usize) -> bool {
        is_definition(&self.kind)
            || self
                .objects
                .iter()
                .any(|object| is_large(object, inline_limit))
    }

    fn affects_large_objects(&self, state: &State, inline_limit: usize) -> bool {
        let Ok(kind) = state.kinds.id(&self.kind) else {
            return false;
        };
        let table = &state.table(kind).objects;
        let mut found = self
            .objects
            .iter()
            .filter_map(|object| table.get(object.key()));
        found.any(|object| is_large(object, inline_limit))
    }
}

/// Returns true for definitions. Any change of a definition compiles its schemas.
fn is_definition(kind: &KindInfo) -> bool {
    custom::is_definition(&kind.gvk.group, &kind.gvk.kind)
}

/// Returns true if an object is too large for the writer thread.
fn is_large(object: &Object, inline_limit: usize) -> bool {
    object.bytes().len() > inline_limit
}

fn is_large_object(state: &State, target: &Target, inline_limit: usize) -> bool {
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
    found.is_some_and(|object| is_large(object, inline_limit))
}

fn is_large_pod(state: &State, namespace: &str, name: &str, inline_limit: usize) -> bool {
    let key = object::key(Some(namespace), name);
    let kind = state.kinds.builtin_id("", "Pod");
    let found = kind.and_then(|kind| state.table(kind).objects.get(&*key));
    found.is_some_and(|object| is_large(object, inline_limit))
}

/// Returns true if a value takes more than about `bytes` bytes as JSON.
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

/// Prepares a write on a separate thread, against a copy of the state. `reviewed` contains true for
/// a dry run, and the reviews of the write.
pub(crate) async fn prepare<T: Send + 'static>(
    base: State,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    reviewed: (bool, Option<Arc<Reviews>>),
    work: impl FnOnce(&mut Transaction<'_>) -> Result<T, Error> + Send + 'static,
) -> Result<(T, Prepared), Error> {
    let (answer, answered) = oneshot::channel();
    let work = move || {
        let prepared = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            machine::prepare(base, clock, ids, reviewed, work)
        }));
        let prepared = prepared.unwrap_or_else(|panic| {
            let panic = message(&*panic);
            tracing::error!(panic, "a write panicked; nothing was stored");
            Err(Error::Internal(format!(
                "the write failed by a fault of the server: {panic}"
            )))
        });
        // The receiver may have stopped waiting.
        let _ = answer.send(prepared);
    };
    std::thread::Builder::new()
        .name("longshore-aside".into())
        .spawn(work)
        .map_err(|error| Error::Internal(format!("no thread can be started: {error}")))?;
    let lost = || Error::Internal("the thread of a write ended without an answer".into());
    answered.await.map_err(|_| lost())?
}
