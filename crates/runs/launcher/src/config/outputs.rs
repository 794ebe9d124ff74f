//! The files of tasks to keep.

use std::time::Duration;

use longshore_model::{Quantity, name};

use super::{
    ConfigError, TaskOptions, Text,
    layers::Layers,
    values::{Unit, duration_at, invalid_at, quantity},
};
use crate::outputs::{
    DEFAULT_MAX_BYTES, DEFAULT_MAX_FILES, MOST_FILES, MOST_PATTERNS, OutputRequest, check_pattern,
};

/// The shortest interval between collections of a running task.
const SHORTEST_INTERVAL: Duration = Duration::from_secs(10);

/// Merges the options; `None` without patterns.
pub(super) fn resolve<const N: usize>(
    options: Layers<'_, TaskOptions, N>,
) -> Result<Option<OutputRequest>, ConfigError> {
    let mut patterns = Vec::new();
    for pattern in options.entries(|options| &options.outputs) {
        check_pattern(pattern).map_err(|rule| invalid_at("outputs", pattern, rule))?;
        if patterns.len() >= MOST_PATTERNS {
            let rule = format!("use at most {MOST_PATTERNS} patterns");
            return Err(invalid_at("outputs", pattern, rule));
        }
        patterns.push(pattern.to_string());
    }
    let size = options.value(|options| &options.output_size_limit);
    let max_bytes = size.map(bytes).transpose()?;
    let count = options.value(|options| &options.output_file_limit);
    if let Some(count) = count.filter(|count| u64::from(***count) > MOST_FILES || ***count == 0) {
        let rule = format!("use 1 to {MOST_FILES}");
        return Err(invalid_at("output_file_limit", count, rule));
    }
    let every = options.value(|options| &options.outputs_every);
    let every = every.map(|every| duration_at("outputs_every", every));
    let every = every.transpose()?;
    if let Some(text) = options.value(|options| &options.outputs_every)
        && every.is_some_and(|every| every < SHORTEST_INTERVAL)
    {
        let rule = "use at least 10s, as in 10m";
        return Err(invalid_at("outputs_every", text, rule));
    }
    let claim = options.value(|options| &options.outputs_claim);
    if let Some(claim) = claim {
        let checked = name::dns_subdomain("outputs_claim", claim);
        checked.map_err(|error| invalid_at("outputs_claim", claim, error.rule()))?;
    }
    Ok((!patterns.is_empty()).then(|| OutputRequest {
        patterns,
        max_bytes: max_bytes.unwrap_or(DEFAULT_MAX_BYTES),
        max_files: count.map_or(DEFAULT_MAX_FILES, |count| u64::from(**count)),
        scheduled: false,
        store: None,
        claim: claim.map(ToString::to_string),
        every: every.map(|every| every.as_secs()),
    }))
}

/// A size in bytes.
fn bytes(text: &Text) -> Result<u64, ConfigError> {
    quantity("output_size_limit", text, Unit::Storage)?;
    let value = text.parse::<Quantity>().map_or(0.0, |size| size.value());
    if value < 1.0 {
        let rule = "use a size such as 500Mi or 20Gi, of at least one byte";
        return Err(invalid_at("output_size_limit", text, rule));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the conversion of a positive number saturates"
    )]
    let bytes = value as u64;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn options(outputs: &[&str], size: Option<&str>, files: Option<u32>) -> TaskOptions {
        TaskOptions {
            outputs: outputs.iter().map(|&text| text.into()).collect(),
            output_size_limit: size.map(Text::from),
            output_file_limit: files.map(Into::into),
            outputs_every: None,
            outputs_claim: None,
            ..TaskOptions::default()
        }
    }

    #[test]
    fn patterns_of_the_file_the_role_and_the_flags_are_joined_and_limits_are_replaced() {
        let (file, role) = (
            options(&["*.json"], Some("1Mi"), None),
            options(&["a/**"], None, Some(3)),
        );
        let flags = options(&["b"], Some("1k"), None);
        let found = resolve(Layers([&file, &role, &flags])).unwrap().unwrap();
        assert_eq!(found.patterns, ["*.json", "a/**", "b"]);
        assert_eq!((found.max_bytes, found.max_files), (1000, 3));
        let plain = options(&["x"], None, None);
        let found = resolve(Layers([&plain])).unwrap().unwrap();
        assert_eq!(
            (found.max_bytes, found.max_files),
            (DEFAULT_MAX_BYTES, DEFAULT_MAX_FILES)
        );
        assert_eq!(
            resolve(Layers([&options(&[], Some("1Gi"), None)])).unwrap(),
            None
        );
    }

    #[test]
    fn invalid_patterns_and_limits_are_refused() {
        let error = |options: TaskOptions| resolve(Layers([&options])).unwrap_err().to_string();
        for (pattern, rule) in [
            ("/tmp/*", "without a leading /"),
            ("../x", "without .."),
            ("[", "unclosed"),
        ] {
            let text = error(options(&[pattern], None, None));
            assert!(text.contains("outputs") && text.contains(rule), "{text}");
        }
        for size in ["0", "-1", "big", "10GB"] {
            let text = error(options(&["a"], Some(size), None));
            assert!(text.contains("output_size_limit"), "{text}");
        }
        let often = TaskOptions {
            outputs_every: Some("1s".into()),
            ..options(&["a"], None, None)
        };
        assert!(error(often).contains("use at least 10s"));
        for files in [0, 100_001] {
            let text = error(options(&["a"], None, Some(files)));
            assert!(text.contains("use 1 to 100000"), "{text}");
        }
    }
}
