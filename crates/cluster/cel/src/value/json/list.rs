//! Lists from the input and computed lists.

use std::rc::Rc;

use serde_json::Value as Json;

use super::from_json;
use crate::{
    decl::{Decl, ListKind},
    error::EvalError,
    value::Value,
};

/// A list.
#[derive(Debug, Clone)]
pub(crate) enum List<'a> {
    Json {
        items: &'a [Json],
        decl: &'a Decl,
        kind: &'a ListKind,
    },
    Own(Rc<Vec<Value<'a>>>),
    /// A list with the semantics of a schema.
    Typed {
        items: Rc<Vec<Value<'a>>>,
        kind: &'a ListKind,
    },
}

impl<'a> List<'a> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Json { items, .. } => items.len(),
            Self::Own(items) | Self::Typed { items, .. } => items.len(),
        }
    }

    pub(crate) fn kind(&self) -> &'a ListKind {
        match self {
            Self::Json { kind, .. } | Self::Typed { kind, .. } => kind,
            Self::Own(_) => &ListKind::Atomic,
        }
    }

    /// The item at an index, if it exists.
    pub(crate) fn get(&self, index: usize) -> Option<Result<Value<'a>, EvalError>> {
        match self {
            Self::Json { items, decl, .. } => Some(from_json(items.get(index)?, decl)),
            Self::Own(items) | Self::Typed { items, .. } => Some(Ok(items.get(index)?.clone())),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Result<Value<'a>, EvalError>> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// All items.
    pub(crate) fn to_vec(&self) -> Result<Vec<Value<'a>>, EvalError> {
        self.iter().collect()
    }
}
