//! The line and column of an invalid value or an unknown key in a file.

use toml::de::{DeTable, DeValue};

/// Line and column, from 1, of the key or value that an error refers to: a key equal to
/// `value`, or a value equal to it whose key is named in `what`.
pub(super) fn find(text: &str, what: &str, value: &str) -> Option<(usize, usize)> {
    let table = DeTable::parse(text).ok()?;
    let words: Vec<&str> = what.split([' ', '.']).collect();
    let at = in_table(table.get_ref(), &words, value)?;
    position(text, at)
}

/// Line and column, from 1, of a key by its path of tables.
pub(super) fn key(text: &str, path: &[&str]) -> Option<(usize, usize)> {
    let parsed = DeTable::parse(text).ok()?;
    let (last, tables) = path.split_last()?;
    let mut table = parsed.get_ref();
    for name in tables {
        let (_, inner) = table.iter().find(|(key, _)| key.get_ref() == name)?;
        let DeValue::Table(inner) = inner.get_ref() else {
            return None;
        };
        table = inner;
    }
    let (key, _) = table.iter().find(|(key, _)| key.get_ref() == last)?;
    position(text, key.span().start)
}

fn position(text: &str, at: usize) -> Option<(usize, usize)> {
    let before = text.get(..at)?;
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next()?.chars().count() + 1;
    Some((line, column))
}

fn in_table(table: &DeTable<'_>, words: &[&str], value: &str) -> Option<usize> {
    for (key, inner) in table.iter() {
        if key.get_ref() == value {
            return Some(key.span().start);
        }
        let is_named = words.contains(&key.get_ref().as_ref());
        let found = in_value(inner.get_ref(), inner.span().start, is_named, words, value);
        if found.is_some() {
            return found;
        }
    }
    None
}

fn in_value(
    inner: &DeValue<'_>,
    start: usize,
    is_named: bool,
    words: &[&str],
    value: &str,
) -> Option<usize> {
    match inner {
        DeValue::Table(table) => in_table(table, words, value),
        DeValue::Array(items) => items
            .iter()
            .find_map(|item| in_value(item.get_ref(), item.span().start, is_named, words, value)),
        leaf => (is_named && shown(leaf) == value).then_some(start),
    }
}

fn shown(leaf: &DeValue<'_>) -> String {
    match leaf {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(truth) => truth.to_string(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name = 'a'\n[labels]\n'bad key' = 'x'\n[resources]\n  gpu = 'lots'\n[roles.worker]\ncount = 20000\nresources = { cpu = 'lots' }\n";

    #[test]
    fn keys_and_values_are_found() {
        assert_eq!(find(TEXT, "label key", "bad key"), Some((3, 1)));
        assert_eq!(find(TEXT, "resource gpu", "lots"), Some((5, 9)));
        assert_eq!(find(TEXT, "resource cpu", "lots"), Some((8, 21)));
        assert_eq!(find(TEXT, "count of role worker", "20000"), Some((7, 9)));
        assert_eq!(find(TEXT, "count", "1"), None);
        assert_eq!(key(TEXT, &["roles", "worker", "count"]), Some((7, 1)));
        assert_eq!(key(TEXT, &["labels", "bad key"]), Some((3, 1)));
        assert_eq!(key(TEXT, &["labels", "count"]), None);
        assert_eq!(find("no toml", "count", "1"), None);
    }
}
