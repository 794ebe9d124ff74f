//! Exact sums and comparisons of quantities, as API servers calculate them.

use std::{cmp::Ordering, collections::BTreeMap, fmt};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{Format, Quantity, written};

/// The amounts of named resources: `requests`, `limits`, `hard`, `used`.
pub type Amounts = BTreeMap<String, Amount>;

/// The power of ten of the unit in which amounts are calculated.
const FINEST: i32 = -9;

/// A quantity as a number for exact calculations, in billionths. Larger numbers than an API
/// server supports are limited.
///
/// ```
/// use longshore_model::quantity::Amount;
/// let amount = |text: &str| text.parse::<Amount>().unwrap();
/// assert_eq!((amount("500m") + amount("1500m")).to_string(), "2");
/// assert_eq!((amount("64Mi") + amount("64Mi")).to_string(), "128Mi");
/// assert!(amount("1Gi") > amount("1G"));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Amount {
    billionths: i128,
    format: Format,
}

impl Amount {
    /// The largest number of units that an API server supports.
    const MAX: i128 = i64::MAX as i128 * 1_000_000_000;

    /// Zero.
    pub const ZERO: Self = Self::of(0);

    /// A whole number.
    #[must_use]
    pub const fn of(number: i64) -> Self {
        Self {
            billionths: number as i128 * 1_000_000_000,
            format: Format::Decimal,
        }
    }

    /// Returns true if it is zero.
    #[must_use]
    pub fn is_zero(self) -> bool {
        self.billionths == 0
    }

    /// Returns true if it is less than zero.
    #[must_use]
    pub fn is_negative(self) -> bool {
        self.billionths < 0
    }

    /// A number of thousandths.
    ///
    /// ```
    /// use longshore_model::quantity::Amount;
    /// assert_eq!(Amount::of_thousandths(1500).to_string(), "1500m");
    /// ```
    #[must_use]
    pub const fn of_thousandths(number: i64) -> Self {
        Self {
            billionths: number as i128 * 1_000_000,
            format: Format::Decimal,
        }
    }

    /// The number of thousandths, rounded away from zero.
    ///
    /// ```
    /// use longshore_model::quantity::Amount;
    /// assert_eq!("250000001n".parse::<Amount>().unwrap().thousandths(), 251);
    /// ```
    #[must_use]
    pub fn thousandths(self) -> i64 {
        let (whole, rest) = (self.billionths / 1_000_000, self.billionths % 1_000_000);
        let limited = whole + rest.signum();
        i64::try_from(limited).unwrap_or(if limited < 0 { i64::MIN } else { i64::MAX })
    }

    /// The next whole number, as `Value()` of Kubernetes.
    ///
    /// ```
    /// use longshore_model::quantity::Amount;
    /// assert_eq!("1500m".parse::<Amount>().unwrap().whole(), 2);
    /// ```
    #[must_use]
    pub fn whole(self) -> i64 {
        let (whole, rest) = (
            self.billionths / 1_000_000_000,
            self.billionths % 1_000_000_000,
        );
        let rounded = whole + rest.signum();
        i64::try_from(rounded).unwrap_or(if rounded < 0 { i64::MIN } else { i64::MAX })
    }

    /// The same amount with the suffixes `Ki`, `Mi`, … if it is a whole number.
    ///
    /// ```
    /// use longshore_model::quantity::Amount;
    /// assert_eq!(Amount::of(2048).with_binary_suffix().to_string(), "2Ki");
    /// ```
    #[must_use]
    pub const fn with_binary_suffix(self) -> Self {
        Self {
            billionths: self.billionths,
            format: Format::Binary,
        }
    }

    /// The ratio of this amount to another one.
    #[must_use]
    pub fn ratio(self, to: Self) -> f64 {
        self.billionths as f64 / to.billionths as f64
    }

    /// The next whole number.
    #[must_use]
    pub fn rounded_up(self) -> Self {
        let unit = Self::of(1).billionths;
        let rest = self.billionths.rem_euclid(unit);
        Self {
            billionths: match rest {
                0 => self.billionths,
                _ => self.billionths.saturating_add(unit - rest),
            },
            ..self
        }
    }

    /// The notation of the first amount that is not zero.
    fn format_with(self, other: Self) -> Format {
        if self.is_zero() {
            other.format
        } else {
            self.format
        }
    }
}

impl From<&Quantity> for Amount {
    fn from(quantity: &Quantity) -> Self {
        let exact = quantity.exact().and_then(|(number, power, format)| {
            let billionths = match u32::try_from(power.checked_sub(FINEST)?) {
                Ok(up) => number.checked_mul(10_i128.checked_pow(up)?)?,
                Err(_) => {
                    let unit = 10_i128.checked_pow(FINEST.checked_sub(power)?.unsigned_abs())?;
                    // API servers round away from zero.
                    let rest = number % unit;
                    number / unit + rest.signum()
                }
            };
            Some((billionths, format))
        });
        let (billionths, format) = exact.unwrap_or_else(|| {
            // The number is too long to process: very large or very small.
            let limit = match quantity.value() {
                value if value >= 1.0 => Self::MAX,
                value if value <= -1.0 => -Self::MAX,
                value => value.signum() as i128,
            };
            (limit, Format::Decimal)
        });
        Self {
            billionths: billionths.clamp(-Self::MAX, Self::MAX),
            format,
        }
    }
}

impl std::str::FromStr for Amount {
    type Err = super::QuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse::<Quantity>()
            .map(|quantity| Self::from(&quantity))
    }
}

impl PartialEq for Amount {
    fn eq(&self, other: &Self) -> bool {
        self.billionths == other.billionths
    }
}

impl Eq for Amount {}

impl PartialOrd for Amount {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Amount {
    fn cmp(&self, other: &Self) -> Ordering {
        self.billionths.cmp(&other.billionths)
    }
}

impl std::ops::Add for Amount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let sum = self.billionths.saturating_add(other.billionths);
        Self {
            billionths: sum.clamp(-Self::MAX, Self::MAX),
            format: self.format_with(other),
        }
    }
}

impl std::ops::Sub for Amount {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        let difference = self.billionths.saturating_sub(other.billionths);
        Self {
            billionths: difference.clamp(-Self::MAX, Self::MAX),
            format: self.format_with(other),
        }
    }
}

/// The canonical form.
impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = written(self.billionths, FINEST, self.format);
        f.write_str(text.as_deref().unwrap_or("0"))
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(text) => text,
            other => other.to_string(),
        };
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn amount(text: &str) -> Amount {
        text.parse().unwrap()
    }

    #[test]
    fn sums_keep_the_notation_of_the_first_amount() {
        for (one, other, sum) in [
            ("0", "1Gi", "1Gi"),
            ("1Gi", "1G", "2073741824"),
            ("1G", "1Gi", "2073741824"),
            ("1Ki", "1k", "2024"),
            ("512Mi", "512Mi", "1Gi"),
            ("100m", "900m", "1"),
            ("1e3", "1", "1001"),
            ("2", "-3", "-1"),
            ("1n", "0", "1n"),
        ] {
            assert_eq!(
                (amount(one) + amount(other)).to_string(),
                sum,
                "{one} + {other}"
            );
        }
        assert_eq!((amount("1") - amount("1")).to_string(), "0");
    }

    #[test]
    fn large_numbers_are_limited() {
        let most = amount("9223372036854775807");
        assert_eq!(amount("100E"), most);
        assert_eq!(most + most, most);
        assert_eq!(amount("1e300").to_string(), "9223372036854775807");
        assert!(amount("0.00000000000000000000000000000000000000000000001") > Amount::ZERO);
    }

    #[test]
    fn rounding_up() {
        assert_eq!(amount("1500m").rounded_up(), amount("2"));
        assert_eq!(amount("2").rounded_up(), amount("2"));
        assert_eq!(amount("-1500m").rounded_up(), amount("-1"));
    }

    proptest! {
        /// A sum does not depend on the order, and its text is the same number.
        #[test]
        fn sums(numbers in prop::collection::vec(-1_000_000_i64..1_000_000, 0..8)) {
            let amounts = numbers.iter().map(|n| amount(&format!("{n}m")));
            let forward = amounts.clone().fold(Amount::ZERO, |sum, one| sum + one);
            let back = amounts.rev().fold(Amount::ZERO, |sum, one| sum + one);
            prop_assert_eq!(forward, back);
            prop_assert_eq!(amount(&forward.to_string()), forward);
            prop_assert_eq!(forward, amount(&format!("{}m", numbers.iter().sum::<i64>())));
        }
    }
}
