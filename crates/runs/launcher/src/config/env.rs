//! The environment variables of a role, merged from the file and the flags.

use std::collections::BTreeMap;

use longshore_client::k8s_openapi::api::core::v1::EnvVar;

use super::{
    ConfigError, Flags, TaskOptions, Text, Variable, VariableSource,
    layers::Layers,
    values::{invalid, invalid_at},
};

/// The variables of a role, with values or with sources.
#[derive(Debug, Default)]
pub(super) struct Variables<'a> {
    values: BTreeMap<Text, String>,
    sources: BTreeMap<&'a Text, &'a VariableSource>,
}

impl<'a> Variables<'a> {
    /// Merges the variables of `options`, which are in ascending precedence, and of the
    /// command line.
    pub(super) fn merge<const N: usize>(
        options: Layers<'a, TaskOptions, N>,
        flags: &Flags,
    ) -> Result<Self, ConfigError> {
        let mut variables = Self::default();
        for (name, variable) in options.entries(|options| &options.env) {
            match variable {
                Variable::Plain(value) => variables.set(name.clone(), value.to_string()),
                Variable::From(source) => {
                    variables.remove(name);
                    variables.sources.insert(name, source);
                }
            }
        }
        for (name, value) in &flags.env_file {
            variables.set(name.as_str().into(), value.clone());
        }
        for flag in &flags.env {
            let pair = flag.split_once('=');
            let (name, value) = pair.ok_or_else(|| invalid("--env", flag, "write NAME=VALUE"))?;
            variables.set(name.into(), value.to_owned());
        }
        variables.check()?;
        Ok(variables)
    }

    fn set(&mut self, name: Text, value: String) {
        self.remove(&name);
        self.values.insert(name, value);
    }

    /// Removes a variable by its name, whose position is the position of the overridden value.
    fn remove(&mut self, name: &Text) {
        self.sources.remove(name);
        self.values.remove(name);
    }

    fn check(&self) -> Result<(), ConfigError> {
        let mut names = self.values.keys().chain(self.sources.keys().copied());
        if let Some(name) = names.find(|name| !is_variable(name)) {
            let rule = "use letters, digits, '_', '-' and '.', not beginning with a digit";
            return Err(invalid_at("variable name", name, rule));
        }
        let mut values = self.values.iter();
        if let Some((name, _)) = values.find(|(_, value)| value.contains('\0')) {
            let rule = "its value contains a NUL character, which no variable can hold";
            return Err(invalid_at("variable", name, rule));
        }
        Ok(())
    }

    /// The variables with sources, as in a container's `env`.
    pub(super) fn sources_to_kubernetes(&self) -> Result<Vec<EnvVar>, ConfigError> {
        let sources = self.sources.iter();
        sources
            .map(|(name, source)| source.to_kubernetes(name))
            .collect()
    }

    /// The variables with values.
    pub(super) fn into_values(self) -> BTreeMap<String, String> {
        let values = self.values.into_iter();
        values
            .map(|(name, value)| (name.into_inner(), value))
            .collect()
    }
}

fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}
