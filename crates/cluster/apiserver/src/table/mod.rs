//! Tables: objects as rows (`meta.k8s.io` `Table`), with the columns of their
//! built-in kind or of their definition.

mod custom;
mod json_path;

use std::sync::Arc;

use jiff::Timestamp;
use longshore_builtin::{KindRules, PLAIN, find_served, table::Column};
use longshore_engine::CustomKind;
use longshore_model::Gvk;
use serde_json::Value;

/// The columns and cells of a kind.
pub(crate) enum Printer {
    Builtin(&'static KindRules),
    Custom(custom::Columns),
}

/// Returns the printer of a custom kind.
pub(crate) fn custom_printer(kind: Arc<CustomKind>) -> Printer {
    Printer::Custom(custom::Columns::of(kind))
}

/// Returns the printer of a kind; by default with name and age.
pub(crate) fn printer(gvk: &Gvk) -> Printer {
    Printer::Builtin(find_served(gvk).unwrap_or(&PLAIN))
}

impl Printer {
    /// Returns the `columnDefinitions`.
    pub(crate) fn definitions(&self) -> Value {
        match self {
            Self::Custom(custom) => custom.definitions(),
            Self::Builtin(rules) => rules.columns.iter().map(Column::definition).collect(),
        }
    }

    /// Returns the cells of an object's row, one per column.
    pub(crate) fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        match self {
            Self::Custom(custom) => custom.cells(object, now),
            Self::Builtin(rules) => (rules.cells)(object, now),
        }
    }

    /// Returns the conditions of an object's row; finished pods have one.
    pub(crate) fn conditions(&self, object: &Value) -> Option<Value> {
        match self {
            Self::Custom(_) => None,
            Self::Builtin(rules) => (rules.row_conditions)(object),
        }
    }
}
