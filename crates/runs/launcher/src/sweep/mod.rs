//! Sweeps: one run of the same command with several combinations of parameters. Pure.
//!
//! [`parse_values`] reads the values of a parameter, [`grid`] and [`sample`] make combinations of
//! them, and [`parse_file`] reads combinations from a file. A [`Sweep`] is stored in the run's
//! Secret: each pod takes the combination of its index, [`fill`] inserts the values into the
//! command, and [`variable`] returns the variable of a parameter. [`combine`] creates the rows of
//! the table.

mod file;
mod placeholder;
mod random;
mod rows;
#[cfg(test)]
mod tests;
mod values;

use serde::{Deserialize, Serialize};

pub use file::parse_file;
pub use placeholder::{fill, names};
pub use random::sample;
pub(crate) use rows::TaskRun;
pub use rows::{CombinationState, Row, SweepRun, combine};
pub use values::{Range, Values, grid, parse_values};

pub use crate::value_name::check_name;

/// The maximum number of combinations, so that their indices fit a host name and the limits of an
/// Indexed Job with a backoff limit per index.
pub const MOST_COMBINATIONS: usize = 10_000;
/// The maximum number of parameters.
pub const MOST_PARAMETERS: usize = 100;
/// The maximum size of all combinations in bytes. A Secret holds 1 MiB, and also contains the
/// variables of the run.
pub const LARGEST_SWEEP: usize = 768 << 10;

/// A parameter and its values.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// The name of the parameter.
    pub name: String,
    /// The values of the parameter.
    pub values: Values,
}

/// The combinations of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sweep {
    /// The names of the parameters.
    pub parameters: Vec<String>,
    /// The values of each combination, in the order of the parameters. The index of a combination
    /// is the same as its task's.
    pub combinations: Vec<Vec<String>>,
    /// The seed, if the combinations are random samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The original sweep, if this is a retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
}

/// The original sweep of a retry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// The first run of the sweep.
    pub of: String,
    /// The index of each combination in the first run.
    pub indices: Vec<u32>,
}

impl Sweep {
    /// The name and value of each parameter of a combination. `None` if the combination does not
    /// exist.
    #[must_use]
    pub fn combination(&self, index: u32) -> Option<impl Iterator<Item = (&str, &str)>> {
        let values = self.combinations.get(index as usize)?;
        let names = self.parameters.iter().map(String::as_str);
        Some(names.zip(values.iter().map(String::as_str)))
    }

    /// Checks the names, the number and the size of the combinations.
    ///
    /// # Errors
    /// The violated rule.
    pub fn check(&self) -> Result<(), String> {
        check_names(&self.parameters)?;
        check_count(self.combinations.len() as u128)?;
        let values = self.combinations.iter().flatten();
        if values.clone().any(|value| value.contains('\0')) {
            return Err("a value contains a NUL character, which no argument can hold".to_owned());
        }
        // The size as JSON, with quotation marks and commas.
        let size = values.fold(0, |size: usize, value| size.saturating_add(value.len() + 3));
        match size > LARGEST_SWEEP {
            true => Err(format!(
                "the {} combinations are larger than {} KiB, which the Secret of a run can hold: use fewer or shorter values, or put them into a file of the code and sweep over its lines",
                self.combinations.len(),
                LARGEST_SWEEP >> 10
            )),
            false => Ok(()),
        }
    }
}

/// The variable of a parameter in a task: `LONGSHORE_PARAM_LEARNING_RATE`.
#[must_use]
pub fn variable(parameter: &str) -> String {
    let letters = parameter.chars().map(|letter| match letter {
        '-' | '.' => '_',
        other => other.to_ascii_uppercase(),
    });
    format!("LONGSHORE_PARAM_{}", letters.collect::<String>())
}

/// Checks the names of all parameters.
fn check_names(names: &[String]) -> Result<(), String> {
    if names.is_empty() {
        return Err("a sweep needs a parameter, as in lr=0.1,0.01".to_owned());
    }
    if names.len() > MOST_PARAMETERS {
        return Err(format!("use at most {MOST_PARAMETERS} parameters"));
    }
    for (position, name) in names.iter().enumerate() {
        check_name(name).map_err(|rule| format!("the name {name:?}: {rule}"))?;
        let before = names.get(..position).unwrap_or_default();
        if before.contains(name) {
            return Err(format!("the parameter {name} is given twice"));
        }
        let variable = variable(name);
        let same = before
            .iter()
            .find(|other| self::variable(other) == variable);
        if let Some(other) = same {
            return Err(format!(
                "the parameters {other} and {name} have the same variable {variable}: rename one"
            ));
        }
    }
    Ok(())
}

fn check_count(count: u128) -> Result<(), String> {
    match count {
        0 => Err("a sweep needs a combination".to_owned()),
        count if count > MOST_COMBINATIONS as u128 => Err(format!(
            "{count} combinations are too many: an Indexed Job and the objects of a run hold {MOST_COMBINATIONS}; use fewer values, or random samples (--samples)"
        )),
        _ => Ok(()),
    }
}
