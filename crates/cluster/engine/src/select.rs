//! Selects the objects of a list or watch by namespace, labels and fields.

use std::{cell::OnceCell, sync::Arc};

use longshore_builtin::selectable;
use longshore_model::{FieldSelector, LabelSelector};

use crate::{Error, Object, view::View};

/// A validated selection of objects of one kind.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    /// `namespace/`; empty for all namespaces.
    pub(crate) prefix: String,
    labels: LabelSelector,
    fields: FieldSelector,
    /// True if `fields` lacks the terms of `ConvertedFields`.
    awaits_conversion: bool,
    view: Arc<View>,
}

/// The terms of a field selector on fields of a custom kind whose definition has a conversion
/// webhook. The engine does not know the values of these fields in the version of the request: its
/// lists and watches leave these terms to the API server, which converts the objects.
#[derive(Debug, Clone)]
pub struct ConvertedFields {
    fields: FieldSelector,
    view: Arc<View>,
}

impl ConvertedFields {
    /// Returns the terms of a selector that the engine does not evaluate; `None` if it evaluates
    /// all terms.
    pub(crate) fn of(view: &Arc<View>, fields: &FieldSelector) -> Option<Self> {
        view.conversion()?;
        let fields = fields.only(|path| view.rules.is_own(path));
        (!fields.is_everything()).then(|| Self {
            fields,
            view: view.clone(),
        })
    }

    /// Returns true if an object matches. The object must be in the version of the request.
    #[must_use]
    pub fn matches(&self, object: &Object) -> bool {
        matches(&self.view, &self.fields, object)
    }
}

/// Returns true if a stored object matches in the form that the view presents.
fn matches(view: &View, fields: &FieldSelector, object: &Object) -> bool {
    let presented = OnceCell::new();
    fields.matches_with(|path| match view.rules.is_own(path) {
        true => {
            let presented = presented.get_or_init(|| view.presented_map(object));
            Some(selectable::field(presented, path))
        }
        false => object.field(&view.rules, path).map(Into::into),
    })
}

impl Selection {
    /// Validates that the kind supports these fields in selectors.
    pub(crate) fn new(
        view: &Arc<View>,
        namespace: Option<&str>,
        labels: &LabelSelector,
        fields: &FieldSelector,
    ) -> Result<Self, Error> {
        let rules = &view.rules;
        if let Some(path) = fields.paths().find(|path| !rules.is_selectable(path)) {
            return Err(Error::BadRequest(if rules.has_own_fields() {
                format!("field label not supported: {path}")
            } else {
                format!(
                    "{path:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                )
            }));
        }
        let awaits_conversion = ConvertedFields::of(view, fields).is_some();
        Ok(Self {
            prefix: prefix(view, namespace),
            labels: labels.clone(),
            fields: match awaits_conversion {
                true => fields.only(|path| !rules.is_own(path)),
                false => fields.clone(),
            },
            awaits_conversion,
            view: view.clone(),
        })
    }

    /// Returns true if all objects of the namespace match.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything() && !self.awaits_conversion
    }

    /// Returns true if the selector has further terms to evaluate after conversion. See
    /// [`ConvertedFields`].
    pub(crate) fn awaits_conversion(&self) -> bool {
        self.awaits_conversion
    }

    /// Returns true if an object matches.
    pub(crate) fn matches(&self, object: &Object) -> bool {
        object.key().starts_with(&self.prefix)
            && (self.labels.is_everything() || self.labels.matches(object.labels()))
            && (self.fields.is_everything() || matches(&self.view, &self.fields, object))
    }
}

/// The start of the keys of a namespace's objects.
pub(crate) fn prefix(view: &View, namespace: Option<&str>) -> String {
    match namespace {
        Some(namespace) if view.info.is_namespaced() => format!("{namespace}/"),
        _ => String::new(),
    }
}
