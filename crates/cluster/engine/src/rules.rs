//! The rules of a kind in a served version.

use std::sync::{Arc, OnceLock};

use longshore_builtin::KindRules;

/// The rules of a kind as served: its entry, and the selectable fields that its
/// definition or view adds.
#[derive(Debug, Clone)]
pub(crate) struct ViewRules {
    rules: &'static KindRules,
    /// Selectable fields of a custom kind's definition.
    own: Arc<[String]>,
    /// Selectable fields whose names differ from the names in the stored objects.
    renamed: &'static [(&'static str, &'static str)],
}

impl From<&'static KindRules> for ViewRules {
    fn from(rules: &'static KindRules) -> Self {
        static NONE: OnceLock<Arc<[String]>> = OnceLock::new();
        Self {
            rules,
            own: NONE.get_or_init(|| Arc::new([])).clone(),
            renamed: &[],
        }
    }
}

impl std::ops::Deref for ViewRules {
    type Target = KindRules;

    fn deref(&self) -> &KindRules {
        self.rules
    }
}

impl ViewRules {
    /// Adds selectable fields of a custom kind.
    pub(crate) fn with_fields(rules: &'static KindRules, own: Arc<[String]>) -> Self {
        Self {
            own,
            ..Self::from(rules)
        }
    }

    /// Renames the selectable fields: only the given fields remain selectable,
    /// each listed with its name in the entry.
    pub(crate) fn with_names(&self, renamed: &'static [(&'static str, &'static str)]) -> Self {
        Self {
            renamed,
            ..self.clone()
        }
    }

    /// Returns true if a field selector may use `path`.
    pub(crate) fn is_selectable(&self, path: &str) -> bool {
        matches!(path, "metadata.name" | "metadata.namespace")
            || self.is_own(path)
            || self.index_of(path).is_some()
    }

    /// Returns true if other fields than name and namespace are selectable.
    pub(crate) fn has_own_fields(&self) -> bool {
        !self.own.is_empty() || !self.rules.fields.is_empty()
    }

    /// Index of a selectable field within the result of `extract`.
    pub(crate) fn index_of(&self, path: &str) -> Option<usize> {
        let path = if self.renamed.is_empty() {
            path
        } else {
            let (_, stored) = self.renamed.iter().find(|(shown, _)| *shown == path)?;
            stored
        };
        self.rules.fields.iter().position(|field| *field == path)
    }

    /// Returns true if `path` is a selectable field of a custom kind's definition.
    pub(crate) fn is_own(&self, path: &str) -> bool {
        self.own.iter().any(|own| own == path)
    }
}
