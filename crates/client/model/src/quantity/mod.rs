//! Quantities such as `500m`, `2Gi` and `1e3`, and their canonical form.

mod amount;

use std::{fmt, str::FromStr};

pub use amount::{Amount, Amounts};

/// An amount of a resource. Keeps the original text; [`Quantity::value`]
/// returns the number.
///
/// The unit depends on the resource: cores for `cpu`, bytes for `memory`.
///
/// ```
/// use longshore_model::Quantity;
/// assert_eq!("500m".parse::<Quantity>().unwrap().value(), 0.5);
/// assert_eq!("2Gi".parse::<Quantity>().unwrap().value(), 2_147_483_648.0);
/// assert!("2 apples".parse::<Quantity>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Quantity {
    text: String,
    value: f64,
}

/// A text that is not a quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a quantity: write a number with an optional suffix, as in 500m, 1.5, 2Gi or 1e3"
)]
pub struct QuantityError {
    text: String,
    server_message: &'static str,
}

impl QuantityError {
    /// The message of an API server for a text that does not have the form of a
    /// quantity.
    pub const FORM: &str = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

    /// The message of an API server.
    #[must_use]
    pub fn server_message(&self) -> &'static str {
        self.server_message
    }
}

const NO_SUFFIX: &str = "unable to parse quantity's suffix";
const NO_NUMBER: &str = "unable to parse numeric part of quantity";

const SUFFIXES: [(&str, f64); 15] = [
    ("Ki", 1024.0),
    ("Mi", 1_048_576.0),
    ("Gi", 1_073_741_824.0),
    ("Ti", 1_099_511_627_776.0),
    ("Pi", 1_125_899_906_842_624.0),
    ("Ei", 1_152_921_504_606_846_976.0),
    ("n", 1e-9),
    ("u", 1e-6),
    ("m", 1e-3),
    ("k", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
    ("P", 1e15),
    ("E", 1e18),
];

impl Quantity {
    /// The amount as a number.
    #[must_use]
    pub fn value(&self) -> f64 {
        self.value
    }
}

/// The suffixes of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// `Ki`, `Mi`, …
    Binary,
    /// `m`, `k`, `M`, …
    Decimal,
    /// `e3`, `e6`, …
    Exponent,
}

const DECIMAL: [(i32, &str); 10] = [
    (-9, "n"),
    (-6, "u"),
    (-3, "m"),
    (0, ""),
    (3, "k"),
    (6, "M"),
    (9, "G"),
    (12, "T"),
    (15, "P"),
    (18, "E"),
];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

impl Quantity {
    /// The canonical form: the largest suffix that leaves an integer. Fractions
    /// of a billionth are rounded up. If the number is unchanged, so is its
    /// notation: `+1`, `1e03`.
    ///
    /// ```
    /// # use longshore_model::Quantity;
    /// let canonical = |text: &str| text.parse::<Quantity>().unwrap().canonical();
    /// assert_eq!(canonical("1000m"), "1");
    /// assert_eq!(canonical("0.5"), "500m");
    /// assert_eq!(canonical("1024Mi"), "1Gi");
    /// assert_eq!(canonical("1.5Gi"), "1536Mi");
    /// ```
    #[must_use]
    pub fn canonical(&self) -> String {
        self.canonical_rounded(-9)
    }

    /// The canonical form in a resource list, where the API rounds up to
    /// thousandths.
    ///
    /// ```
    /// # use longshore_model::Quantity;
    /// assert_eq!("0.1m".parse::<Quantity>().unwrap().canonical_milli(), "1m");
    /// ```
    #[must_use]
    pub fn canonical_milli(&self) -> String {
        self.canonical_rounded(-3)
    }

    fn canonical_rounded(&self, finest: i32) -> String {
        match self.rounded(finest) {
            Some(usual) if usual == "0" || parse_integer(&usual) != parse_integer(&self.text) => {
                usual
            }
            _ => self.text.clone(),
        }
    }

    /// Rounds away from zero to a power of ten; `None` for numbers that are too
    /// long to process.
    fn rounded(&self, finest: i32) -> Option<String> {
        let (mut number, mut power, format) = self.exact()?;
        if power < finest - 40 {
            // An i128 has no more digits than that.
            (number, power) = (number.signum(), finest);
        }
        while power < finest && number != 0 {
            let (quotient, rest) = (number / 10, number % 10);
            number = quotient + rest.signum();
            power += 1;
        }
        written(number, power, format)
    }

    /// The exact number: digits, power of ten, and format.
    fn exact(&self) -> Option<(i128, i32, Format)> {
        let (digits, suffix) = split(&self.text);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let number: i128 = if has_digit(digits) {
            format!("{whole}{fraction}").parse().ok()?
        } else {
            0
        };
        let power = -i32::try_from(fraction.len()).ok()?;
        if let Some(step) = BINARY.iter().skip(1).position(|known| *known == suffix) {
            let factor = 1024_i128.checked_pow(u32::try_from(step + 1).ok()?)?;
            let number = number.checked_mul(factor)?;
            let largest = i128::from(i64::MAX);
            let limit = largest.checked_mul(10_i128.checked_pow(power.unsigned_abs())?)?;
            return Some(if number.abs() > limit {
                (largest * number.signum(), 0, Format::Binary)
            } else {
                (number, power, Format::Binary)
            });
        }
        if let Some((of, _)) = DECIMAL.iter().find(|(_, known)| *known == suffix) {
            return Some((number, power + of, Format::Decimal));
        }
        let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
        Some((number, power.checked_add(exponent)?, Format::Exponent))
    }
}

/// Formats a number, given as digits and power of ten; `None` if it is too long to
/// process.
fn written(mut number: i128, mut power: i32, format: Format) -> Option<String> {
    if number == 0 {
        return Some("0".to_owned());
    }
    if format == Format::Binary {
        let whole = match u32::try_from(power) {
            Ok(power) => number.checked_mul(10_i128.checked_pow(power)?),
            Err(_) => {
                let unit = 10_i128.checked_pow(power.unsigned_abs())?;
                (number % unit == 0).then_some(number / unit)
            }
        };
        if let Some(whole) = whole
            && whole.abs() >= 1024
        {
            return Some(binary(whole));
        }
    }
    while number % 10 == 0 {
        number /= 10;
        power += 1;
    }
    while power.rem_euclid(3) != 0 {
        number = number.checked_mul(10)?;
        power -= 1;
    }
    if format == Format::Exponent {
        return Some(match power {
            0 => number.to_string(),
            _ => format!("{number}e{power}"),
        });
    }
    let (_, suffix) = DECIMAL.iter().find(|(of, _)| *of == power)?;
    Some(format!("{number}{suffix}"))
}

/// Formats an integer with the largest binary suffix that divides it.
fn binary(mut whole: i128) -> String {
    let mut step = 0;
    while whole % 1024 == 0 && step + 1 < BINARY.len() {
        whole /= 1024;
        step += 1;
    }
    format!("{whole}{}", BINARY[step])
}

/// Splits a text into number and suffix.
fn split(text: &str) -> (&str, &str) {
    let signed = usize::from(text.starts_with(['+', '-']));
    let mut dots = 0;
    let end = text[signed..].find(|c: char| {
        dots += usize::from(c == '.');
        !(c.is_ascii_digit() || (c == '.' && dots == 1))
    });
    text.split_at(end.map_or(text.len(), |end| signed + end))
}

fn has_digit(number: &str) -> bool {
    number.contains(|c: char| c.is_ascii_digit())
}

/// The power of ten of a suffix such as `e3`.
fn exponent(suffix: &str) -> Option<i32> {
    suffix.strip_prefix(['e', 'E'])?.parse().ok()
}

/// The number and suffix of an integer in any notation; `None` if it has a
/// fraction.
fn parse_integer(text: &str) -> Option<(i128, &str, i32)> {
    let (number, suffix) = split(text);
    let number = number.strip_suffix('.').unwrap_or(number).parse().ok()?;
    let known = DECIMAL.iter().any(|(_, known)| *known == suffix);
    match exponent(suffix) {
        Some(power) if !known => Some((number, "", power)),
        _ => Some((number, suffix, 0)),
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = |server_message| QuantityError {
            text: text.to_owned(),
            server_message,
        };
        let (number, suffix) = split(text);
        let after = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
        let after = after.strip_prefix(['+', '-']).unwrap_or(after);
        if text.is_empty() || !after.bytes().all(|b| b.is_ascii_digit()) {
            return Err(invalid(QuantityError::FORM));
        }
        let known = SUFFIXES.iter().find(|(known, _)| *known == suffix);
        if known.is_none() && !suffix.is_empty() && exponent(suffix).is_none() {
            return Err(invalid(NO_SUFFIX));
        }
        // API servers read a number without digits as zero, except where the
        // calculation must be exact.
        if !has_digit(number) && matches!(suffix, "Pi" | "Ei") {
            return Err(invalid(NO_NUMBER));
        }
        let value: Result<f64, _> = match known {
            _ if !has_digit(number) => Ok(0.0),
            Some((_, factor)) => number.parse().map(|number: f64| number * factor),
            None => text.parse(),
        };
        let value = value.map_err(|_| invalid(NO_NUMBER))?;
        if !value.is_finite() {
            return Err(invalid(NO_NUMBER));
        }
        Ok(Self {
            text: text.to_owned(),
            value,
        })
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The results of a real API server for resource lists.
    #[test]
    fn quantities_have_a_canonical_form() {
        for (text, usual) in [
            ("1000m", "1"),
            ("1024Mi", "1Gi"),
            ("0.5", "500m"),
            (".5", "500m"),
            ("1500m", "1500m"),
            ("1e3", "1e3"),
            ("1e1", "10"),
            ("1e4", "10e3"),
            ("100e-2", "1"),
            ("1e-3", "1e-3"),
            ("12e6", "12e6"),
            ("10e30", "10e30"),
            ("1000", "1k"),
            ("1000M", "1G"),
            ("100k", "100k"),
            ("0.1m", "1m"),
            ("5n", "1m"),
            ("1.5Gi", "1536Mi"),
            ("0.5Ki", "512"),
            ("1.1Ki", "1126400m"),
            ("0.1Ki", "102400m"),
            ("1023", "1023"),
            ("1000Ki", "1000Ki"),
            ("2048", "2048"),
            ("000", "0"),
            ("0Gi", "0"),
            ("-1500m", "-1500m"),
            ("123456789.123456789", "123456789124m"),
            ("8Ei", "9223372036854775807"),
            ("1Ei", "1Ei"),
            ("1e-2000000000", "1e-3"),
            ("+1", "+1"),
            ("007", "007"),
            ("1.", "1."),
            ("1.0", "1"),
            ("+1Ki", "+1Ki"),
            ("1.Ki", "1.Ki"),
            ("01024Ki", "1Mi"),
            ("01000", "1k"),
            ("1e03", "1e03"),
            ("1E+3", "1E+3"),
            ("1e-0", "1e-0"),
            ("0100e0", "0100e0"),
            ("1000e0", "1e3"),
            ("1E", "1E"),
            ("-0", "0"),
            ("0e5", "0"),
            (".", "0"),
            ("+", "0"),
            ("-", "0"),
            ("+.", "0"),
            ("m", "0"),
            ("E", "0"),
            ("e3", "0"),
            ("+Ki", "0"),
        ] {
            let quantity: Quantity = text.parse().unwrap();
            assert_eq!(quantity.canonical_milli(), usual, "{text}");
        }
        let finer: Quantity = "1.23456789123".parse().unwrap();
        assert_eq!(finer.canonical(), "1234567892n");
    }
    /// The errors of a real API server.
    #[test]
    fn invalid_quantities_are_rejected() {
        for (text, message) in [
            ("", QuantityError::FORM),
            ("1.5.1", QuantityError::FORM),
            ("0x1", QuantityError::FORM),
            ("1_000", QuantityError::FORM),
            ("1e.5", QuantityError::FORM),
            ("1E5Ki", QuantityError::FORM),
            (" 1", QuantityError::FORM),
            ("1é", QuantityError::FORM),
            ("1K", NO_SUFFIX),
            ("1e", NO_SUFFIX),
            ("e", NO_SUFFIX),
            ("1ee", NO_SUFFIX),
            ("i", NO_SUFFIX),
            ("--1", NO_SUFFIX),
            ("+-1", NO_SUFFIX),
            ("Ei", NO_NUMBER),
        ] {
            let invalid = text.parse::<Quantity>().unwrap_err();
            assert_eq!(invalid.server_message(), message, "{text}");
        }
    }
}
