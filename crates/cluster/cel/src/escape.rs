//! Names of properties as identifiers: `.`, `-`, `/`, `__` and the reserved
//! words are escaped.

/// Words that the grammar reserves for later use.
const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Words with a meaning in the grammar.
const KEYWORDS: [&str; 4] = ["true", "false", "null", "in"];

/// Returns true if an identifier must not be this word, which otherwise has no meaning.
pub(crate) fn is_reserved_identifier(word: &str) -> bool {
    RESERVED.contains(&word)
}

/// Returns true if a word is an identifier.
#[must_use]
pub fn is_identifier(word: &str) -> bool {
    let is_start = |c: char| c.is_ascii_alphabetic() || c == '_';
    word.starts_with(is_start)
        && word.chars().all(|c| is_start(c) || c.is_ascii_digit())
        && !is_reserved(word)
}

/// Returns true if a property of this name is escaped as a whole.
pub(crate) fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word) || KEYWORDS.contains(&word)
}

/// The identifier for a property, or `None` if expressions cannot name it.
pub(crate) fn escape(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if is_reserved(name) {
        return Some(format!("__{name}__"));
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        let (taken, text) = match c {
            '_' if rest.starts_with("__") => (2, "__underscores__"),
            '.' => (1, "__dot__"),
            '-' => (1, "__dash__"),
            '/' => (1, "__slash__"),
            c if c.is_ascii_alphanumeric() || c == '_' => (1, &rest[..1]),
            _ => return None,
        };
        out.push_str(text);
        rest = &rest[taken..];
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn properties_have_identifiers() {
        for (name, expected) in [
            ("plain", Some("plain")),
            ("a_b", Some("a_b")),
            ("x-prop", Some("x__dash__prop")),
            ("redact__d", Some("redact__underscores__d")),
            ("a.b/c", Some("a__dot__b__slash__c")),
            ("namespace", Some("__namespace__")),
            ("int", Some("int")),
            ("1a", None),
            ("", None),
            ("a b", None),
            ("é", None),
        ] {
            assert_eq!(escape(name).as_deref(), expected, "{name}");
        }
    }
}
