//! Views: versions of a kind in the form that clients see. Built-in kinds are presented as stored,
//! custom kinds in each served version. Events are also available in events.k8s.io, and
//! HorizontalPodAutoscalers in autoscaling/v1.

use std::sync::Arc;

use longshore_builtin::json;
use longshore_model::{KindInfo, StatusCause};
use longshore_schema::{OwnedType, registry};
use serde_json::Value;

use crate::{
    Error, FieldValidation, Object, autoscaling,
    custom::{Conversion, CustomKind, ScalePaths, builtin_scale},
    decode::{Decoded, Problem, decode, drop_invalid},
    events,
    rules::ViewRules,
};

/// A version of a kind.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) info: Arc<KindInfo>,
    /// The properties of the kind for selectors and the machinery.
    pub(crate) rules: ViewRules,
    form: Form,
}

#[derive(Debug)]
enum Form {
    /// The stored form.
    Stored,
    /// A version of a custom kind.
    Custom(Arc<CustomKind>),
    /// Events of events.k8s.io, stored as core Events.
    Event,
    /// HorizontalPodAutoscalers of autoscaling/v1, stored as v2.
    Autoscaler,
}

impl View {
    /// A kind that is presented as stored.
    pub(crate) fn stored(info: Arc<KindInfo>, rules: ViewRules) -> Self {
        Self {
            info,
            rules,
            form: Form::Stored,
        }
    }

    /// A version of a custom kind.
    pub(crate) fn custom(info: Arc<KindInfo>, rules: ViewRules, kind: Arc<CustomKind>) -> Self {
        Self {
            info,
            rules,
            form: Form::Custom(kind),
        }
    }

    /// The Events of events.k8s.io.
    pub(crate) fn event(info: Arc<KindInfo>, rules: ViewRules) -> Self {
        Self {
            info,
            rules,
            form: Form::Event,
        }
    }

    /// The HorizontalPodAutoscalers of autoscaling/v1.
    pub(crate) fn autoscaler(info: Arc<KindInfo>, rules: ViewRules) -> Self {
        Self {
            info,
            rules,
            form: Form::Autoscaler,
        }
    }

    /// The compiled definition, if this is a custom kind.
    pub(crate) fn custom_kind(&self) -> Option<&Arc<CustomKind>> {
        match &self.form {
            Form::Custom(kind) => Some(kind),
            _ => None,
        }
    }

    /// The conversion webhook of the kind, if it has one. The engine does not convert the objects
    /// of such a kind.
    pub(crate) fn conversion(&self) -> Option<&Conversion> {
        self.custom_kind()?.conversion.as_ref()
    }

    /// The error for an object that only a webhook can convert.
    pub(crate) fn not_converted(&self) -> Error {
        Error::Untyped(format!(
            "conversion webhook for {}, Kind={} failed: this request is served in the storage version only",
            self.info.api_version(),
            self.info.gvk.kind,
        ))
    }

    /// The type of the objects for server-side apply.
    pub(crate) fn owned_type(&self) -> OwnedType<'_> {
        match &self.form {
            Form::Custom(kind) => OwnedType::Declared(&*kind.schema),
            _ => registry()
                .root(&self.info.gvk)
                .map_or(OwnedType::Any, OwnedType::Builtin),
        }
    }

    /// Decodes an object of this view.
    pub(crate) fn decode(
        &self,
        object: Value,
        validation: FieldValidation,
    ) -> Result<Decoded, Problem> {
        let schema = self.custom_kind().map(|kind| &*kind.schema);
        decode(&self.info, schema, object, validation)
    }

    /// The paths of the `/scale` subresource.
    pub(crate) fn scale(&self) -> Option<ScalePaths> {
        match &self.form {
            Form::Custom(kind) => kind.scale.clone(),
            _ => builtin_scale(&self.info, &self.rules),
        }
    }

    /// Converts a stored object to this view.
    pub(crate) fn present(&self, object: &Arc<Object>) -> Arc<Object> {
        match self.is_presented_as_stored(object) {
            true => object.clone(),
            false => Arc::new(object.with_value(&self.convert(object.map()))),
        }
    }

    /// The fields of a stored object as this view presents them.
    pub(crate) fn presented_map(&self, object: &Object) -> json::Object {
        match self.is_presented_as_stored(object) {
            true => object.map(),
            false => self.convert(object.map()),
        }
    }

    fn is_presented_as_stored(&self, object: &Object) -> bool {
        match &self.form {
            Form::Stored => true,
            Form::Custom(kind) => kind.is_only_version && object.revision() > kind.since(),
            Form::Event | Form::Autoscaler => false,
        }
    }

    /// Like `present`, for an object that is not encoded.
    pub(crate) fn convert(&self, mut object: json::Object) -> json::Object {
        match &self.form {
            Form::Stored => object,
            // Only a webhook can convert it.
            Form::Custom(kind)
                if kind.conversion.is_some()
                    && object
                        .get("apiVersion")
                        .is_some_and(|own| *own != self.info.api_version()) =>
            {
                object
            }
            Form::Custom(kind) => {
                object.insert("apiVersion".into(), self.info.api_version().into());
                let mut value = Value::Object(object);
                kind.schema.prune(&mut value);
                kind.schema.fill(&mut value);
                let drop = &mut |_: &str, inner: &mut _| drop_invalid(inner);
                kind.schema.visit_embedded(&mut value, drop);
                match value {
                    Value::Object(object) => object,
                    // The value is an object and stays one.
                    _ => json::Object::new(),
                }
            }
            Form::Event => events::to_events_v1(object),
            Form::Autoscaler => autoscaling::to_v1(object),
        }
    }

    /// The conversion from this view to another view of the kind; `None` if no
    /// conversion is needed.
    pub(crate) fn conversion_to(&self, other: &Self) -> Option<fn(json::Object) -> json::Object> {
        match (&self.form, &other.form) {
            (Form::Stored, Form::Event) => Some(events::to_events_v1),
            (Form::Event, Form::Stored) => Some(events::to_core_v1),
            (Form::Stored, Form::Autoscaler) => Some(autoscaling::to_v1),
            (Form::Autoscaler, Form::Stored) => Some(autoscaling::to_v2),
            _ => None,
        }
    }

    /// Returns true if the schema of the kind may have changed since an object was written.
    pub(crate) fn is_newer_than(&self, object: &Object) -> bool {
        self.custom_kind()
            .is_some_and(|kind| object.revision() <= kind.since())
    }

    /// Sets the revision after which all written objects conform to this view.
    pub(crate) fn set_since(&self, revision: u64) {
        if let Form::Custom(kind) = &self.form {
            kind.set_since(revision);
        }
    }

    /// Calls `work` with a converted stored object.
    pub(crate) fn with_converted<T>(
        &self,
        object: &json::Object,
        work: impl FnOnce(&json::Object) -> T,
    ) -> T {
        match &self.form {
            Form::Stored => work(object),
            _ => work(&self.convert(object.clone())),
        }
    }

    /// Converts an object of this view to the stored form.
    pub(crate) fn to_stored_form(&self, mut object: json::Object) -> json::Object {
        match &self.form {
            Form::Stored => object,
            Form::Custom(kind) if kind.conversion.is_some() => object,
            Form::Custom(kind) => {
                object.insert("apiVersion".into(), kind.stored_as.clone().into());
                object
            }
            Form::Event => events::to_core_v1(object),
            Form::Autoscaler => autoscaling::to_v2(object),
        }
    }

    /// Drops fields that the storage version does not declare from an object in stored form; `None`
    /// if the object has no such fields.
    pub(crate) fn prune_for_storage(&self, object: &json::Object) -> Option<json::Object> {
        let storage = self.custom_kind()?.storage.as_ref()?;
        let mut value = Value::Object(object.clone());
        storage.prune(&mut value);
        match value {
            Value::Object(kept) => Some(kept),
            // The value is an object and stays one.
            _ => None,
        }
    }

    /// Runs the validation of this view that the stored kind does not have. Adds errors that do not
    /// block an update to `warnings`.
    pub(crate) fn validate(
        &self,
        before: Option<&json::Object>,
        object: &json::Object,
        warnings: &mut Vec<String>,
    ) -> Vec<StatusCause> {
        match &self.form {
            Form::Stored | Form::Autoscaler => Vec::new(),
            Form::Custom(kind) => kind.validate(before, object, warnings),
            Form::Event => events::validate(before, object),
        }
    }

    /// Renames the fields in causes to the field names of this view.
    pub(crate) fn rename_cause_fields(&self, mut causes: Vec<StatusCause>) -> Vec<StatusCause> {
        if matches!(self.form, Form::Event) {
            events::rename_cause_fields(&mut causes);
        }
        causes
    }
}
