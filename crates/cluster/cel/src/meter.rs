//! Limits the work of an evaluation: by the cost that Kubernetes defines, and by the number of
//! steps actually executed, which bounds time and memory.

use crate::error::EvalError;

/// Kubernetes' limit of the cost of one evaluation.
pub const COST_PER_CALL: u64 = 1_000_000;

/// Steps per unit of the cost limit. Kubernetes counts no cost for constants.
const STEPS_PER_COST: u64 = 8;

/// Bytes that are processed in a step.
const BYTES_PER_STEP: usize = 16;

/// The work done, and its limits.
#[derive(Debug)]
pub(crate) struct Meter {
    cost: u64,
    limit: u64,
    steps: u64,
}

impl Meter {
    pub(crate) fn new(limit: u64) -> Self {
        Self {
            cost: 0,
            limit,
            steps: limit.saturating_mul(STEPS_PER_COST).saturating_add(1000),
        }
    }

    /// The cost so far.
    pub(crate) fn cost(&self) -> u64 {
        self.cost
    }

    /// Adds to the cost.
    pub(crate) fn charge(&mut self, cost: u64) -> Result<(), EvalError> {
        self.cost = self.cost.saturating_add(cost);
        match self.cost > self.limit {
            true => Err(EvalError::TooCostly),
            false => Ok(()),
        }
    }

    /// Subtracts from the cost.
    pub(crate) fn refund(&mut self, cost: u64) {
        self.cost = self.cost.saturating_sub(cost);
    }

    /// Counts a step.
    pub(crate) fn step(&mut self) -> Result<(), EvalError> {
        self.steps(1)
    }

    /// Counts steps.
    pub(crate) fn steps(&mut self, count: u64) -> Result<(), EvalError> {
        match self.steps.checked_sub(count) {
            Some(left) => {
                self.steps = left;
                Ok(())
            }
            None => {
                self.steps = 0;
                Err(EvalError::TooCostly)
            }
        }
    }

    /// Counts the work on a string of `length` bytes.
    pub(crate) fn work(&mut self, length: usize) -> Result<(), EvalError> {
        self.steps((length / BYTES_PER_STEP) as u64 + 1)
    }
}
