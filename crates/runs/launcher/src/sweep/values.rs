//! The values of a parameter, and all combinations of several parameters.

use super::{MOST_COMBINATIONS, Parameter, check_count};

/// The values of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Single values.
    List(Vec<String>),
    /// All values of a range.
    Range(Range),
}

/// A range that includes both ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Range {
    /// Integers.
    Integers {
        /// The lowest number.
        from: i64,
        /// The highest number.
        to: i64,
        /// True if random samples are spread evenly over the orders of magnitude.
        log: bool,
    },
    /// Real numbers, for random samples.
    Numbers {
        /// The lowest number.
        from: f64,
        /// The highest number.
        to: f64,
        /// True if random samples are spread evenly over the orders of magnitude.
        log: bool,
    },
}

impl Range {
    /// The number of values. `None` for a range of real numbers.
    #[must_use]
    pub fn len(&self) -> Option<u64> {
        match self {
            Self::Integers { from, to, .. } => Some(to.abs_diff(*from).saturating_add(1)),
            Self::Numbers { .. } => None,
        }
    }

    /// Returns true if the parameter has no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    /// The value at a position in a range of integers.
    pub(super) fn at(&self, position: u64) -> Option<i64> {
        match self {
            Self::Integers { from, to, .. } => {
                let value = from.checked_add_unsigned(position)?;
                (value <= *to).then_some(value)
            }
            Self::Numbers { .. } => None,
        }
    }
}

/// Parses the values of a parameter: `0.1,0.01`, `1..5`, `1..3,7`, `0.1..1.0` or `0.0001..0.1:log`.
/// A range includes both ends. A comma within brackets belongs to its value.
///
/// # Errors
/// The violated rule.
///
/// ```
/// use longshore_launcher::sweep::{Range, Values, parse_values};
///
/// let list = Values::List(vec!["0.1".to_owned(), "0.01".to_owned()]);
/// assert_eq!(parse_values("0.1,0.01")?, list);
/// let range = Range::Integers { from: 1, to: 5, log: false };
/// assert_eq!(parse_values("1..5")?, Values::Range(range));
/// assert!(parse_values("5..1").is_err());
/// # Ok::<(), String>(())
/// ```
pub fn parse_values(text: &str) -> Result<Values, String> {
    let parts: Vec<&str> = split(text)?.into_iter().map(str::trim).collect();
    if let [part] = parts[..]
        && let Some(range) = range(part)?
    {
        return Ok(Values::Range(range));
    }
    let mut values = Vec::new();
    for part in parts {
        if part.is_empty() {
            return Err(
                "a value is empty: write NAME=VALUE,VALUE; a list in longshore.toml can contain an empty string"
                    .to_owned(),
            );
        }
        match range(part)? {
            None => values.push(part.to_owned()),
            Some(Range::Numbers { .. }) => {
                return Err(format!(
                    "{part} is a range of real numbers, which cannot be combined with other values"
                ));
            }
            Some(Range::Integers { log: true, .. }) => {
                return Err(format!(
                    "{part}: a range with a logarithmic scale cannot be combined with other values"
                ));
            }
            Some(range) => expand(&range, &mut values)?,
        }
        check_length(values.len() as u64)?;
    }
    Ok(Values::List(values))
}

/// Splits a text at its commas, except within brackets: `[64,64],[128]` has two values.
fn split(text: &str) -> Result<Vec<&str>, String> {
    let (mut parts, mut begin) = (Vec::new(), 0);
    let mut open: Vec<char> = Vec::new();
    let mut quote = None;
    let mut is_escaped = false;
    for (at, letter) in text.char_indices() {
        if let Some(closing) = quote {
            let is_end = letter == closing && !is_escaped;
            is_escaped = letter == '\\' && !is_escaped;
            if is_end {
                quote = None;
            }
            continue;
        }
        let is_first = text[begin..at].trim().is_empty();
        match letter {
            // Within a word, the character is an apostrophe.
            '"' | '\'' if is_first || !open.is_empty() => quote = Some(letter),
            '[' => open.push(']'),
            '(' => open.push(')'),
            '{' => open.push('}'),
            ']' | ')' | '}' if open.pop().is_some_and(|closing| closing != letter) => {
                parts.push(alone(&text[begin..], "its brackets do not match")?);
                return Ok(parts);
            }
            ',' if open.is_empty() => {
                check_quotes(&text[begin..at])?;
                parts.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    let last = &text[begin..];
    if !open.is_empty() || quote.is_some() {
        let problem = "a bracket or a quotation mark is not closed";
        parts.push(alone(last, problem)?);
        return Ok(parts);
    }
    check_quotes(last)?;
    parts.push(last);
    Ok(parts)
}

/// The last value of a list, if it does not contain a comma that could separate two values.
fn alone<'a>(part: &'a str, problem: &str) -> Result<&'a str, String> {
    match part.contains(',') {
        true => Err(unclear(part, problem)),
        false => Ok(part),
    }
}

/// Refuses a value like `"a,b"`, whose quotation marks could enclose the value or belong to it.
fn check_quotes(part: &str) -> Result<(), String> {
    let part = part.trim();
    match part.starts_with(['"', '\'']) && part.contains(',') {
        true => Err(unclear(part, "it has a comma in quotation marks")),
        false => Ok(()),
    }
}

fn unclear(part: &str, problem: &str) -> String {
    format!(
        "{part}: {problem}, so its values are not clear; write a list in longshore.toml (`sweep`) or a file (`sweep_file`), which can contain any string"
    )
}

fn expand(range: &Range, values: &mut Vec<String>) -> Result<(), String> {
    let count = range.len().unwrap_or_default();
    check_length(count)?;
    let numbers = (0..count).filter_map(|position| range.at(position));
    values.extend(numbers.map(|number| number.to_string()));
    Ok(())
}

fn check_length(count: u64) -> Result<(), String> {
    match count > MOST_COMBINATIONS as u64 {
        true => Err(format!(
            "{count} values are too many: use at most {MOST_COMBINATIONS}, or random samples (--samples)"
        )),
        false => Ok(()),
    }
}

/// A range. `None` if the text is a value, such as `../data` or `a..b`.
fn range(text: &str) -> Result<Option<Range>, String> {
    let Some((from, rest)) = text.split_once("..") else {
        return Ok(None);
    };
    if !begins_as_number(from) {
        return Ok(None);
    }
    let (to, log) = match rest.split_once(':') {
        None => (rest, false),
        Some((to, "log")) => (to, true),
        Some((_, scale)) => {
            return Err(format!(
                "unknown scale {scale:?} in {text}: write {from}..TO:log"
            ));
        }
    };
    let wrong = || {
        format!(
            "{text} is not a range: write FROM..TO, as in 1..5 or 0.1..1.0; a list in longshore.toml can contain any string"
        )
    };
    let is_ordered = |is_ordered: bool| match is_ordered {
        true => Ok(()),
        false => Err(format!(
            "{text}: the end of a range must not be below its beginning"
        )),
    };
    let scale = |is_positive: bool| match log && !is_positive {
        true => Err(format!(
            "{text}: a logarithmic scale needs a beginning above 0"
        )),
        false => Ok(()),
    };
    if let (Ok(from), Ok(to)) = (from.parse::<i64>(), to.parse::<i64>()) {
        is_ordered(from <= to)?;
        scale(from > 0)?;
        return Ok(Some(Range::Integers { from, to, log }));
    }
    let is_integer = |text: &str| {
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit())
    };
    if is_integer(from) && is_integer(to) {
        return Err(format!(
            "{text}: the integers of a range are limited to 64 bits; write 1.0..1e30 for real numbers"
        ));
    }
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
    let (from, to) = number(from).zip(number(to)).ok_or_else(wrong)?;
    is_ordered(from <= to)?;
    scale(from > 0.0)?;
    Ok(Some(Range::Numbers { from, to, log }))
}

fn begins_as_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let unsigned = unsigned.strip_prefix('.').unwrap_or(unsigned);
    unsigned.starts_with(|letter: char| letter.is_ascii_digit())
}

/// All combinations of the values. The values of the last parameter change first.
///
/// # Errors
/// The rule that a parameter or the number of combinations violates.
pub fn grid(parameters: &[Parameter]) -> Result<Vec<Vec<String>>, String> {
    let mut lists = Vec::new();
    let mut count: u128 = 1;
    for Parameter { name, values } in parameters {
        let list = match values {
            Values::List(list) => list.clone(),
            Values::Range(Range::Integers { log: true, .. }) => {
                return Err(format!(
                    "{name}: a logarithmic scale is for random samples: add --samples N (`samples`), or list the values"
                ));
            }
            Values::Range(range @ Range::Integers { .. }) => {
                let mut list = Vec::new();
                expand(range, &mut list).map_err(|rule| format!("{name}: {rule}"))?;
                list
            }
            Values::Range(Range::Numbers { .. }) => {
                return Err(format!(
                    "{name}: a range of real numbers is for random samples: add --samples N (`samples`), or list the values"
                ));
            }
        };
        let mut seen = std::collections::BTreeSet::new();
        if let Some(again) = list.iter().find(|value| !seen.insert(value.as_str())) {
            return Err(format!("{name}: the value {again:?} is given twice"));
        }
        count = count.saturating_mul(list.len() as u128);
        lists.push(list);
    }
    check_count(count)?;
    let mut combinations: Vec<Vec<String>> = vec![Vec::new()];
    for list in &lists {
        let longer = combinations.iter().flat_map(|combination| {
            list.iter().map(|value| {
                let mut longer = combination.clone();
                longer.push(value.clone());
                longer
            })
        });
        combinations = longer.collect();
    }
    Ok(combinations)
}
