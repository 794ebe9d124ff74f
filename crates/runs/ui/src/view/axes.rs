//! The axes of the parallel coordinates of a sweep, and the positions of its combinations. Pure.

use std::collections::BTreeSet;

use longshore_launcher::sweep::Row;

/// The length of an axis.
pub(crate) const AXIS_LENGTH: u32 = 1000;
/// The maximum number of metrics that have an axis and a column.
pub(crate) const MOST_METRICS: usize = 12;
/// The maximum number of parameters that have an axis.
const MOST_PARAMETERS: usize = 12;
/// The maximum number of different texts on an axis.
const MOST_TEXTS: usize = 40;
/// An axis of positive numbers whose largest is this many times its smallest is logarithmic.
const LOGARITHMIC: f64 = 1000.0;

/// An axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Axis {
    /// The parameter or metric.
    pub(crate) name: String,
    pub(crate) is_metric: bool,
    pub(crate) scale: Scale,
    /// The position of each combination from 0 to [`AXIS_LENGTH`], if it has a value.
    pub(crate) positions: Vec<Option<u32>>,
}

/// The values of an axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Scale {
    /// Numbers between two, as they are written.
    Linear(String, String),
    /// Positive numbers between two, spread over the orders of magnitude.
    Logarithmic(String, String),
    /// Texts, from position 0 on.
    Texts(Vec<String>),
}

/// The axes of the parameters and of the first metrics. Also returns the number of parameters and
/// metrics without an axis.
pub(crate) fn axes(parameters: &[String], metrics: &[String], rows: &[&Row]) -> (Vec<Axis>, usize) {
    let mut axes = Vec::new();
    for (place, name) in parameters.iter().enumerate().take(MOST_PARAMETERS) {
        let values = rows
            .iter()
            .map(|row| row.values.get(place).map(String::as_str));
        axes.extend(of_texts(name, values.collect()));
    }
    for name in metrics.iter().take(MOST_METRICS) {
        let values = rows.iter().map(|row| {
            let number = row.metrics.get(name).filter(|number| number.is_finite())?;
            Some((number, row.metric(name)?))
        });
        axes.extend(of_numbers(name, true, values.collect()));
    }
    let without = (parameters.len() + metrics.len()).saturating_sub(axes.len());
    (axes, without)
}

/// The axis of a parameter. `None` if no combination has a value, or too many have texts.
fn of_texts(name: &str, values: Vec<Option<&str>>) -> Option<Axis> {
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
    let is_numeric = values.iter().flatten().all(|text| number(text).is_some());
    if is_numeric {
        let numbers = values.iter().map(|text| {
            let text = (*text)?;
            Some((number(text)?, text.to_owned()))
        });
        return of_numbers(name, false, numbers.collect());
    }
    let texts: BTreeSet<&str> = values.iter().flatten().copied().collect();
    if texts.is_empty() || texts.len() > MOST_TEXTS {
        return None;
    }
    let texts: Vec<&str> = texts.into_iter().collect();
    let last = u32::try_from(texts.len() - 1).ok()?;
    let position = |text: &str| {
        let place = u32::try_from(texts.iter().position(|own| *own == text)?).ok()?;
        Some(match last {
            0 => AXIS_LENGTH / 2,
            last => place * AXIS_LENGTH / last,
        })
    };
    Some(Axis {
        name: name.to_owned(),
        is_metric: false,
        positions: values.iter().map(|text| position((*text)?)).collect(),
        scale: Scale::Texts(texts.into_iter().map(str::to_owned).collect()),
    })
}

/// The axis of numbers with their texts. `None` without numbers.
fn of_numbers(name: &str, is_metric: bool, values: Vec<Option<(f64, String)>>) -> Option<Axis> {
    let known = || values.iter().flatten();
    let (low, low_text) = known().min_by(|one, other| one.0.total_cmp(&other.0))?;
    let (high, high_text) = known().max_by(|one, other| one.0.total_cmp(&other.0))?;
    let is_logarithmic = *low > 0.0 && high / low >= LOGARITHMIC;
    let scaled = |number: f64| match is_logarithmic {
        true => number.ln(),
        false => number,
    };
    // Halves, because the difference of two numbers can be infinite.
    let (begin, end) = (scaled(*low) / 2.0, scaled(*high) / 2.0);
    let position = |number: f64| {
        let part = match end > begin {
            true => (scaled(number) / 2.0 - begin) / (end - begin),
            false => 0.5,
        };
        (part.clamp(0.0, 1.0) * f64::from(AXIS_LENGTH)).round() as u32
    };
    let positions = values.iter().map(|value| Some(position(value.as_ref()?.0)));
    let (low, high) = (low_text.clone(), high_text.clone());
    Some(Axis {
        name: name.to_owned(),
        is_metric,
        positions: positions.collect(),
        scale: match is_logarithmic {
            true => Scale::Logarithmic(low, high),
            false => Scale::Linear(low, high),
        },
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn positions(values: &[&str]) -> (Scale, Vec<Option<u32>>) {
        let axis = of_texts("x", values.iter().map(|text| Some(*text)).collect()).unwrap();
        (axis.scale, axis.positions)
    }

    #[test]
    fn numbers_are_linear_or_logarithmic() {
        let (scale, places) = positions(&["1", "3", "2"]);
        assert_eq!(scale, Scale::Linear("1".into(), "3".into()));
        assert_eq!(places, [Some(0), Some(1000), Some(500)]);
        let (scale, places) = positions(&["0.0001", "0.1", "1e-2"]);
        assert_eq!(scale, Scale::Logarithmic("0.0001".into(), "0.1".into()));
        assert_eq!(places, [Some(0), Some(1000), Some(667)]);
        assert_eq!(positions(&["7", "7"]).1, [Some(500), Some(500)]);
        let huge = positions(&["-1.7e308", "1.7e308", "0"]);
        assert_eq!(huge.1, [Some(0), Some(1000), Some(500)]);
    }

    #[test]
    fn texts_are_categories() {
        let (scale, places) = positions(&["sgd", "adam", "1", "sgd"]);
        let texts = ["1", "adam", "sgd"].map(str::to_owned);
        assert_eq!(scale, Scale::Texts(texts.into()));
        assert_eq!(places, [Some(1000), Some(500), Some(0), Some(1000)]);
        assert_eq!(positions(&["nan"]).1, [Some(500)]);
    }

    #[test]
    fn too_many_texts_and_no_numbers_have_no_axis() {
        let texts: Vec<String> = (0..41).map(|text| format!("t{text}")).collect();
        let values = texts.iter().map(|text| Some(text.as_str()));
        assert_eq!(of_texts("x", values.collect()), None);
        assert_eq!(of_numbers("x", true, vec![None, None]), None);
    }
}
