//! Resource requests of a role.

use std::collections::BTreeMap;

use super::{
    ConfigError, Flags, TaskOptions, Text,
    layers::Layers,
    values::{Unit, invalid_at, quantity},
};

/// The names of resources without a domain.
const SHORT_NAMES: [&str; 4] = ["cpu", "memory", "gpu", "ephemeral-storage"];

/// Merges the resources of `options`, which are in ascending precedence, and of the command
/// line.
pub(super) fn merge<const N: usize>(
    options: Layers<'_, TaskOptions, N>,
    flags: &Flags,
) -> Result<BTreeMap<String, String>, ConfigError> {
    let mut resources: BTreeMap<&Text, Text> = BTreeMap::new();
    for (name, value) in options.entries(|options| &options.resources) {
        resources.insert(name, value.replaced(value.to_string()));
    }
    let names = ["cpu", "memory", "gpu"].map(Text::from);
    for (name, value) in names.iter().zip([&flags.cpu, &flags.memory, &flags.gpu]) {
        if let Some(value) = value {
            let value = Text::from(value.as_str());
            quantity(&format!("--{name}"), &value, Unit::of(name))?;
            resources.insert(name, value);
        }
    }
    for (name, value) in &resources {
        if !SHORT_NAMES.contains(&name.as_str()) && !name.contains('/') {
            let rule =
                "use cpu, memory, gpu, ephemeral-storage, or a full name such as amd.com/gpu";
            return Err(invalid_at("resource", name, rule));
        }
        quantity(&format!("resource {name}"), value, Unit::of(name))?;
    }
    let resources = resources.into_iter();
    Ok(resources
        .map(|(name, value)| (name.to_string(), value.into_inner()))
        .collect())
}
