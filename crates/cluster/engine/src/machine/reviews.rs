//! Reviews of a write by admission outside of the engine, such as webhooks. A write cannot wait for
//! them: it is executed on a copy of the state until it needs a review, given up there, and
//! executed again with the answer. An answer applies as long as the stored object is the one that
//! was reviewed.

use std::sync::{Arc, Mutex, PoisonError};

use longshore_model::KindInfo;
use serde_json::Value;

use super::{JsonObject, Transaction};
use crate::{Error, Object, view::View};

/// The stage of admission. All mutating reviews precede the validation of the object by the rules
/// of its kind, and all validating reviews follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewStage {
    /// The answer may change the object.
    Mutating,
    /// The answer only accepts or refuses the write.
    Validating,
    /// A delete, which is accepted or refused in both stages.
    Deleting,
}

/// A write of one object that waits for a review.
#[derive(Debug, Clone)]
pub struct Review {
    /// The stage.
    pub stage: ReviewStage,
    /// The kind of the objects; `Scale` for writes of the subresource `scale`.
    pub kind: Arc<KindInfo>,
    /// The namespace; `None` for cluster-scoped kinds.
    pub namespace: Option<String>,
    /// The new object; `None` for a delete.
    pub object: Option<Value>,
    /// The stored object; `None` for a create.
    pub old_object: Option<Value>,
    basis: Basis,
}

/// The state of the stored object that a review is about: uid and revision; `None` if the object
/// does not exist.
type Basis = Option<(Box<str>, u64)>;

fn basis(old: Option<&Object>) -> Basis {
    old.map(|old| (old.uid().into(), old.revision()))
}

/// The answers to the reviews of a write so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answers {
    mutated: Option<(Basis, Value)>,
    accepted: Option<Basis>,
    /// Objects that were converted, with the versions that they were converted
    /// to, and the results.
    conversions: Vec<(JsonObject, String, JsonObject)>,
}

/// The input that an execution of a write needs to continue.
#[derive(Debug, Clone)]
pub(crate) enum Next {
    /// The review of an object.
    Review(Review),
    /// An object in another version.
    Conversion(JsonObject, String),
}

impl Answers {
    /// Records the result of a conversion.
    pub(crate) fn add_conversion(
        &mut self,
        object: JsonObject,
        version: String,
        converted: JsonObject,
    ) {
        self.conversions.push((object, version, converted));
    }

    /// Removes the answers to reviews, so that the reviews are repeated.
    pub(crate) fn forget_reviews(&mut self) {
        (self.mutated, self.accepted) = (None, None);
    }

    /// Records the answer to a review: the object, if it was changed.
    pub(crate) fn add(&mut self, review: Review, changed: Option<Value>) {
        match review.stage {
            ReviewStage::Mutating => {
                let object = changed.or(review.object).unwrap_or_default();
                self.mutated = Some((review.basis, object));
                self.accepted = None;
            }
            ReviewStage::Validating | ReviewStage::Deleting => self.accepted = Some(review.basis),
        }
    }
}

/// The reviews of one execution of a write.
#[derive(Debug, Default)]
pub(crate) struct Reviews {
    answers: Answers,
    /// The time that reviews of new objects show.
    pub(super) now: String,
    /// The input that the execution needs next.
    next: Mutex<Option<Next>>,
}

impl Reviews {
    pub(crate) fn new(answers: Answers, now: String) -> Self {
        Self {
            answers,
            now,
            next: Mutex::default(),
        }
    }

    /// Returns the input for which the execution stopped, if it did.
    pub(crate) fn take_next(&self) -> Option<Next> {
        self.next
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Returns the object after mutating admission.
    pub(super) fn mutate(
        &self,
        (kind, old): (&Arc<KindInfo>, Option<&Object>),
        object: JsonObject,
        shown_old: impl FnOnce() -> Option<Value>,
    ) -> Result<Value, Error> {
        match &self.answers.mutated {
            Some((reviewed, mutated)) if *reviewed == basis(old) => Ok(mutated.clone()),
            _ => Err(self.wait(Review {
                stage: ReviewStage::Mutating,
                kind: kind.clone(),
                namespace: text(&object, "namespace"),
                object: Some(Value::Object(object)),
                old_object: shown_old(),
                basis: basis(old),
            })),
        }
    }

    /// Waits for validating admission of an object.
    pub(super) fn validate(
        &self,
        (kind, old): (&Arc<KindInfo>, Option<&Object>),
        object: impl FnOnce() -> (JsonObject, Option<Value>),
    ) -> Result<(), Error> {
        if self.answers.accepted == Some(basis(old)) {
            return Ok(());
        }
        let (object, old_object) = object();
        Err(self.wait(Review {
            stage: ReviewStage::Validating,
            kind: kind.clone(),
            namespace: text(&object, "namespace"),
            object: Some(Value::Object(object)),
            old_object,
            basis: basis(old),
        }))
    }

    /// Waits for admission of a delete. `shown` is the object in the version of
    /// the request.
    pub(super) fn delete(&self, view: &View, old: &Object, shown: Value) -> Result<(), Error> {
        let basis = basis(Some(old));
        if self.answers.accepted.as_ref() == Some(&basis) {
            return Ok(());
        }
        Err(self.wait(Review {
            stage: ReviewStage::Deleting,
            kind: view.info.clone(),
            namespace: old.namespace().map(str::to_owned),
            object: None,
            old_object: Some(shown),
            basis,
        }))
    }

    /// Returns an object in another version.
    pub(super) fn convert(&self, object: JsonObject, version: &str) -> Result<JsonObject, Error> {
        let mut known = self.answers.conversions.iter();
        let found = known.find(|(from, to, _)| to == version && *from == object);
        match found {
            Some((_, _, converted)) => Ok(converted.clone()),
            None => Err(self.stop(Next::Conversion(object, version.to_owned()))),
        }
    }

    fn wait(&self, review: Review) -> Error {
        self.stop(Next::Review(review))
    }

    /// Stops the execution until the answer is available.
    fn stop(&self, next: Next) -> Error {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(next);
        Error::Internal("the write waits for a review".into())
    }
}

fn text(object: &JsonObject, field: &str) -> Option<String> {
    let text = object.get("metadata")?.get(field)?.as_str()?;
    (!text.is_empty()).then(|| text.to_owned())
}

/// Adds the managed fields to an object that a review shows.
pub(super) fn with_managed(mut object: JsonObject, managed: &str) -> JsonObject {
    let managed = serde_json::from_str(managed).unwrap_or_default();
    if let (Some(Value::Object(metadata)), Value::Array(_)) = (object.get_mut("metadata"), &managed)
    {
        metadata.insert("managedFields".into(), managed);
    }
    object
}

/// Decodes an object that mutating admission has changed. As in Kubernetes, a field with a wrong
/// type is an internal error, and an unknown field is dropped.
pub(super) fn decode(view: &View, object: Value) -> Result<JsonObject, Error> {
    let decoded = view.decode(object, crate::FieldValidation::Ignore);
    let decoded = decoded.map_err(|problem| Error::Internal(Error::from(problem).to_string()))?;
    Ok(decoded.object)
}

impl Transaction<'_> {
    /// The reviews of this write; `None` if it needs no reviews.
    pub(super) fn reviews(&self) -> Option<Arc<Reviews>> {
        self.machine.reviews.clone()
    }
}
