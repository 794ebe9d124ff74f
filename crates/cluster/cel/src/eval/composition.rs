//! The variables of a policy, which other expressions read. Each is evaluated at
//! most once, when it is first read.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
};

use super::{Found, evaluate};
use crate::{
    ast::Expr,
    error::EvalError,
    meter::{COST_PER_CALL, Meter},
    value::Value,
};

/// The variables of a policy, in order.
#[derive(Debug, Default)]
pub(crate) struct Definitions {
    all: Vec<Definition>,
    /// The positions of each name.
    by_name: HashMap<String, Vec<usize>>,
}

/// A variable of a policy.
#[derive(Debug)]
struct Definition {
    name: String,
    /// The expression, or the reason why it cannot be compiled.
    root: Result<Expr, String>,
}

impl Definitions {
    pub(crate) fn add(&mut self, name: &str, root: Result<Expr, String>) {
        let name = name.to_owned();
        let positions = self.by_name.entry(name.clone()).or_default();
        positions.push(self.all.len());
        self.all.push(Definition { name, root });
    }

    /// The last variable of a name before a position.
    fn last_before(&self, end: usize, name: &str) -> Option<(usize, &Definition)> {
        let positions = self.by_name.get(name)?;
        let earlier = positions.partition_point(|position| *position < end);
        let index = *positions.get(earlier.checked_sub(1)?)?;
        Some((index, self.all.get(index)?))
    }
}

/// The variables of a policy for one set of inputs.
#[derive(Debug)]
pub(crate) struct Composition<'a> {
    definitions: &'a Definitions,
    known: RefCell<Vec<Option<Found<'a>>>>,
    /// The cost of the evaluations since [`Composition::take_cost`] was last called.
    cost: Cell<u64>,
    /// The maximum cost of all evaluations.
    limit: Cell<u64>,
}

/// The variables that an expression can read: the variables before a position.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Composed<'e, 'a> {
    composition: &'e Composition<'a>,
    end: usize,
}

impl<'a> Composition<'a> {
    pub(crate) fn new(definitions: &'a Definitions) -> Self {
        let known = definitions.all.iter().map(|_| None).collect();
        Self {
            definitions,
            known: RefCell::new(known),
            cost: Cell::new(0),
            limit: Cell::new(0),
        }
    }

    /// All variables; their evaluation may cost at most `limit`.
    pub(crate) fn all(&self, limit: u64) -> Composed<'_, 'a> {
        self.limit.set(limit);
        Composed {
            composition: self,
            end: self.definitions.all.len(),
        }
    }

    /// The cost of the evaluations since the last call.
    pub(crate) fn take_cost(&self) -> u64 {
        self.cost.take()
    }
}

impl<'a> Composed<'_, 'a> {
    /// Returns the value of a variable; `None` if it does not exist.
    pub(super) fn read(self, name: &str, inputs: &[(&str, Value<'a>)]) -> Option<Found<'a>> {
        let composition = self.composition;
        let (index, definition) = composition.definitions.last_before(self.end, name)?;
        let known = composition.known.borrow().get(index).cloned().flatten();
        if known.is_some() {
            return known;
        }
        let found = match &definition.root {
            Err(error) => Err(EvalError::new(format!(
                "composited variable {:?} fails to compile: {error}",
                definition.name
            ))),
            Ok(root) => {
                let spent = composition.cost.get();
                let left = composition.limit.get().saturating_sub(spent);
                let mut meter = Meter::new(COST_PER_CALL.min(left));
                let composed = Composed { end: index, ..self };
                let found = evaluate(root, inputs, Some(composed), &mut meter);
                let cost = composition.cost.get().saturating_add(meter.cost());
                composition.cost.set(cost);
                found.map_err(|error| {
                    EvalError::new(format!(
                        "composited variable {:?} fails to evaluate: {error}",
                        definition.name
                    ))
                })
            }
        };
        if let Some(slot) = composition.known.borrow_mut().get_mut(index) {
            *slot = Some(found.clone());
        }
        Some(found)
    }
}
