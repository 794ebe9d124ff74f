//! The `fieldPath` of rules: a JSONPath of field names, as in
//! `.spec.labels['a.b']`.

use serde_json::Value as Json;

/// The path in the notation of errors.
///
/// # Errors
/// Returns the reason why the path is invalid.
pub(super) fn normalize(path: &str, schema: &Json) -> Result<String, String> {
    let (mut out, mut at, mut rest) = (String::new(), schema, path);
    while let Some(delimiter) = rest.chars().next() {
        let (name, after) = match delimiter {
            '.' => {
                let rest = &rest[1..];
                let end = rest.find(['.', '[', ']']).unwrap_or(rest.len());
                if end == 0 {
                    return Err("unexpected end of JSON path".to_owned());
                }
                (rest[..end].to_owned(), &rest[end..])
            }
            '[' => quoted(&rest[1..])?,
            _ => return Err(format!("expected [ or . but got: {rest}")),
        };
        let properties = at["properties"].as_object();
        at = match properties {
            Some(properties) => {
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(&name);
                properties.get(&name)
            }
            None => {
                out.push_str(&format!("[{name}]"));
                Some(&at["additionalProperties"]).filter(|values| values.is_object())
            }
        }
        .ok_or("does not refer to a valid field")?;
        rest = after;
    }
    Ok(out)
}

/// The string in single quotes before a `]`, and the rest of the text.
fn quoted(text: &str) -> Result<(String, &str), String> {
    let inner = text
        .strip_prefix('\'')
        .ok_or_else(|| format!("expected single quoted string but got {text}"))?;
    let mut name = String::new();
    let mut chars = inner.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\'' => {
                let rest = &inner[at + 1..];
                let rest = rest.strip_prefix(']');
                return match rest {
                    Some(rest) => Ok((name, rest)),
                    None => Err("expected ] after the string".to_owned()),
                };
            }
            '\\' => name.push(match chars.next().map(|(_, c)| c) {
                Some('a') => '\x07',
                Some('b') => '\x08',
                Some('f') => '\x0c',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some('v') => '\x0b',
                Some(c @ ('\'' | '\\')) => c,
                other => {
                    let shown = other.unwrap_or_default();
                    return Err(format!(
                        "invalid string literal: invalid escape char \\{shown}"
                    ));
                }
            }),
            c => name.push(c),
        }
    }
    Err("unexpected end of JSON path".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_follow_the_schema() {
        let schema = json!({"properties": {
            "a": {"properties": {"b.c": {"type": "string"}}},
            "m": {"additionalProperties": {"type": "string"}},
        }});
        let path = |text| normalize(text, &schema);
        assert_eq!(path(".a['b.c']").as_deref(), Ok("a.b.c"));
        assert_eq!(path(".m['x']").as_deref(), Ok("m[x]"));
        assert_eq!(path(".m.x").as_deref(), Ok("m[x]"));
        for bad in [
            "a",
            ".",
            ".nothing",
            ".a[b]",
            ".a['b",
            ".a['b'",
            ".a..b",
            ".a['\\x']",
        ] {
            assert!(path(bad).is_err(), "{bad}");
        }
    }
}
