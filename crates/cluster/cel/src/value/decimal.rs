//! Exact numbers of quantities.

use longshore_model::Quantity;

/// A quantity in billionths, which is the precision of Kubernetes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Decimal(i128);

const UNIT: i128 = 1_000_000_000;

/// Kubernetes limits quantities to the range of 64-bit integers.
const MAX: i128 = i64::MAX as i128 * UNIT;

impl Decimal {
    /// Parses a quantity; the error is the message of Kubernetes.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if let Err(error) = text.parse::<Quantity>() {
            return Err(error.server_message().to_owned());
        }
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let magnitude = nanos(whole, fraction, suffix).unwrap_or(MAX).min(MAX);
        Ok(Self(if negative { -magnitude } else { magnitude }))
    }

    pub(crate) fn of(number: i64) -> Self {
        Self(i128::from(number) * UNIT)
    }

    pub(crate) fn sign(self) -> i64 {
        self.0.signum() as i64
    }

    /// The number, if it is a 64-bit integer.
    pub(crate) fn integer(self) -> Option<i64> {
        (self.0 % UNIT == 0)
            .then(|| i64::try_from(self.0 / UNIT).ok())
            .flatten()
    }

    #[allow(clippy::cast_precision_loss)]
    pub(crate) fn double(self) -> f64 {
        match self.integer() {
            Some(number) => number as f64,
            None => self.0 as f64 / UNIT as f64,
        }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    pub(crate) fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

/// The number in billionths, rounded up; `None` if it is too large.
fn nanos(whole: &str, fraction: &str, suffix: &str) -> Option<i128> {
    let binary = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    if let Some(power) = binary.iter().skip(1).position(|known| *known == suffix) {
        let factor = 1024i128.checked_pow(u32::try_from(power).ok()? + 1)?;
        // A fraction of a binary unit has more digits than the result.
        let digits: String = fraction.chars().take(18).collect();
        let below = match digits.len() {
            0 => 0,
            length => {
                let scale = 10i128.checked_pow(u32::try_from(length).ok()?)?;
                let product = digits.parse::<i128>().ok()?.checked_mul(factor)?;
                let (quotient, rest) = (product / scale, product % scale);
                let rest = rest.checked_mul(UNIT)?;
                quotient
                    .checked_mul(UNIT)?
                    .checked_add((rest / scale) + i128::from(rest % scale != 0))?
            }
        };
        let above = parse(whole)?.checked_mul(factor)?.checked_mul(UNIT)?;
        return above.checked_add(below);
    }
    let power: i64 = match suffix {
        "n" => -9,
        "u" => -6,
        "m" => -3,
        "" => 0,
        "k" => 3,
        "M" => 6,
        "G" => 9,
        "T" => 12,
        "P" => 15,
        "E" => 18,
        exponent => exponent[1..].parse().ok()?,
    };
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some(0);
    }
    let scale = power + 9 - i64::try_from(fraction.len()).ok()?;
    if scale >= 0 {
        let factor = 10i128.checked_pow(u32::try_from(scale).ok()?)?;
        return parse(digits)?.checked_mul(factor);
    }
    let dropped = usize::try_from(-scale).unwrap_or(usize::MAX);
    let kept = digits.len().saturating_sub(dropped);
    let lost = digits[kept..].bytes().any(|digit| digit != b'0');
    Some(parse(&digits[..kept])? + i128::from(lost))
}

fn parse(digits: &str) -> Option<i128> {
    match digits {
        "" => Some(0),
        digits => digits.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn quantities_are_exact() {
        let parse = |text: &str| Decimal::parse(text).unwrap();
        assert_eq!(parse("1.5Gi"), Decimal::of(1_610_612_736));
        assert_eq!(parse("200k"), Decimal::of(200_000));
        assert_eq!(parse("0.2M"), Decimal::of(200_000));
        assert_eq!(parse("2e3").integer(), Some(2000));
        assert_eq!(parse("500m").integer(), None);
        assert!((parse("500m").double() - 0.5).abs() < 1e-12);
        assert_eq!(parse("-1").sign(), -1);
        assert_eq!(parse("0.0000000001"), parse("1n"));
        assert_eq!(
            parse("100E"),
            parse("99999999999999999999999999999999999999999999999")
        );
        assert_eq!(parse("1e99").integer(), Some(i64::MAX));
        assert!(Decimal::parse("10 apples").is_err());
    }
}
