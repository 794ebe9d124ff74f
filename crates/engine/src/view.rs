//! Views: a version of a kind as clients see it. Built-in kinds are shown as
//! they are stored; custom kinds in each of their versions; Events also in the
//! form of events.k8s.io, and HorizontalPodAutoscalers in that of autoscaling/v1.

use std::sync::Arc;

use longshore_model::{KindInfo, StatusCause};
use longshore_schema::{OwnedType, registry};
use serde_json::Value;

use crate::{
    Error, FieldValidation, Object, autoscaling,
    custom::{CustomKind, ScalePaths, builtin_scale},
    decode::{Decoded, Problem, decode},
    events,
    facts::KindFacts,
    json,
};

/// A kind in one of its versions.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) info: Arc<KindInfo>,
    /// What selectors and the machinery know of it.
    pub(crate) facts: KindFacts,
    form: Form,
}

#[derive(Debug)]
enum Form {
    /// As it is stored.
    Stored,
    /// By the definition of a custom kind.
    Custom(Arc<CustomKind>),
    /// Events of events.k8s.io, stored as those of the core group.
    Event,
    /// Autoscalers of autoscaling/v1, stored as those of v2.
    Autoscaler,
}

impl View {
    /// A kind shown as it is stored.
    pub(crate) fn stored(info: Arc<KindInfo>, facts: KindFacts) -> Self {
        Self {
            info,
            facts,
            form: Form::Stored,
        }
    }

    /// A version of a custom kind.
    pub(crate) fn custom(info: Arc<KindInfo>, facts: KindFacts, kind: Arc<CustomKind>) -> Self {
        Self {
            info,
            facts,
            form: Form::Custom(kind),
        }
    }

    /// The Events of events.k8s.io.
    pub(crate) fn event(info: Arc<KindInfo>, facts: KindFacts) -> Self {
        Self {
            info,
            facts,
            form: Form::Event,
        }
    }

    /// The autoscalers of autoscaling/v1.
    pub(crate) fn autoscaler(info: Arc<KindInfo>, facts: KindFacts) -> Self {
        Self {
            info,
            facts,
            form: Form::Autoscaler,
        }
    }

    /// What the definition says, of a custom kind.
    pub(crate) fn custom_kind(&self) -> Option<&Arc<CustomKind>> {
        match &self.form {
            Form::Custom(kind) => Some(kind),
            _ => None,
        }
    }

    /// Whether the version can be had at all.
    pub(crate) fn check_usable(&self) -> Result<(), Error> {
        match self
            .custom_kind()
            .and_then(|kind| kind.unconvertible.clone())
        {
            Some(why) => Err(Error::Internal(why)),
            None => Ok(()),
        }
    }

    /// The type of its objects, as server-side apply walks it.
    pub(crate) fn owned_type(&self) -> OwnedType<'_> {
        match &self.form {
            Form::Custom(kind) => OwnedType::Declared(&*kind.schema),
            _ => registry()
                .root(&self.info.gvk)
                .map_or(OwnedType::Any, OwnedType::Builtin),
        }
    }

    /// Reads an object of this view.
    pub(crate) fn decode(
        &self,
        object: Value,
        validation: FieldValidation,
    ) -> Result<Decoded, Problem> {
        let schema = self.custom_kind().map(|kind| &*kind.schema);
        decode(&self.info, schema, object, validation)
    }

    /// Where its `/scale` is.
    pub(crate) fn scale(&self) -> Option<ScalePaths> {
        match &self.form {
            Form::Custom(kind) => kind.scale.clone(),
            _ => builtin_scale(&self.info),
        }
    }

    /// An object as this view shows it.
    pub(crate) fn present(&self, object: &Arc<Object>) -> Arc<Object> {
        match &self.form {
            Form::Stored => object.clone(),
            Form::Custom(kind) if kind.alone && object.revision() > kind.since() => object.clone(),
            _ => Arc::new(object.with_value(&self.shown(object.map()))),
        }
    }

    /// What `present` shows, before it is written to bytes.
    pub(crate) fn shown(&self, mut object: json::Object) -> json::Object {
        match &self.form {
            Form::Stored => object,
            Form::Custom(kind) => {
                object.insert("apiVersion".into(), self.info.api_version().into());
                let mut value = Value::Object(object);
                kind.schema.prune(&mut value);
                kind.schema.fill(&mut value);
                match value {
                    Value::Object(object) => object,
                    // It was made of an object above, and stays one.
                    _ => json::Object::new(),
                }
            }
            Form::Event => events::shown(object),
            Form::Autoscaler => autoscaling::shown(object),
        }
    }

    /// What brings an object as this view shows it into the form of another
    /// version of the kind; `None` where they are the same.
    pub(crate) fn form_of(&self, other: &Self) -> Option<fn(json::Object) -> json::Object> {
        match (&self.form, &other.form) {
            (Form::Stored, Form::Event) => Some(events::shown),
            (Form::Event, Form::Stored) => Some(events::stored),
            (Form::Stored, Form::Autoscaler) => Some(autoscaling::shown),
            (Form::Autoscaler, Form::Stored) => Some(autoscaling::stored),
            _ => None,
        }
    }

    /// Whether the types of the kind may be others than when an object was
    /// written.
    pub(crate) fn is_newer_than(&self, object: &Object) -> bool {
        self.custom_kind()
            .is_some_and(|kind| object.revision() <= kind.since())
    }

    /// Sets the revision after which objects are as this view wants them.
    pub(crate) fn begin_at(&self, revision: u64) {
        if let Form::Custom(kind) = &self.form {
            kind.begin_at(revision);
        }
    }

    /// Calls `work` with an object, given as it is stored, as `shown` has it.
    pub(crate) fn with_shown<T>(
        &self,
        object: &json::Object,
        work: impl FnOnce(&json::Object) -> T,
    ) -> T {
        match &self.form {
            Form::Stored => work(object),
            _ => work(&self.shown(object.clone())),
        }
    }

    /// An object of this view as it is stored.
    pub(crate) fn stored_form(&self, mut object: json::Object) -> json::Object {
        match &self.form {
            Form::Stored => object,
            Form::Custom(kind) => {
                object.insert("apiVersion".into(), kind.stored_as.clone().into());
                object
            }
            Form::Event => events::stored(object),
            Form::Autoscaler => autoscaling::stored(object),
        }
    }

    /// An object in its stored form as it is kept: what the version it is kept
    /// in does not declare is dropped. `None` when that is nothing.
    pub(crate) fn kept_form(&self, object: &json::Object) -> Option<json::Object> {
        let storage = self.custom_kind()?.storage.as_ref()?;
        let mut value = Value::Object(object.clone());
        storage.prune(&mut value);
        match value {
            Value::Object(kept) => Some(kept),
            // It was made of an object above, and stays one.
            _ => None,
        }
    }

    /// What is wrong with an object, given as it is stored, beside what the
    /// stored kind asks.
    pub(crate) fn validate(
        &self,
        before: Option<&json::Object>,
        object: &json::Object,
    ) -> Vec<StatusCause> {
        match &self.form {
            Form::Stored | Form::Autoscaler => Vec::new(),
            Form::Custom(kind) => kind.validate(before, object),
            Form::Event => events::validate(before, object),
        }
    }

    /// Causes under the names that fields have in this view.
    pub(crate) fn in_own_words(&self, mut causes: Vec<StatusCause>) -> Vec<StatusCause> {
        if matches!(self.form, Form::Event) {
            events::in_own_words(&mut causes);
        }
        causes
    }
}
