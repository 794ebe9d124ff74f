//! The metrics of a task: the last value of each name in the task's files and logs. They are
//! untrusted, so invalid parts are ignored, and all sizes are limited.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};

use crate::value_name::{check_name, is_name_byte};

/// The number of bytes to read from the end of a metrics file or log.
pub const LARGEST_METRICS: u64 = 1 << 20;

/// The maximum number of metrics to read from log lines.
pub const MOST_NAMES: usize = 32;
/// The maximum number of metrics of a task.
const MOST_METRICS: usize = 100;
/// The maximum length of the name of a metric in bytes.
const LONGEST_NAME: usize = 100;
/// Longer lines are ignored.
const LONGEST_LINE: usize = 64 << 10;
/// The maximum length of a number in a log line.
const LONGEST_NUMBER: usize = 40;

/// Checks the name of a metric to read from log lines.
///
/// # Errors
/// The violated rule.
pub fn check_metric(name: &str) -> Result<(), String> {
    check_name(name)
}

/// The last values of a task's metrics.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metrics(BTreeMap<String, f64>);

impl Metrics {
    /// The value of a metric.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// Returns true if the task has no metrics.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names and values, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }

    /// The values as JSON. Numbers that JSON cannot represent are strings: `NaN`, `Infinity` and
    /// `-Infinity`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let fields = self.0.iter();
        let fields = fields.map(|(name, value)| (name.clone(), json_number(*value)));
        Value::Object(fields.collect())
    }

    fn set(&mut self, name: &str, value: f64) {
        // Spreadsheets evaluate a cell that begins with a sign.
        let begins = |letter: char| letter.is_alphanumeric() || letter == '_';
        if !name.starts_with(begins) || name.len() > LONGEST_NAME || name.contains(char::is_control)
        {
            return;
        }
        if let Some(known) = self.0.get_mut(name) {
            *known = value;
        } else if self.0.len() < MOST_METRICS {
            self.0.insert(name.to_owned(), value);
        }
    }

    /// Reads JSON objects, one per line. Their numbers are metrics, including `NaN` and `Infinity`
    /// as Python writes them.
    pub fn read_json_lines(&mut self, text: &str) {
        for line in lines(text).filter(|line| line.starts_with('{')) {
            let fields: Option<Map<String, Value>> = serde_json::from_str(line)
                .ok()
                .or_else(|| serde_json::from_str(&quoted(line)).ok());
            for (name, value) in fields.into_iter().flatten() {
                let value = match &value {
                    Value::Number(number) => number.as_f64(),
                    Value::String(text) => not_finite(text),
                    _ => None,
                };
                if let Some(value) = value {
                    self.set(&name, value);
                }
            }
        }
    }

    /// Reads the metrics with these names from log lines: `loss=0.1`, `loss: 0.1` and
    /// `{"loss": 0.1}`.
    pub fn read_log(&mut self, names: &[String], text: &str) {
        for line in lines(text) {
            for name in names {
                if let Some(value) = last_value(line, name) {
                    self.set(name, value);
                }
            }
        }
    }
}

/// A number as JSON. Numbers that JSON cannot represent are strings: `NaN`, `Infinity` and
/// `-Infinity`.
#[must_use]
pub fn json_number(value: f64) -> Value {
    match Number::from_f64(value) {
        Some(_) => shown(value).parse().map_or(Value::Null, Value::Number),
        None => shown(value).into(),
    }
}

/// A number as a short text.
#[must_use]
pub fn shown(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        let sign = if value < 0.0 { "-" } else { "" };
        return format!("{sign}Infinity");
    }
    let text = format!("{value:?}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(str::trim);
    lines.filter(|line| line.len() <= LONGEST_LINE)
}

fn not_finite(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// JSON with quotation marks around `NaN` and `Infinity`, which Python writes without them.
fn quoted(line: &str) -> String {
    const WORDS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];
    let mut quoted = String::with_capacity(line.len() + 16);
    let (mut rest, mut in_string) = (line, false);
    while let Some(letter) = rest.chars().next() {
        let word = WORDS
            .iter()
            .find(|word| !in_string && rest.starts_with(**word));
        if let Some(word) = word {
            quoted.extend(["\"", word, "\""]);
            rest = rest.get(word.len()..).unwrap_or_default();
            continue;
        }
        let mut length = letter.len_utf8();
        match letter {
            '"' => in_string = !in_string,
            // An escaped quotation mark does not end the string.
            '\\' if in_string => {
                let next = rest.get(length..).and_then(|rest| rest.chars().next());
                length += next.map_or(0, char::len_utf8);
            }
            _ => {}
        }
        quoted.push_str(rest.get(..length).unwrap_or_default());
        rest = rest.get(length..).unwrap_or_default();
    }
    quoted
}

/// The last number in a line that belongs to a name.
fn last_value(line: &str, name: &str) -> Option<f64> {
    let mut value = None;
    for (at, _) in line.match_indices(name) {
        let before = line.get(..at).unwrap_or_default();
        if before.bytes().next_back().is_some_and(is_name_byte) {
            continue;
        }
        let after = line.get(at + name.len()..).unwrap_or_default();
        value = number_after(after).or(value);
    }
    value
}

/// The number in `=0.1`, `: 0.1` or `": 0.1`.
fn number_after(text: &str) -> Option<f64> {
    let text = text.strip_prefix(['"', '\'']).unwrap_or(text).trim_start();
    let text = text.strip_prefix(['=', ':'])?.trim_start();
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let length = text.bytes().take_while(|byte| is_part(byte)).count();
    let number = text.get(..length.min(LONGEST_NUMBER))?;
    // A period may end a sentence.
    let number = number.strip_suffix('.').unwrap_or(number);
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn metrics_of(file: &str) -> String {
        let mut metrics = Metrics::default();
        metrics.read_json_lines(file);
        metrics.to_json().to_string()
    }

    #[test]
    fn the_last_value_of_each_metric_counts() {
        let file = "{\"loss\": 2, \"step\": 1}\n{\"loss\": 0.5, \"ok\": true, \"name\": \"x\"}\n{\"loss\": 9";
        assert_eq!(metrics_of(file), r#"{"loss":0.5,"step":1}"#);
        // Written by Python's json module.
        let diverged = r#"{"NaN \" Infinity": 1, "loss": NaN, "max": Infinity, "min": -Infinity}"#;
        assert_eq!(
            metrics_of(diverged),
            r#"{"NaN \" Infinity":1,"loss":"NaN","max":"Infinity","min":"-Infinity"}"#
        );
    }

    #[test]
    fn hostile_metrics_files_are_limited() {
        assert_eq!(
            metrics_of("[1]\nnull\n{\"a\": {\"b\": 1}}\n\u{0}\n{{{\n\"x\""),
            "{}"
        );
        let long = format!(
            "{{\"{}\": 1}}\n{{\"a\": 1, \"b\": \"{}\"}}",
            "x".repeat(101),
            "y".repeat(70_000)
        );
        assert_eq!(metrics_of(&long), "{}");
        let many: String = (0..500).map(|n| format!("{{\"m{n}\": {n}}}\n")).collect();
        let mut metrics = Metrics::default();
        metrics.read_json_lines(&many);
        assert_eq!(metrics.iter().count(), 100);
        assert_eq!(
            metrics_of("{\"=1+1\": 1, \"a\\u001b\": 1, \"\": 1, \"val/loss ä\": 1}"),
            "{\"val/loss ä\":1}"
        );
        let deep = format!("{{\"a\": {}", "[".repeat(60_000));
        assert_eq!(metrics_of(&deep), "{}");
    }

    #[test]
    fn metrics_are_read_from_log_lines() {
        let names = ["loss".to_owned(), "acc".to_owned()];
        let read = |text: &str| {
            let mut metrics = Metrics::default();
            metrics.read_log(&names, text);
            metrics.to_json().to_string()
        };
        for (text, expected) in [
            (
                "epoch 1 loss=0.5 val_loss=0.7, acc: 93%",
                r#"{"acc":93,"loss":0.5}"#,
            ),
            ("{'loss': 1e-3, \"acc\":0.5}", r#"{"acc":0.5,"loss":0.001}"#),
            ("loss=3 loss=2 loss=x", r#"{"loss":2}"#),
            ("loss = nan.", r#"{"loss":"NaN"}"#),
            ("loss=1\rloss=-2", r#"{"loss":-2}"#),
            ("losses=1 loss 2 my.loss=3 lossy: 4", "{}"),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_can_be_a_file_or_a_log(text in "[\\PC\n\"{}:,=NaIinfty-]{0,80}") {
            let mut metrics = Metrics::default();
            metrics.read_json_lines(&text);
            metrics.read_log(&["a".to_owned(), "=".to_owned()], &text);
        }
    }
}
