//! Random samples of combinations. The same seed gives the same samples in every release. Libraries
//! do not guarantee this, so this module has its own generator.

use std::collections::BTreeSet;

use super::{Parameter, Range, Values, check_count};

/// A SplitMix64 generator.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        let wide = u128::from(self.next()) * u128::from(end);
        u64::try_from(wide >> 64).unwrap_or_default()
    }

    /// A number from 0 to 1.
    fn fraction(&mut self) -> f64 {
        let bits = u32::try_from(self.next() >> 32).unwrap_or_default();
        f64::from(bits) / f64::from(u32::MAX)
    }

    fn between(&mut self, from: f64, to: f64, log: bool) -> f64 {
        let part = self.fraction();
        let value = match log {
            true => (from.ln() + part * (to.ln() - from.ln())).exp(),
            // The difference of the ends may exceed the range of numbers.
            false => from * (1.0 - part) + to * part,
        };
        value.clamp(from, to)
    }
}

/// Random combinations, which contain a value of each parameter's list or range. Combinations of
/// lists and ranges of integers are distinct.
///
/// # Errors
/// The rule that a parameter or the number violates.
pub fn sample(
    parameters: &[Parameter],
    samples: u32,
    seed: u64,
) -> Result<Vec<Vec<String>>, String> {
    check_count(samples.into())?;
    let mut random = Random(seed);
    let mut total = Some(1_u64);
    for Parameter { name, values } in parameters {
        let count = match values {
            Values::List(list) if list.is_empty() => {
                return Err(format!("{name} has no values"));
            }
            Values::List(list) => Some(list.len() as u64),
            // The samples of such a range are not equally likely.
            Values::Range(Range::Integers { log: true, .. }) => None,
            Values::Range(range) => range.len(),
        };
        total = total.and_then(|total| total.checked_mul(count?));
    }
    let Some(total) = total else {
        let one = |random: &mut Random| {
            let values = parameters
                .iter()
                .map(|parameter| draw(&parameter.values, random));
            values.collect()
        };
        return Ok((0..samples).map(|_| one(&mut random)).collect());
    };
    let samples = u64::from(samples);
    if samples > total {
        return Err(format!(
            "there are only {total} combinations: use --samples {total} (`samples`) or fewer, or omit it for all"
        ));
    }
    let positions = positions(total, samples, &mut random);
    let combinations = positions
        .into_iter()
        .map(|position| at(parameters, position));
    Ok(combinations.collect())
}

/// Different positions below `total`, in random order.
fn positions(total: u64, samples: u64, random: &mut Random) -> Vec<u64> {
    let mut positions = Vec::new();
    if total / 2 < samples {
        // At most twice the maximum number of combinations.
        positions.extend(0..total);
        for chosen in 0..samples {
            let other = chosen + random.below(total - chosen);
            let (chosen, other) = (usize::try_from(chosen), usize::try_from(other));
            if let (Ok(chosen), Ok(other)) = (chosen, other) {
                positions.swap(chosen, other);
            }
        }
        positions.truncate(usize::try_from(samples).unwrap_or(usize::MAX));
        return positions;
    }
    let mut known = BTreeSet::new();
    while (known.len() as u64) < samples {
        let position = random.below(total);
        if known.insert(position) {
            positions.push(position);
        }
    }
    positions
}

/// The combination at a position in the grid of all combinations.
fn at(parameters: &[Parameter], mut position: u64) -> Vec<String> {
    let mut values: Vec<String> = Vec::new();
    for parameter in parameters.iter().rev() {
        let count = match &parameter.values {
            Values::List(list) => list.len() as u64,
            Values::Range(range) => range.len().unwrap_or(1),
        };
        let own = position % count.max(1);
        position /= count.max(1);
        values.push(match &parameter.values {
            Values::List(list) => {
                let own = usize::try_from(own).ok().and_then(|own| list.get(own));
                own.cloned().unwrap_or_default()
            }
            Values::Range(range) => range.at(own).unwrap_or_default().to_string(),
        });
    }
    values.reverse();
    values
}

/// A value of a list or range.
fn draw(values: &Values, random: &mut Random) -> String {
    match values {
        Values::List(list) => {
            let position = random.below(list.len() as u64);
            let value = usize::try_from(position).ok().and_then(|at| list.get(at));
            value.cloned().unwrap_or_default()
        }
        Values::Range(range @ Range::Integers { from, to, log }) => match log {
            #[expect(
                clippy::cast_precision_loss,
                clippy::cast_possible_truncation,
                reason = "the conversion saturates, and the result is within the range"
            )]
            true => {
                let value = random.between(*from as f64, *to as f64 + 1.0, true);
                (value.floor() as i64).clamp(*from, *to).to_string()
            }
            false => {
                let position = random.below(range.len().unwrap_or(1));
                range.at(position).unwrap_or(*from).to_string()
            }
        },
        Values::Range(Range::Numbers { from, to, log }) => {
            let value = random.between(*from, *to, *log);
            // Six digits are enough, and are independent of the machine's logarithm.
            let short = format!("{value:.5e}").parse().unwrap_or(value);
            number(short.clamp(*from, *to))
        }
    }
}

/// A number in Python's notation.
fn number(value: f64) -> String {
    format!("{value:?}")
}
