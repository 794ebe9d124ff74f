//! Selects the objects of a list or watch by namespace, labels and fields.

use longshore_model::{FieldSelector, KindInfo, LabelSelector};

use crate::{Error, Object, rules::ViewRules};

/// A validated selection of objects of one kind.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    /// `namespace/`; empty for all namespaces.
    pub(crate) prefix: String,
    labels: LabelSelector,
    fields: FieldSelector,
    rules: ViewRules,
}

impl Selection {
    /// Validates that the kind supports these fields in selectors.
    pub(crate) fn new(
        kind: &KindInfo,
        rules: &ViewRules,
        namespace: Option<&str>,
        labels: &LabelSelector,
        fields: &FieldSelector,
    ) -> Result<Self, Error> {
        if let Some(path) = fields.paths().find(|path| !rules.is_selectable(path)) {
            return Err(Error::BadRequest(if rules.has_own_fields() {
                format!("field label not supported: {path}")
            } else {
                format!(
                    "{path:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                )
            }));
        }
        let prefix = match namespace {
            Some(namespace) if kind.is_namespaced() => format!("{namespace}/"),
            _ => String::new(),
        };
        Ok(Self {
            prefix,
            labels: labels.clone(),
            fields: fields.clone(),
            rules: rules.clone(),
        })
    }

    /// Whether all objects of the namespace match.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }

    /// Whether an object matches.
    pub(crate) fn matches(&self, object: &Object) -> bool {
        object.key().starts_with(&self.prefix)
            && (self.labels.is_everything() || self.labels.matches(object.labels()))
            && (self.fields.is_everything()
                || self
                    .fields
                    .matches_with(|path| object.field(&self.rules, path).map(Into::into)))
    }
}
