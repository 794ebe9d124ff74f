//! Durations in Go's notation: `1h30m`, `1.5s`, `-2us`.

/// Parses a duration to nanoseconds. Errors have Go's messages.
pub(super) fn parse(text: &str) -> Result<i64, String> {
    let invalid = || format!("time: invalid duration {text:?}");
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let (whole, after) = digits(rest);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => digits(after),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let end = after
            .find(|c: char| c == '.' || c.is_ascii_digit())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration {text:?}"));
        }
        let Some(scale) = nanoseconds(unit) else {
            return Err(format!("time: unknown unit {unit:?} in duration {text:?}"));
        };
        let number: i128 = match whole {
            "" => 0,
            whole => whole.parse::<i64>().map_err(|_| invalid())?.into(),
        };
        total += number * i128::from(scale) + fraction_value(fraction, scale);
        // Allow one more than the maximum, which is valid with a minus sign.
        if total > i128::from(i64::MAX) + 1 {
            return Err(invalid());
        }
        rest = after;
    }
    i64::try_from(if negative { -total } else { total }).map_err(|_| invalid())
}

fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit());
    text.split_at(end.unwrap_or(text.len()))
}

/// The value of the digits after a decimal point. As in Go, digits after the
/// eighteenth are ignored, even for hours.
fn fraction_value(fraction: &str, scale: i64) -> i128 {
    let digits = fraction.bytes().take(18).map(|digit| digit - b'0');
    let (number, tens) = digits.fold((0_i128, 1_i128), |(number, tens), digit| {
        (number * 10 + i128::from(digit), tens * 10)
    });
    number * i128::from(scale) / tens
}

fn nanoseconds(unit: &str) -> Option<i64> {
    Some(match unit {
        "ns" => 1,
        // `us` with each of Unicode's micro signs.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60 * 1_000_000_000,
        "h" => 3_600 * 1_000_000_000,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_use_go_syntax() {
        for (text, nanoseconds) in [
            ("0", 0),
            ("-0", 0),
            ("1h30m", 5_400_000_000_000),
            ("1.5h", 5_400_000_000_000),
            ("+.5s", 500_000_000),
            ("5.s", 5_000_000_000),
            ("-2us", -2_000),
            ("3µs4ns", 3_004),
            ("2562047h47m16.854775807s", i64::MAX),
            ("-2562047h47m16.854775808s", i64::MIN),
        ] {
            assert_eq!(parse(text), Ok(nanoseconds), "{text}");
        }
        for (text, problem) in [
            ("", "time: invalid duration \"\""),
            ("-", "time: invalid duration \"-\""),
            ("1", "time: missing unit in duration \"1\""),
            (".s", "time: invalid duration \".s\""),
            ("1h x", "time: unknown unit \"h x\" in duration \"1h x\""),
            ("1d", "time: unknown unit \"d\" in duration \"1d\""),
            ("s", "time: invalid duration \"s\""),
            (
                "2562047h47m16.854775808s",
                "time: invalid duration \"2562047h47m16.854775808s\"",
            ),
            (
                "99999999999999999999h",
                "time: invalid duration \"99999999999999999999h\"",
            ),
        ] {
            assert_eq!(parse(text), Err(problem.to_owned()), "{text}");
        }
    }
}
