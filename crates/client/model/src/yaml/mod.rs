//! Writes JSON values as YAML that all parsers interpret identically, limits the size of YAML
//! input, and rejects repeated keys in mappings.
//!
//! The Kubernetes tools use YAML 1.1, in which `yes`, `on` and `1_000` are not
//! strings; most other parsers use YAML 1.2. Strings that any of them would
//! misinterpret are quoted.

mod limits;
mod unique;

use serde_json::{Map, Value};

pub use limits::{DEPTH, EXPANSION, LimitError, check};
pub use unique::Unique;

/// Words that some parser does not read as strings, in lower case.
const NON_STRING_WORDS: [&str; 15] = [
    "y", "n", "yes", "no", "on", "off", "true", "false", "null", "~", "nan", "inf", ".nan", ".inf",
    "<<",
];

/// Writes a value as block-style YAML with a final newline.
///
/// ```
/// use longshore_model::yaml;
/// use serde_json::json;
/// let value = json!({"on": ["yes", "no way", 1.5, {"a": {}, "b": "1\n2\n"}]});
/// assert_eq!(
///     yaml::write(&value),
///     "'on':\n- 'yes'\n- no way\n- 1.5\n- a: {}\n  b: |\n    1\n    2\n"
/// );
/// ```
#[must_use]
pub fn write(value: &Value) -> String {
    let mut text = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => object(map, 0, &mut text),
        Value::Array(items) if !items.is_empty() => array(items, 0, &mut text),
        leaf => {
            scalar(leaf, 1, &mut text);
            text.push('\n');
        }
    }
    text
}

fn indent(depth: usize, text: &mut String) {
    text.extend(std::iter::repeat_n("  ", depth));
}

/// The caller has written the indentation of the first line.
fn object(map: &Map<String, Value>, depth: usize, text: &mut String) {
    for (place, (key, value)) in map.iter().enumerate() {
        if place > 0 {
            indent(depth, text);
        }
        inline_string(key, text);
        text.push(':');
        match value {
            Value::Object(inner) if !inner.is_empty() => {
                text.push('\n');
                indent(depth + 1, text);
                object(inner, depth + 1, text);
            }
            Value::Array(items) if !items.is_empty() => {
                text.push('\n');
                indent(depth, text);
                array(items, depth, text);
            }
            leaf => {
                text.push(' ');
                scalar(leaf, depth + 1, text);
                text.push('\n');
            }
        }
    }
}

fn array(items: &[Value], depth: usize, text: &mut String) {
    for (place, value) in items.iter().enumerate() {
        if place > 0 {
            indent(depth, text);
        }
        text.push_str("- ");
        match value {
            Value::Object(inner) if !inner.is_empty() => object(inner, depth + 1, text),
            Value::Array(inner) if !inner.is_empty() => array(inner, depth + 1, text),
            leaf => {
                scalar(leaf, depth + 1, text);
                text.push('\n');
            }
        }
    }
}

fn scalar(value: &Value, depth: usize, text: &mut String) {
    match value {
        Value::String(string) if is_block(string) => block(string, depth, text),
        Value::String(string) => inline_string(string, text),
        Value::Object(_) => text.push_str("{}"),
        Value::Array(_) => text.push_str("[]"),
        other => text.push_str(&other.to_string()),
    }
}

fn inline_string(string: &str, text: &mut String) {
    if is_plain(string) {
        text.push_str(string);
    } else if string.chars().all(is_printable) {
        text.push('\'');
        text.push_str(&string.replace('\'', "''"));
        text.push('\'');
    } else {
        // JSON strings are valid YAML except for characters outside the basic
        // plane.
        let quoted = Value::String(string.to_owned()).to_string();
        for c in quoted.chars() {
            match c {
                c if is_printable(c) => text.push(c),
                c => text.push_str(&format!("\\U{:08x}", u32::from(c))),
            }
        }
    }
}

/// Returns true if a character can be written without an escape sequence.
fn is_printable(c: char) -> bool {
    !c.is_control()
        && !matches!(
            c,
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
        )
}

/// Returns true if a string needs no quotes for any parser.
fn is_plain(string: &str) -> bool {
    let begins = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_');
    let is_plain_char = |c: char| {
        c.is_ascii_alphanumeric()
            || matches!(
                c,
                '/' | '_'
                    | '.'
                    | '-'
                    | ' '
                    | '+'
                    | '='
                    | '@'
                    | '$'
                    | '('
                    | ')'
                    | ':'
                    | ';'
                    | ','
                    | '%'
                    | '<'
                    | '>'
            )
    };
    string.starts_with(begins)
        && string.chars().all(is_plain_char)
        && !string.ends_with([' ', ':'])
        && !string.contains(": ")
        && !NON_STRING_WORDS.contains(&string.to_ascii_lowercase().as_str())
        && !may_be_number(string)
}

/// Returns true if a string could be a number, time or date in any YAML version.
fn may_be_number(string: &str) -> bool {
    let of_numbers = |c: char| {
        c.is_ascii_hexdigit()
            || matches!(
                c,
                '.' | '-'
                    | '+'
                    | '_'
                    | ':'
                    | 'x'
                    | 'X'
                    | 'o'
                    | 'O'
                    | 'T'
                    | 't'
                    | 'Z'
                    | 'z'
                    | ' '
                    | ','
            )
    };
    // A text with two points is not a number but an address or a version.
    string.matches('.').count() < 2
        && string.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+'))
        && string.chars().all(of_numbers)
}

/// Returns true if a multiline string can be written as a literal block.
fn is_block(string: &str) -> bool {
    string.contains('\n')
        && !string.ends_with("\n\n")
        && !string.starts_with([' ', '\n', '\t'])
        && string.split('\n').all(|line| {
            !line.ends_with([' ', '\t']) && line.chars().all(|c| c == '\t' || is_printable(c))
        })
}

fn block(string: &str, depth: usize, text: &mut String) {
    text.push_str(if string.ends_with('\n') { "|" } else { "|-" });
    for line in string.trim_end_matches('\n').split('\n') {
        text.push('\n');
        if !line.is_empty() {
            indent(depth, text);
            text.push_str(line);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn ambiguous_strings_are_quoted() {
        for word in [
            "yes",
            "No",
            "ON",
            "off",
            "y",
            "N",
            "true",
            "False",
            "null",
            "~",
            "",
            "1",
            "1.5",
            "1e3",
            "0x1f",
            "0o17",
            "017",
            "1_000",
            "12:30:00",
            "2001-01-01",
            "2001-01-01T00:00:00Z",
            ".inf",
            "-.INF",
            ".NaN",
            "+1",
            "-",
            "- a",
            "a: b",
            "a:",
            "a #b",
            "#a",
            " a",
            "a ",
            "!a",
            "&a",
            "*a",
            "%a",
            "@a",
            "`a",
            "{a",
            "[a",
            "|",
            ">",
            "?",
            "'a'",
            "\"a\"",
            "=",
            "<<",
            "1,000",
            "---",
            "...",
        ] {
            let text = write(&json!(word));
            assert!(text.starts_with(['\'', '"']), "{word}: {text}");
        }
        for word in [
            "a",
            "4Gi",
            "500m",
            "a-b.c/d_e",
            "python train.py",
            "10.0.0.9:29500",
            "a:b",
            "/bin/sh",
            "yesterday",
            "nginx:1.27",
        ] {
            assert_eq!(write(&json!(word)), format!("{word}\n"));
        }
    }

    #[test]
    fn multiline_strings_round_trip() {
        let read = |text: &str| serde_yaml_ng::from_str::<Value>(text).unwrap();
        for text in [
            "a\nb",
            "a\n\n b\n",
            "a\nb\n\n",
            " a\nb",
            "a \nb",
            "\n",
            "a\r\nb",
            "a\n\tb\n",
            "\u{85}\n",
            "a\u{2028}b",
            "\u{feff}a",
        ] {
            let value = json!({"a": [{"b": text, "c": 1}], "d": text});
            assert_eq!(read(&write(&value)), value, "{}", write(&value));
        }
        assert_eq!(write(&json!({"a": "b\nc"})), "a: |-\n  b\n  c\n");
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (-1e9..1e9_f64).prop_map(Value::from),
            "\\PC{0,12}".prop_map(Value::from),
            "[a-z :#'\"\\n\\t-]{0,12}".prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::btree_map("[a-z0-9 :#'\\n.-]{0,8}", inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn written_values_are_read_back(value in value()) {
            let text = write(&value);
            let read: Value = serde_yaml_ng::from_str(&text).unwrap();
            prop_assert_eq!(read, value, "{}", text);
        }
    }
}
