//! Values of keys and flags: durations and quantities, and the error for invalid ones.

use std::time::Duration;

use longshore_model::Quantity;

use super::ConfigError;

/// The error for a value that breaks a rule.
pub(super) fn invalid(
    what: impl Into<String>,
    value: impl Into<String>,
    rule: impl Into<String>,
) -> ConfigError {
    ConfigError::Value {
        what: what.into(),
        value: value.into(),
        rule: rule.into(),
        place: None,
    }
}

/// Parses `90s`, `1h30m`, `7d`, or a number of seconds; `what` names the setting in errors.
///
/// # Errors
/// [`ConfigError::Value`] if it is not a duration, 0, or longer than 68 years.
pub fn duration(what: &str, text: &str) -> Result<Duration, ConfigError> {
    let error = || {
        invalid(
            what,
            text,
            "use a time such as 90s, 10m, 2h, 1h30m or 7d, above 0",
        )
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

/// Refuses a text that is not a quantity, or a negative one.
pub(super) fn check_quantity(what: &str, value: &str) -> Result<(), ConfigError> {
    let quantity = value.parse::<Quantity>().ok();
    match quantity.is_none_or(|quantity| quantity.value() < 0.0) {
        true => Err(invalid(what, value, quantity_rule(value, "2, 500m or 4Gi"))),
        false => Ok(()),
    }
}

/// What to write instead of a text that is not a quantity, such as `16GB`.
pub(super) fn quantity_rule(text: &str, examples: &str) -> String {
    let text: String = text.split_whitespace().collect();
    let begin = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(begin.unwrap_or(text.len()));
    let unit = unit.to_ascii_uppercase();
    let unit = unit.strip_suffix('B').unwrap_or(&unit);
    let is_known = |unit: &str| ["K", "M", "G", "T", "P", "E"].contains(&unit);
    if number.parse::<f64>().is_ok() {
        if let Some(unit) = unit.strip_suffix('I').filter(|unit| is_known(unit)) {
            return format!("write {number}{unit}i");
        }
        if is_known(unit) {
            let decimal = if unit == "K" { "k" } else { unit };
            return format!(
                "write {number}{decimal} (powers of 1000) or {number}{unit}i (powers of 1024)"
            );
        }
    }
    format!("use a quantity such as {examples}")
}
