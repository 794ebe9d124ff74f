//! The combinations of a sweep, from the file and the flags.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use super::{
    ConfigError, Flags, RoleSpec, RunOptions, Scalar, Settings, SweepEntry, SweepValues, Text,
    Workload, layers::Layers, source::read_text, values::invalid_at,
};
use crate::{
    suggest,
    sweep::{self, Parameter, Sweep, Values},
};

/// The number of tasks of a sweep that run at the same time, by default.
pub const DEFAULT_PARALLEL: u32 = 16;
/// The seed of random samples, by default.
const DEFAULT_SEED: u64 = 0;

/// The combinations of a run, and the settings for their tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweepSpec {
    /// The combinations.
    pub sweep: Sweep,
    /// The number of tasks that run at the same time.
    pub parallel: u32,
    /// The number of failed combinations after which the others are stopped.
    pub max_failed: Option<u32>,
}

/// The sweep that the options define, if they define one.
pub(super) fn resolve(
    settings: &Settings,
    flags: &Flags,
) -> Result<Option<SweepSpec>, ConfigError> {
    let options = Layers([&settings.run, &flags.run]);
    let file = options.value(|run| &run.sweep_file);
    let has_entries = options.entries(|run| &run.sweep).next().is_some();
    if file.is_none() && !has_entries {
        // The parameters in the file are for runs with `--sweep`.
        refuse_without_sweep(&flags.run)?;
        return Ok(None);
    }
    let found = match file {
        Some(_) if has_entries => {
            return Err(problem(
                "a file has all combinations: remove `sweep_file` or `sweep`",
            ));
        }
        Some(file) => {
            refuse_samples(options)?;
            let source = settings.source.as_ref();
            read(file, source.and_then(|source| source.path.parent()))?
        }
        None => of_entries(options)?,
    };
    found.check().map_err(problem)?;
    let parallel = options.value(|run| &run.parallel);
    if let Some(parallel) = parallel.filter(|parallel| ***parallel == 0) {
        return Err(invalid_at("parallel", parallel, "use 1 or more"));
    }
    let count = u32::try_from(found.combinations.len()).unwrap_or(u32::MAX);
    let parallel = parallel.map_or(DEFAULT_PARALLEL, |parallel| **parallel);
    let max_failed = options.value(|run| &run.max_failed);
    Ok(Some(SweepSpec {
        parallel: parallel.min(count),
        // A Job accepts no higher limit.
        max_failed: max_failed.map(|most| (**most).min(count)),
        sweep: found,
    }))
}

fn problem(rule: impl Into<String>) -> ConfigError {
    ConfigError::Sweep {
        problem: rule.into(),
    }
}

/// Rejects options that need a sweep.
fn refuse_without_sweep(flags: &RunOptions) -> Result<(), ConfigError> {
    let rule = "it applies only to sweeps: add --sweep NAME=VALUES, or remove it";
    let numbers = [
        ("samples", flags.samples),
        ("parallel", flags.parallel),
        ("max_failed", flags.max_failed),
    ];
    for (what, number) in numbers {
        if let Some(number) = number {
            return Err(invalid_at(what, &number, rule));
        }
    }
    if let Some(seed) = flags.sweep_seed {
        return Err(invalid_at("sweep_seed", &seed, rule));
    }
    Ok(())
}

/// Rejects options of random samples.
fn refuse_samples<const N: usize>(options: Layers<'_, RunOptions, N>) -> Result<(), ConfigError> {
    let rule = "it applies only to the values of parameters, and these are combinations: remove it";
    if let Some(samples) = options.value(|run| &run.samples) {
        return Err(invalid_at("samples", samples, rule));
    }
    match options.value(|run| &run.sweep_seed) {
        Some(seed) => Err(invalid_at("sweep_seed", seed, rule)),
        None => Ok(()),
    }
}

/// Reads a file of combinations, relative to the folder of longshore.toml.
fn read(file: &PathBuf, folder: Option<&Path>) -> Result<Sweep, ConfigError> {
    let path = folder.map_or_else(|| file.clone(), |folder| folder.join(file));
    let text = read_text(&path).map_err(|source| ConfigError::Read {
        path: path.clone(),
        source,
    })?;
    let parsed = sweep::parse_file(&path.to_string_lossy(), &text);
    let (parameters, combinations) = parsed.map_err(|message| ConfigError::Syntax {
        path: path.clone(),
        message,
    })?;
    Ok(Sweep {
        parameters,
        combinations,
        ..Sweep::default()
    })
}

fn of_entries<const N: usize>(options: Layers<'_, RunOptions, N>) -> Result<Sweep, ConfigError> {
    let mut combinations: Vec<&[(Text, Scalar)]> = Vec::new();
    let mut parameters: Vec<(&Text, &SweepValues)> = Vec::new();
    for layer in options.0 {
        let before = parameters.len();
        for entry in &layer.sweep {
            match entry {
                SweepEntry::Combination(values) => combinations.push(values),
                SweepEntry::Parameter(name, values) => {
                    let known = parameters.iter().position(|(known, _)| *known == name);
                    match known.and_then(|at| Some((at, parameters.get_mut(at)?))) {
                        Some((at, _)) if at >= before => {
                            return Err(invalid_at("sweep", name, "the parameter is given twice"));
                        }
                        Some((_, parameter)) => *parameter = (name, values),
                        None => parameters.push((name, values)),
                    }
                }
            }
        }
    }
    match (parameters.is_empty(), combinations.is_empty()) {
        (true, _) => {
            refuse_samples(options)?;
            of_combinations(&combinations)
        }
        (_, true) => of_parameters(&parameters, options),
        _ => Err(problem(
            "give either the values of parameters or a list of combinations, not both",
        )),
    }
}

fn of_combinations(combinations: &[&[(Text, Scalar)]]) -> Result<Sweep, ConfigError> {
    let first = combinations.first().copied().unwrap_or_default();
    let names: Vec<&Text> = first.iter().map(|(name, _)| name).collect();
    let mut found = Vec::new();
    for combination in combinations {
        let mut values = Vec::new();
        for name in &names {
            let value = combination.iter().find(|(own, _)| own == *name);
            let value = value.ok_or_else(|| {
                let rule = "a combination lacks this parameter: all need the same parameters";
                invalid_at("sweep", name, rule)
            })?;
            values.push(text(&value.1));
        }
        if let Some((name, _)) = combination.iter().find(|(own, _)| !names.contains(&own)) {
            let rule = "the first combination lacks this parameter: all need the same parameters";
            return Err(invalid_at("sweep", name, rule));
        }
        found.push(values);
    }
    Ok(Sweep {
        parameters: names.iter().map(|name| name.to_string()).collect(),
        combinations: found,
        ..Sweep::default()
    })
}

fn of_parameters<const N: usize>(
    parameters: &[(&Text, &SweepValues)],
    options: Layers<'_, RunOptions, N>,
) -> Result<Sweep, ConfigError> {
    let mut parsed = Vec::new();
    for (name, values) in parameters {
        sweep::check_name(name).map_err(|rule| invalid_at("sweep", name, rule))?;
        let values = match values {
            SweepValues::Expression(text) => sweep::parse_values(text).map_err(|rule| {
                invalid_at("sweep", &name.replaced(format!("{name}={text}")), rule)
            })?,
            SweepValues::List(list) if list.is_empty() => {
                return Err(invalid_at("sweep", name, "the list of its values is empty"));
            }
            SweepValues::List(list) => Values::List(list.iter().map(text).collect()),
        };
        parsed.push(Parameter {
            name: name.to_string(),
            values,
        });
    }
    let names = parsed.iter().map(|parameter| parameter.name.clone());
    let names: Vec<String> = names.collect();
    let seed = options.value(|run| &run.sweep_seed);
    let (combinations, seed) = match (options.value(|run| &run.samples), seed) {
        (Some(samples), seed) => {
            let seed = seed.map_or(DEFAULT_SEED, |seed| **seed);
            let found = sweep::sample(&parsed, **samples, seed);
            let found = found.map_err(|rule| invalid_at("samples", samples, rule))?;
            (found, Some(seed))
        }
        (None, Some(seed)) => {
            let rule = "it selects random samples: add --samples N (`samples`), or remove it";
            return Err(invalid_at("sweep_seed", seed, rule));
        }
        (None, None) => (sweep::grid(&parsed).map_err(problem)?, None),
    };
    Ok(Sweep {
        parameters: names,
        combinations,
        seed,
        ..Sweep::default()
    })
}

/// A value as in an argument.
fn text(value: &Scalar) -> String {
    match value {
        // 1e-5, not 0.00001
        Scalar::Number(number) => format!("{number:?}"),
        other => other.to_string(),
    }
}

/// Checks that the run's only task can run each combination, and creates a task for each.
pub(super) fn apply(
    sweep: Option<&SweepSpec>,
    roles: &mut [RoleSpec],
    workload: &Workload,
) -> Result<(), ConfigError> {
    let Some(sweep) = sweep.map(|spec| &spec.sweep) else {
        return Ok(());
    };
    if *workload != Workload::Jobs {
        return Err(problem("it needs a Job: remove `cron` or `jobset`"));
    }
    let [role] = roles else {
        return Err(problem(
            "each combination runs one task: use one role, without other roles",
        ));
    };
    if role.count != 1 || role.service {
        return Err(problem(format!(
            "each combination runs one task: remove `count` or `service` of the role {}",
            role.name
        )));
    }
    check_placeholders(&role.command, &sweep.parameters)?;
    role.count = u32::try_from(sweep.combinations.len()).unwrap_or(u32::MAX);
    Ok(())
}

/// Rejects placeholders for unknown parameters.
fn check_placeholders(command: &[String], parameters: &[String]) -> Result<(), ConfigError> {
    let names = command.iter().flat_map(|word| sweep::names(word));
    let is_unknown = |name: &&str| !parameters.iter().any(|known| known == name);
    let Some(name) = names.into_iter().find(is_unknown) else {
        return Ok(());
    };
    let near = suggest::nearest(name, parameters.iter().map(String::as_str));
    let near = near.map_or_else(String::new, |near| format!(" (did you mean {{{near}}}?)"));
    Err(problem(format!(
        "the placeholder {{{name}}} in the command names no parameter{near}; its parameters: {}; write {{{{{name}}}}} for the text {{{name}}}",
        parameters.join(", ")
    )))
}
