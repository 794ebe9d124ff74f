//! Values of keys and flags: scalars, durations, quantities and names, and the error for
//! invalid ones.

use std::{fmt, time::Duration};

use longshore_model::{Quantity, name};
use serde::Deserialize;

use super::{ConfigError, Located, Position, Text};

/// The error for a value of the command line that violates a rule.
pub(super) fn invalid(
    what: impl Into<String>,
    value: impl Into<String>,
    rule: impl Into<String>,
) -> ConfigError {
    invalid_at(what, &Located::from(value.into()), rule)
}

/// The error for a value that violates a rule.
pub(super) fn invalid_at<T: fmt::Display>(
    what: impl Into<String>,
    value: &Located<T>,
    rule: impl Into<String>,
) -> ConfigError {
    ConfigError::Value {
        position: value.offset().map_or(Position::None, Position::Offset),
        what: what.into(),
        value: value.to_string(),
        rule: rule.into(),
    }
}

/// Parses `KEY=VALUE`.
#[cfg(any(feature = "clap", test))]
pub(super) fn pair(flag: &str, text: &str) -> Result<(Text, Text), ConfigError> {
    match text.split_once('=') {
        Some((key, value)) => Ok((key.into(), value.into())),
        None => Err(invalid(flag, text, "write KEY=VALUE")),
    }
}

/// Parses `KEY=VALUE`, or `KEY` for a tag without a value.
#[cfg(feature = "clap")]
pub(super) fn tag(text: &str) -> (Text, Text) {
    let (key, value) = text.split_once('=').unwrap_or((text, ""));
    (key.into(), value.into())
}

/// A string, number or boolean: users write all of them for variables and quantities.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged, expecting = "a string, a number, true or false")]
pub enum Scalar {
    /// A string.
    Text(String),
    /// An integer.
    Integer(i64),
    /// A floating-point number.
    Number(f64),
    /// A boolean.
    Truth(bool),
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Integer(number) => number.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Truth(truth) => truth.fmt(f),
        }
    }
}

/// Parses `90s`, `1h30m`, `7d`, or a number of seconds. `what` is the name of the setting in
/// errors.
///
/// # Errors
/// [`ConfigError::Value`] if it is not a duration, 0, or longer than 68 years.
pub fn duration(what: &str, text: &str) -> Result<Duration, ConfigError> {
    duration_at(what, &text.into())
}

/// Like [`duration`], but for a value with a position.
pub(super) fn duration_at(what: &str, text: &Text) -> Result<Duration, ConfigError> {
    let error = || {
        let rule = "use a time such as 90s, 10m, 2h, 1h30m or 7d, above 0";
        invalid_at(what, text, rule)
    };
    let (mut total, mut number) = (0_u64, String::new());
    for c in text.trim().chars() {
        let unit = match c {
            '0'..='9' => {
                number.push(c);
                continue;
            }
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            _ => return Err(error()),
        };
        let value: u64 = number.parse().map_err(|_| error())?;
        total = value
            .checked_mul(unit)
            .and_then(|add| total.checked_add(add))
            .ok_or_else(error)?;
        number.clear();
    }
    if !number.is_empty() {
        let seconds: u64 = number.parse().map_err(|_| error())?;
        total = total.checked_add(seconds).ok_or_else(error)?;
    }
    // Kubernetes' fields for durations have 32 bits.
    if total == 0 || i32::try_from(total).is_err() {
        return Err(error());
    }
    Ok(Duration::from_secs(total))
}

/// The unit of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// CPUs, including fractions.
    Cpus,
    /// Memory.
    Memory,
    /// Storage.
    Storage,
    /// Devices, which cannot be divided.
    Devices,
}

impl Unit {
    /// The unit of a resource of Kubernetes, or of `gpu`.
    pub(super) fn of(resource: &str) -> Self {
        match resource {
            "cpu" => Self::Cpus,
            "memory" => Self::Memory,
            "ephemeral-storage" => Self::Storage,
            name if name.starts_with("hugepages-") => Self::Storage,
            _ => Self::Devices,
        }
    }

    fn examples(self) -> &'static str {
        match self {
            Self::Cpus => "2 or 500m",
            Self::Memory | Self::Storage => "512Mi or 4Gi",
            Self::Devices => "1",
        }
    }
}

/// The smallest plausible number of bytes, because memory is allocated in pages.
const SMALLEST: f64 = 4096.0;

/// Rejects a text that is not an amount of this unit.
pub(super) fn quantity<'a>(what: &str, text: &'a Text, unit: Unit) -> Result<&'a str, ConfigError> {
    match quantity_rule(text, unit) {
        None => Ok(text),
        Some(rule) => Err(invalid_at(what, text, rule)),
    }
}

/// Rejects a text that is not a DNS subdomain, as names of most objects are.
pub(super) fn subdomain(what: &'static str, text: &Text) -> Result<(), ConfigError> {
    name::dns_subdomain(what, text).map_err(|error| invalid_at(what, text, error.rule()))
}

/// Rejects image names that no registry accepts. Registries may have stricter rules.
pub(super) fn check_image(what: &str, image: Option<&Text>) -> Result<(), ConfigError> {
    match image {
        Some(image) if image.is_empty() || image.contains(char::is_whitespace) => {
            let rule = "use the name of an image, such as python:3-slim, without spaces";
            Err(invalid_at(what, image, rule))
        }
        _ => Ok(()),
    }
}

/// The correction for a text that is not an amount of this unit, such as `16GB`. `None` if the text
/// is an amount.
fn quantity_rule(text: &str, unit: Unit) -> Option<String> {
    let compact: String = text.split_whitespace().collect();
    let begin = compact.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, suffix) = compact.split_at(begin.unwrap_or(compact.len()));
    let is_number = number.parse::<f64>().is_ok();
    let value = text.parse::<Quantity>().ok().map(|found| found.value());
    let Some(value) = value.filter(|value| *value >= 0.0) else {
        let rule = bytes_rule(number, suffix)
            .filter(|_| is_number && matches!(unit, Unit::Memory | Unit::Storage));
        return Some(rule.unwrap_or_else(|| format!("use a quantity such as {}", unit.examples())));
    };
    match unit {
        Unit::Cpus => None,
        Unit::Devices if value.fract() == 0.0 => None,
        Unit::Devices => Some(format!("use a whole number, such as {}", unit.examples())),
        Unit::Memory | Unit::Storage if suffix == "m" && value > 0.0 => Some(format!(
            "the suffix m means thousandths of a byte; write {number}Mi (powers of 1024) or {number}M (powers of 1000)"
        )),
        Unit::Memory if value > 0.0 && value < SMALLEST => Some(too_small(value, number)),
        Unit::Memory | Unit::Storage if value.fract() != 0.0 => Some(too_small(value, number)),
        Unit::Memory | Unit::Storage => None,
    }
}

fn too_small(bytes: f64, number: &str) -> String {
    format!("this is {bytes} bytes; write the unit, such as {number}Mi or {number}Gi")
}

/// The correction for an amount of storage that is not a whole number of bytes.
pub(crate) fn fraction_rule(text: &str) -> Option<String> {
    text.parse::<Quantity>().ok()?;
    quantity_rule(text, Unit::Storage)
}

/// The notation of Kubernetes for a number of bytes with this suffix.
fn bytes_rule(number: &str, suffix: &str) -> Option<String> {
    let unit = suffix.to_ascii_uppercase();
    let unit = unit.strip_suffix('B').unwrap_or(&unit);
    let is_known = |unit: &str| ["K", "M", "G", "T", "P", "E"].contains(&unit);
    if let Some(unit) = unit.strip_suffix('I').filter(|unit| is_known(unit)) {
        return Some(format!("write {number}{unit}i"));
    }
    let decimal = if unit == "K" { "k" } else { unit };
    is_known(unit).then(|| {
        format!("write {number}{decimal} (powers of 1000) or {number}{unit}i (powers of 1024)")
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn durations_are_parsed() {
        let seconds = |text| duration("t", text).unwrap().as_secs();
        assert_eq!(seconds("90"), 90);
        assert_eq!(seconds("1h30m"), 5_400);
        assert_eq!(seconds("7d"), 604_800);
        for wrong in [
            "",
            "0s",
            "h",
            "1x",
            "99999999999999999999s",
            "9999999999d",
            "-1s",
        ] {
            assert!(duration("t", wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn pairs_need_an_equals_sign() {
        let (key, value) = pair("--label", "team=a=b").unwrap();
        assert_eq!((key.as_str(), value.as_str()), ("team", "a=b"));
        let refused = pair("--label", "team").unwrap_err().to_string();
        assert_eq!(refused, "invalid --label \"team\": write KEY=VALUE");
    }

    #[test]
    fn amounts_have_the_unit_of_their_resource() {
        let ok = ["", "", ""];
        // Texts, and parts of the expected rules for CPUs, bytes and devices.
        let cases = [
            ("2", ["", "2Mi or 2Gi", ""]),
            ("500m", ["", "500Mi (powers of 1024)", "whole number"]),
            ("256m", ["", "256Mi", "whole number"]),
            ("0.5", ["", "0.5Mi or 0.5Gi", "whole number"]),
            ("0", ok),
            ("1.5Gi", ok),
            ("4096", ok),
            ("1e9", ok),
            ("64Gi", ok),
            ("10%", ["2 or 500m", "512Mi or 4Gi", "such as 1"]),
            ("A100", ["2 or 500m", "512Mi or 4Gi", "such as 1"]),
            ("-1", ["2 or 500m", "512Mi or 4Gi", "such as 1"]),
            (
                "16GB",
                [
                    "2 or 500m",
                    "write 16G (powers of 1000) or 16Gi",
                    "such as 1",
                ],
            ),
            ("16gib", ["2 or 500m", "write 16Gi", "such as 1"]),
            ("512 MB", ["2 or 500m", "write 512M", "such as 1"]),
        ];
        for (text, expected) in cases {
            let units = [Unit::Cpus, Unit::Memory, Unit::Devices];
            for (unit, expected) in units.into_iter().zip(expected) {
                let rule = quantity_rule(text, unit).unwrap_or_default();
                assert!(rule.contains(expected), "{text} {unit:?}: {rule}");
                assert_eq!(
                    rule.is_empty(),
                    expected.is_empty(),
                    "{text} {unit:?}: {rule}"
                );
                let hints_at_thousandths = rule.contains("500m");
                assert!(!hints_at_thousandths || unit == Unit::Cpus, "{rule}");
            }
        }
    }
}
