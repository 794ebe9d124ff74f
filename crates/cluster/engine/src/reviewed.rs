//! Writes that admission outside of the engine reviews. They are executed on a copy of the state,
//! outside of the writer. The writer commits the result if the objects are unchanged since the
//! review. A slow review therefore delays only its own write.

use std::{
    collections::VecDeque,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
};

use jiff::Timestamp;
use longshore_model::{KindInfo, time};
use serde_json::Value;

use crate::{
    Create, Delete, DeleteCollection, Deleted, Dependency, Engine, Error, Object, Page, Patch,
    Review, Subject, Subresource, Update, Written,
    machine::{self, Answers, Next, Rebase, Reviews, Transaction},
    managed,
    offload::{ListedObjects, MAX_ATTEMPTS},
    options::{Clock, Ids},
    patch,
    view::View,
};

/// Number of executions of a reviewed write, including those that stop: for two
/// reviews and three conversions for each attempt to commit it.
const MAX_EXECUTIONS: usize = 6 * MAX_ATTEMPTS;

/// Reviews writes.
pub trait Reviewer: Send + Sync {
    /// Reviews a write. Returns the object if the review changes it.
    ///
    /// # Errors
    /// The write is refused.
    fn review(&self, review: &Review) -> impl Future<Output = Result<Option<Value>, Error>> + Send;

    /// Converts an object to another version (`group/version`) if the definition of its kind has a
    /// conversion webhook.
    ///
    /// # Errors
    /// The object cannot be converted.
    fn convert(
        &self,
        object: Value,
        version: &str,
    ) -> impl Future<Output = Result<Value, Error>> + Send;

    /// The other objects on which the reviews depend. The write is reviewed again if they have
    /// changed when it is committed.
    fn dependencies(&self) -> Vec<Dependency>;

    /// Removes the dependencies before the write is reviewed again.
    fn forget_dependencies(&self);
}

/// A source of ids that are the same in each execution of a write, so that the write stores the
/// names that were reviewed.
struct RepeatedIds {
    source: Arc<dyn Ids>,
    lists: Mutex<[IdList; 2]>,
}

/// Ids that were returned, and the ids to return again.
#[derive(Default)]
struct IdList {
    given: Vec<String>,
    again: VecDeque<String>,
}

impl IdList {
    fn next(&mut self, generate: impl FnOnce() -> String) -> String {
        if let Some(id) = self.again.pop_front() {
            return id;
        }
        let id = generate();
        self.given.push(id.clone());
        id
    }
}

impl RepeatedIds {
    fn new(source: Arc<dyn Ids>) -> Self {
        Self {
            source,
            lists: Mutex::default(),
        }
    }

    /// Returns the same ids again from now on.
    fn restart(&self) {
        for list in &mut *self.lists.lock().unwrap_or_else(PoisonError::into_inner) {
            list.again = list.given.iter().cloned().collect();
        }
    }

    fn next(&self, list: usize, generate: impl FnOnce() -> String) -> String {
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        match lists.get_mut(list) {
            Some(list) => list.next(generate),
            None => generate(),
        }
    }
}

impl Ids for RepeatedIds {
    fn uid(&self) -> String {
        self.next(0, || self.source.uid())
    }

    fn suffix(&self) -> String {
        self.next(1, || self.source.suffix())
    }
}

/// A time that is the same in each execution of a write, so that the objects to convert are the
/// same.
struct FixedTime(Timestamp);

impl Clock for FixedTime {
    fn now(&self) -> Timestamp {
        self.0
    }
}

impl Engine {
    /// The revision of the last change of the objects that configure admission
    /// (`admissionregistration.k8s.io`); 0 if they have never changed.
    #[must_use]
    pub fn admission_revision(&self) -> u64 {
        self.state().admission_revision
    }

    /// Like [`Engine::create`], with a reviewer.
    ///
    /// # Errors
    /// The errors of [`Engine::create`] and of the reviewer.
    pub async fn create_reviewed(
        &self,
        request: Create,
        reviewer: &impl Reviewer,
    ) -> Result<Written, Error> {
        let view = self.view(&request.kind)?;
        let dry_run = request.options.dry_run;
        let written = self
            .write_reviewed(dry_run, request, reviewer, machine::create_reviewed)
            .await?;
        Ok(self.presented(&view, written))
    }

    /// Like [`Engine::update`], with a reviewer.
    ///
    /// # Errors
    /// The errors of [`Engine::update`] and of the reviewer.
    pub async fn update_reviewed(
        &self,
        request: Update,
        reviewer: &impl Reviewer,
    ) -> Result<Written, Error> {
        let view = self.view(&request.target.kind)?;
        let (dry_run, subresource) = (request.options.dry_run, request.subresource);
        let written = self
            .write_reviewed(dry_run, request, reviewer, |tx, mut request| {
                let decoded = machine::decode_update(tx, &mut request)?;
                machine::update(tx, request, decoded)
            })
            .await?;
        Ok(self.presented_part(&view, subresource, written))
    }

    /// Like [`Engine::patch`], with a reviewer.
    ///
    /// # Errors
    /// The errors of [`Engine::patch`] and of the reviewer.
    pub async fn patch_reviewed(
        &self,
        request: Patch,
        reviewer: &impl Reviewer,
    ) -> Result<Written, Error> {
        let view = self.view(&request.target.kind)?;
        let (dry_run, subresource) = (request.options.dry_run, request.subresource);
        let written = self
            .write_reviewed(dry_run, request, reviewer, machine::patch)
            .await?;
        Ok(self.presented_part(&view, subresource, written))
    }

    fn presented_part(
        &self,
        view: &Arc<View>,
        subresource: Subresource,
        written: Written,
    ) -> Written {
        match subresource {
            Subresource::Scale => written,
            _ => self.presented(view, written),
        }
    }

    /// Like [`Engine::delete`], with a reviewer.
    ///
    /// # Errors
    /// The errors of [`Engine::delete`] and of the reviewer.
    pub async fn delete_reviewed(
        &self,
        request: Delete,
        reviewer: &impl Reviewer,
    ) -> Result<Deleted, Error> {
        let view = self.view(&request.target.kind)?;
        let dry_run = request.options.dry_run;
        let deleted = self
            .write_reviewed(dry_run, request, reviewer, |tx, request: Delete| {
                machine::delete(tx, &request.target, &request.options)
            })
            .await?;
        Ok(match deleted {
            Deleted::Gone(object) => Deleted::Gone(view.present(&object)),
            Deleted::Pending(object) => Deleted::Pending(view.present(&object)),
        })
    }

    /// Like [`Engine::delete_collection`], with a reviewer for each delete.
    ///
    /// # Errors
    /// The errors of [`Engine::delete_collection`] and of the reviewer. Some of the objects may
    /// already be deleted.
    pub async fn delete_collection_reviewed(
        &self,
        request: DeleteCollection,
        reviewer: &impl Reviewer,
    ) -> Result<Page, Error> {
        machine::check_options(&request.options)?;
        let dry_run = request.options.dry_run;
        let (stored, page) = self.listed(&request.list)?;
        for object in stored {
            let listed = ListedObjects {
                kind: request.list.kind.clone(),
                objects: vec![object],
                options: request.options.clone(),
            };
            self.write_reviewed(dry_run, listed, reviewer, |tx, listed: ListedObjects| {
                machine::delete_listed(tx, &listed.kind, &listed.objects, &listed.options)
            })
            .await?;
        }
        Ok(page)
    }

    /// Executes a write until all of its reviews are answered, and commits the result.
    async fn write_reviewed<R, T>(
        &self,
        dry_run: bool,
        request: R,
        reviewer: &impl Reviewer,
        work: fn(&mut Transaction<'_>, R) -> Result<T, Error>,
    ) -> Result<T, Error>
    where
        R: Clone + Send + 'static,
        T: Rebase + Send + 'static,
    {
        let ids = Arc::new(RepeatedIds::new(self.ids()));
        let mut answers = Answers::default();
        let mut now = self.now();
        for _ in 0..MAX_EXECUTIONS {
            ids.restart();
            let reviews = Arc::new(Reviews::new(answers.clone(), time::seconds(now)));
            let of_request = request.clone();
            let execution = self.prepare_aside(
                (ids.clone(), Arc::new(FixedTime(now))),
                dry_run,
                reviews.clone(),
                move |tx| work(tx, of_request),
            );
            let prepared = execution.await;
            match reviews.take_next() {
                None => {}
                Some(Next::Review(review)) => {
                    let changed = reviewer.review(&review).await?;
                    answers.add(review, changed);
                    now = self.now();
                    continue;
                }
                Some(Next::Conversion(object, version)) => {
                    let sent = Value::Object(object.clone());
                    let Value::Object(converted) = reviewer.convert(sent, &version).await? else {
                        let problem = "a converted object is no object";
                        return Err(Error::Internal(problem.into()));
                    };
                    answers.add_conversion(object, version, converted);
                    continue;
                }
            }
            let (done, mut prepared) = prepared?;
            if dry_run {
                return Ok(done);
            }
            let dependencies = reviewer.dependencies();
            prepared.depends_on(dependencies.clone());
            if let Some(moved) = self.commit_prepared(prepared).await? {
                return Ok(done.rebased(moved));
            }
            let state = self.state();
            if !dependencies.iter().all(|one| one.holds(&state)) {
                answers.forget_reviews();
                reviewer.forget_dependencies();
            }
        }
        Err(Error::Conflict {
            subject: Subject::default(),
            reason: format!(
                "the object has been modified {MAX_ATTEMPTS} times while admission reviewed the change; please apply your changes to the latest version and try again"
            ),
        })
    }

    /// The versions of a kind that are served, with the given one first.
    #[must_use]
    pub fn versions_of(&self, kind: &KindInfo) -> Vec<Arc<KindInfo>> {
        let state = self.state();
        let Ok((id, view)) = state.kinds.resolve(kind) else {
            return Vec::new();
        };
        let others = state.kinds.entry(id).views.iter();
        let others = others.filter(|other| !Arc::ptr_eq(other, view));
        let all = std::iter::once(view).chain(others);
        all.map(|view| view.info.clone()).collect()
    }

    /// Converts an object between two versions of its kind.
    ///
    /// # Errors
    /// A version is not served, or the value is not an object.
    pub fn convert(&self, object: Value, from: &KindInfo, to: &KindInfo) -> Result<Value, Error> {
        let Value::Object(object) = object else {
            return Err(Error::Internal("an object to convert is no object".into()));
        };
        let stored = self.view(from)?.to_stored_form(object);
        Ok(Value::Object(self.view(to)?.convert(stored)))
    }

    /// Presents an object in another version, to which it was converted.
    ///
    /// # Errors
    /// The value is not an object, or the version is not served.
    pub fn represented(
        &self,
        object: &Object,
        converted: Value,
        kind: &KindInfo,
    ) -> Result<Arc<Object>, Error> {
        let Value::Object(converted) = converted else {
            return Err(Error::Internal("a converted object is no object".into()));
        };
        let shown = self.view(kind)?.convert(converted);
        Ok(Arc::new(object.with_value(&shown)))
    }

    /// Decodes an object of a kind and sets its defaults, as for a request.
    ///
    /// # Errors
    /// A field has the wrong type, or the kind is not served.
    pub fn with_defaults(&self, object: Value, kind: &KindInfo) -> Result<Value, Error> {
        let managed = object.pointer("/metadata/managedFields").cloned();
        let view = match &*kind.gvk.kind {
            "Scale" if &*kind.gvk.group == "autoscaling" => Arc::new(machine::scale_view()),
            _ => self.view(kind)?,
        };
        let decoded = view.decode(object, crate::FieldValidation::Ignore)?;
        let mut stored = view.to_stored_form(decoded.object);
        (view.rules.fill)(&mut stored);
        let mut object = Value::Object(view.convert(stored));
        if let (Some(managed), Some(metadata)) = (managed, object.get_mut("metadata")) {
            metadata["managedFields"] = managed;
        }
        Ok(object)
    }

    /// Merges a configuration into an object of a kind, as server-side apply does, but
    /// without a manager that owns the fields. Lists and objects that are owned as a
    /// whole cannot be merged.
    ///
    /// # Errors
    /// Returns the reason why the configuration cannot be merged.
    pub fn merge_configuration(
        &self,
        object: &Value,
        config: &Value,
        kind: &KindInfo,
    ) -> Result<Value, String> {
        let (Value::Object(object), Value::Object(config)) = (object, config) else {
            return Err("a configuration and its object must be objects".to_owned());
        };
        let view = self.view(kind).map_err(|error| error.to_string())?;
        managed::merged(view.owned_type(), object, config).map(Value::Object)
    }

    /// Like [`Engine::apply_json_patch`], but returns `None` if a test of the patch fails.
    ///
    /// # Errors
    /// The patch is malformed, too large, or cannot be applied.
    pub fn apply_tested_json_patch(
        document: Value,
        operations: &Value,
    ) -> Result<Option<Value>, Error> {
        patch::apply_json_tested(document, operations)
    }

    /// Applies a JSON patch (RFC 6902) with its text to a document.
    ///
    /// # Errors
    /// The patch is malformed, too large, or cannot be applied.
    pub fn apply_json_patch(
        document: Value,
        operations: &Value,
        text: &str,
    ) -> Result<Value, Error> {
        patch::apply_json(document, operations, Some(text))
    }
}
