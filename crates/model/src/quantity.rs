//! Quantities: `500m`, `2Gi`, `1e3`.

use std::{fmt, str::FromStr};

/// An amount of a resource, kept as written; [`Quantity::value`] gives the number.
///
/// Units are those of the resource: cores for `cpu`, bytes for `memory`.
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

/// A text that is no quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no quantity: write a number with an optional suffix, as in 500m, 1.5, 2Gi or 1e3"
)]
pub struct QuantityError(String);

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

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || QuantityError(text.to_owned());
        let (digits, factor) = SUFFIXES
            .iter()
            .find_map(|(suffix, factor)| text.strip_suffix(suffix).map(|rest| (rest, *factor)))
            .unwrap_or((text, 1.0));
        let plain = |c: char| c.is_ascii_digit() || matches!(c, '.' | '+' | '-');
        let exponent = factor == 1.0;
        let allowed = |c: char| plain(c) || (exponent && matches!(c, 'e' | 'E'));
        if digits.is_empty() || !digits.chars().all(allowed) {
            return Err(error());
        }
        let number: f64 = digits.parse().map_err(|_| error())?;
        let value = number * factor;
        if !value.is_finite() {
            return Err(error());
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
