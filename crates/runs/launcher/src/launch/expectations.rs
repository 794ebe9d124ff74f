//! Warns about tasks that would run with other code or parameters than expected.

use std::{collections::BTreeSet, path::PathBuf};

use longshore_diagnosis::explain::Cause;

use super::PackedRun;
use crate::{live_code, preflight::Finding, sweep};

/// The prefix of the variables of parameters.
const PREFIX: &str = "LONGSHORE_PARAM_";

impl PackedRun<'_> {
    /// Warnings about tasks that would run with other code or other parameters than expected.
    /// Reads files of the code and of the Python environment.
    #[must_use]
    pub fn code_warnings(&self) -> Vec<Finding> {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let problems = self
            .bundle
            .iter()
            .flat_map(|bundle| &bundle.report.warnings);
        let problems = problems.map(|problem| {
            let remedy = "`git status` in the folder of the code shows more";
            Finding::new(Cause::Unknown, problem, remedy)
        });
        let mut warnings: Vec<Finding> = problems.chain(self.unused_parameters()).collect();
        if let (Some(caller), Some(bundle)) = (&self.spec.caller, &self.bundle) {
            let roles = self.spec.roles.iter().flat_map(|role| {
                let (command, env) = (&role.command, &role.env);
                live_code::warnings(caller, bundle.folder(), command, env, home.as_deref())
            });
            for warning in roles {
                if !warnings.contains(&warning) {
                    warnings.push(warning);
                }
            }
        }
        warnings
    }

    /// A warning about parameters that neither the command nor a file of the code uses, so that
    /// their values make no difference. Reads the files of the code. A run without code has its
    /// program in the image, so it gets no warning.
    fn unused_parameters(&self) -> Option<Finding> {
        let sweep = &self.spec.sweep.as_ref()?.sweep;
        let bundle = self.bundle.as_ref()?;
        let [role] = self.spec.roles.as_slice() else {
            return None;
        };
        let words = role.command.iter().map(String::as_str);
        // The pod may map a variable to another name.
        let env = role.env.values().map(String::as_str);
        let template = role.pods.template.as_ref().map(ToString::to_string);
        let texts: Vec<&str> = words.chain(env).chain(template.as_deref()).collect();
        if texts.iter().any(|text| mentions_all(text)) {
            return None;
        }
        let named: BTreeSet<&str> = role
            .command
            .iter()
            .flat_map(|word| sweep::names(word))
            .collect();
        let unused = sweep.parameters.iter().filter(|name| {
            let variable = sweep::variable(name);
            !named.contains(name.as_str()) && !texts.iter().any(|text| text.contains(&variable))
        });
        let variables: BTreeSet<String> =
            unused.clone().map(|name| sweep::variable(name)).collect();
        if variables.is_empty() {
            return None;
        }
        let variables = bundle.unmentioned(PREFIX, &variables);
        let unused: Vec<&str> = unused
            .filter(|name| variables.contains(&sweep::variable(name)))
            .map(String::as_str)
            .collect();
        let first = unused.first()?;
        let variable = sweep::variable(first);
        Some(Finding::new(
            Cause::Unknown,
            format!(
                "nothing refers to the parameter {} of the sweep: the command has no {{{first}}}, and no file of the code mentions {variable}",
                unused.join(", ")
            ),
            format!(
                "add {{{first}}} to the command, or read the variable {variable} in the program"
            ),
        ))
    }
}

/// Returns true if a text contains the prefix of the variables alone, as in `LONGSHORE_PARAM_*`.
fn mentions_all(text: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    text.match_indices(PREFIX)
        .any(|(at, found)| !text[at + found.len()..].starts_with(is_part))
}
