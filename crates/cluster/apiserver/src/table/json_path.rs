//! The subset of JSONPath that printer columns use: keys (`.a`, `['a']`),
//! indexes (`[0]`, `[-1]`), all elements (`[*]`) and filters (`[?(@.a=="b")]`).

use serde_json::Value;

/// A parsed path.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct JsonPath(Vec<Step>);

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Key(String),
    Index(i64),
    All,
    /// Elements whose value at a path is equal or not equal to this one.
    Filter(Vec<Step>, Comparison),
}

#[derive(Debug, Clone, PartialEq)]
enum Comparison {
    Is(Value),
    IsNot(Value),
    Exists,
}

impl JsonPath {
    /// Parses a path; `None` if it is not supported.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut rest = text.trim();
        let steps = steps(&mut rest)?;
        rest.is_empty().then_some(Self(steps))
    }

    /// Returns the first value at the path.
    pub(super) fn first<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        walk(&self.0, value).into_iter().next()
    }
}

fn steps(rest: &mut &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    loop {
        if let Some(after) = rest.strip_prefix('.') {
            *rest = after;
            if rest.starts_with('[') || rest.is_empty() {
                continue;
            }
            steps.push(match key(rest).as_str() {
                "*" => Step::All,
                "" => return None,
                name => Step::Key(name.to_owned()),
            });
        } else if let Some(after) = rest.strip_prefix('[') {
            *rest = after;
            steps.push(bracket(rest)?);
        } else {
            return Some(steps);
        }
    }
}

/// Parses a key up to a dot or bracket; a backslash escapes the next character.
fn key(rest: &mut &str) -> String {
    let mut name = String::new();
    let mut characters = rest.char_indices();
    let mut end = rest.len();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => name.extend(characters.next().map(|(_, next)| next)),
            '.' | '[' | ']' | ')' | '=' | '!' | ' ' => {
                end = at;
                break;
            }
            other => name.push(other),
        }
    }
    *rest = &rest[end..];
    name
}

fn bracket(rest: &mut &str) -> Option<Step> {
    if let Some(after) = rest.strip_prefix("?(") {
        *rest = after.trim_start().strip_prefix('@')?;
        let path = steps(rest)?;
        *rest = rest.trim_start();
        let comparison = if let Some(after) = rest.strip_prefix("==") {
            *rest = after.trim_start();
            Comparison::Is(literal(rest)?)
        } else if let Some(after) = rest.strip_prefix("!=") {
            *rest = after.trim_start();
            Comparison::IsNot(literal(rest)?)
        } else {
            Comparison::Exists
        };
        *rest = rest.trim_start().strip_prefix(")]")?;
        return Some(Step::Filter(path, comparison));
    }
    if rest.starts_with(['\'', '"']) {
        let Value::String(name) = literal(rest)? else {
            return None;
        };
        *rest = rest.strip_prefix(']')?;
        return Some(Step::Key(name));
    }
    let (inside, after) = rest.split_once(']')?;
    *rest = after;
    match inside.trim() {
        "*" => Some(Step::All),
        number => number.parse().ok().map(Step::Index),
    }
}

/// Parses a quoted string, a number, `true` or `false`.
fn literal(rest: &mut &str) -> Option<Value> {
    if let Some(quote) = rest.chars().next().filter(|c| matches!(c, '\'' | '"')) {
        let (text, after) = rest[1..].split_once(quote)?;
        *rest = after;
        return Some(text.into());
    }
    let end = rest.find([')', ' ', ']']).unwrap_or(rest.len());
    let value = serde_json::from_str(&rest[..end]).ok();
    *rest = &rest[end..];
    value
}

fn walk<'a>(steps: &[Step], value: &'a Value) -> Vec<&'a Value> {
    let mut found = vec![value];
    for step in steps {
        found = found
            .into_iter()
            .flat_map(|value| one(step, value))
            .collect();
    }
    found
}

fn one<'a>(step: &Step, value: &'a Value) -> Vec<&'a Value> {
    match (step, value) {
        (Step::Key(name), Value::Object(fields)) => fields.get(name).into_iter().collect(),
        (Step::Index(index), Value::Array(items)) => {
            let from_end = || items.len().checked_sub(index.unsigned_abs() as usize);
            let index = usize::try_from(*index).ok().or_else(from_end);
            index
                .and_then(|index| items.get(index))
                .into_iter()
                .collect()
        }
        (Step::All, Value::Array(items)) => items.iter().collect(),
        (Step::All, Value::Object(fields)) => fields.values().collect(),
        (Step::Filter(path, comparison), Value::Array(items)) => items
            .iter()
            .filter(|item| {
                let found = walk(path, item);
                match comparison {
                    Comparison::Is(wanted) => found.first() == Some(&wanted),
                    Comparison::IsNot(wanted) => found.first().is_some_and(|one| *one != wanted),
                    Comparison::Exists => !found.is_empty(),
                }
            })
            .collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn rule_30_paths_of_printer_columns() {
        let object = json!({"spec": {"a.b": "dotted", "list": [{"n": 1}, {"n": 2}]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Done", "status": "False"}]}});
        for (path, found) in [
            (".spec.list[0].n", Some(json!(1))),
            (".spec.list[-1].n", Some(json!(2))),
            (".spec.list[*].n", Some(json!(1))),
            (".spec['a.b']", Some(json!("dotted"))),
            (r".spec.a\.b", Some(json!("dotted"))),
            (
                r#".status.conditions[?(@.type=="Done")].status"#,
                Some(json!("False")),
            ),
            (
                ".status.conditions[?(@.type == 'Ready')].status",
                Some(json!("True")),
            ),
            (".spec.list[7].n", None),
            (".spec.nothing", None),
        ] {
            let parsed = JsonPath::parse(path);
            let first = parsed.as_ref().and_then(|path| path.first(&object));
            assert_eq!(first, found.as_ref(), "{path}");
            assert!(parsed.is_some(), "{path}");
        }
        assert_eq!(JsonPath::parse(".a[?(@.b"), None);
    }

    proptest! {
        #[test]
        fn never_panics(text in r#"[.\[\]?@()='"a0\\* -]{0,20}"#) {
            if let Some(path) = JsonPath::parse(&text) {
                let _ = path.first(&json!({"a": [{"a": 0}]}));
            }
        }
    }
}
