//! Files of combinations: CSV with a header, or one JSON object per line.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::MOST_COMBINATIONS;

/// Names of parameters, and the values of each combination.
type Table = (Vec<String>, Vec<Vec<String>>);

/// Reads a file of combinations. `name` is the name of the file, which ends with `.csv`, `.jsonl`
/// or `.ndjson`.
///
/// CSV is as in RFC 4180: fields are separated by commas, quotation marks enclose a field with
/// commas, quotation marks or newlines, and the first line contains the names. The lines of JSON
/// have the same keys, with strings, numbers, true or false.
///
/// # Errors
/// The problem, with the line.
pub fn parse_file(name: &str, text: &str) -> Result<Table, String> {
    // Spreadsheets write a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let ending = name
        .rsplit_once('.')
        .map(|(_, ending)| ending.to_ascii_lowercase());
    match ending.as_deref() {
        Some("csv") => csv(text),
        Some("jsonl" | "ndjson") => json_lines(text),
        _ => Err("use a file whose name ends with .csv or .jsonl".to_owned()),
    }
}

fn too_many() -> String {
    format!("the file has more than {MOST_COMBINATIONS} combinations")
}

fn json_lines(text: &str) -> Result<Table, String> {
    let (mut names, mut combinations) = (Vec::new(), Vec::new());
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() {
            continue;
        }
        let fields: BTreeMap<String, &RawValue> =
            serde_json::from_str(line).map_err(|error| format!("line {number}: {error}"))?;
        let own: Vec<&String> = fields.keys().collect();
        if combinations.is_empty() {
            names = own.into_iter().cloned().collect();
        } else if own != names.iter().collect::<Vec<_>>() {
            return Err(format!(
                "line {number}: its keys are not those of the first line: {}",
                names.join(", ")
            ));
        }
        if combinations.len() == MOST_COMBINATIONS {
            return Err(too_many());
        }
        let values = fields
            .values()
            .zip(&names)
            .map(|(value, name)| match value.get() {
                text if text.starts_with('"') => {
                    serde_json::from_str(text).map_err(|error| format!("line {number}: {error}"))
                }
                text if text.starts_with(['[', '{']) || text == "null" => Err(format!(
                    "line {number}: {name}: use a string, a number, true or false"
                )),
                // The original text, so that a large number keeps its digits.
                text => Ok(text.to_owned()),
            });
        combinations.push(values.collect::<Result<_, _>>()?);
    }
    Ok((names, combinations))
}

fn csv(text: &str) -> Result<Table, String> {
    let mut records = records(text)?.into_iter();
    let (_, names) = records.next().ok_or("the file is empty")?;
    let names: Vec<String> = names.iter().map(|name| name.trim().to_owned()).collect();
    let mut combinations = Vec::new();
    for (line, values) in records {
        if values.len() != names.len() {
            return Err(format!(
                "line {line}: it has {} values, and the first line has {} names",
                values.len(),
                names.len()
            ));
        }
        combinations.push(values);
    }
    Ok((names, combinations))
}

/// The records of a CSV file, each with its line.
fn records(text: &str) -> Result<Vec<(usize, Vec<String>)>, String> {
    let mut records = Vec::new();
    let (mut record, mut field, mut line) = (Vec::new(), String::new(), 1_usize);
    let (mut begin, mut is_quoted, mut was_quoted) = (1, false, false);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter == '\n' {
            line = line.saturating_add(1);
        }
        match letter {
            '"' if is_quoted => {
                if letters.next_if_eq(&'"').is_some() {
                    field.push('"');
                } else {
                    is_quoted = false;
                }
            }
            letter if is_quoted => field.push(letter),
            '"' if field.is_empty() && !was_quoted => (is_quoted, was_quoted) = (true, true),
            ',' => {
                record.push(std::mem::take(&mut field));
                was_quoted = false;
            }
            '\r' if letters.peek() == Some(&'\n') => {}
            '\n' => {
                // Blank lines are ignored.
                if !record.is_empty() || !field.is_empty() || was_quoted {
                    record.push(std::mem::take(&mut field));
                    if records.len() > MOST_COMBINATIONS {
                        return Err(too_many());
                    }
                    records.push((begin, std::mem::take(&mut record)));
                }
                (begin, was_quoted) = (line, false);
            }
            _ if was_quoted => {
                return Err(format!(
                    "line {line}: a comma must follow the quotation mark"
                ));
            }
            letter => field.push(letter),
        }
    }
    if is_quoted {
        return Err(format!("line {begin}: a quotation mark is not closed"));
    }
    if !record.is_empty() || !field.is_empty() || was_quoted {
        record.push(field);
        if records.len() > MOST_COMBINATIONS {
            return Err(too_many());
        }
        records.push((begin, record));
    }
    Ok(records)
}
