//! Patterns in schemas: regular expressions with Go's syntax. Schemas share
//! compiled patterns. Their size is limited because a compiled pattern can be
//! thousands of times larger than its source.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
};

use regex_automata::{meta::Regex, nfa::thompson::WhichCaptures};
use serde_json::Value;

/// Maximum size of a compiled pattern in bytes.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// Maximum total size of the compiled patterns of a schema in bytes.
pub(super) const MAX_SCHEMA_BYTES: usize = 8 << 20;

/// Size of the cache that a pattern uses while it is matched, in bytes.
const MATCH_CACHE_BYTES: usize = 64 << 10;

/// A compiled pattern.
#[derive(Debug)]
pub(super) struct Compiled {
    regex: Regex,
}

impl Compiled {
    pub(super) fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// A lower bound of its memory use in bytes.
    pub(super) fn size(&self) -> usize {
        self.regex.memory_usage()
    }
}

/// The reason why a pattern cannot be compiled.
#[derive(Debug, thiserror::Error)]
pub(super) enum PatternError {
    /// The pattern is not a regular expression.
    #[error("{0}")]
    Syntax(String),
    /// The pattern would use too much memory.
    #[error("it takes more than {MAX_PATTERN_BYTES} bytes of memory")]
    TooLarge,
}

/// The patterns in use, and the most recently used ones.
#[derive(Debug, Default)]
struct PatternCache {
    used: HashMap<Box<str>, Weak<Compiled>>,
    /// A pattern is compiled several times before a schema holds a reference to
    /// it.
    recent: VecDeque<Arc<Compiled>>,
    recent_size: usize,
    /// The number of patterns at which unused ones are dropped.
    limit: usize,
}

fn cache() -> MutexGuard<'static, PatternCache> {
    static CACHE: OnceLock<Mutex<PatternCache>> = OnceLock::new();
    // The map only contains complete entries, so a poisoned lock is harmless.
    let cache = CACHE.get_or_init(Mutex::default);
    cache.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PatternCache {
    fn keep(&mut self, pattern: &str, compiled: &Arc<Compiled>) {
        if self.used.len() > self.limit {
            self.used.retain(|_, compiled| compiled.strong_count() > 0);
            self.limit = (self.used.len() * 2).max(1024);
        }
        self.used.insert(pattern.into(), Arc::downgrade(compiled));
        self.recent_size = self.recent_size.saturating_add(compiled.size());
        self.recent.push_back(compiled.clone());
        while self.recent_size > MAX_SCHEMA_BYTES
            && let Some(oldest) = self.recent.pop_front()
        {
            self.recent_size = self.recent_size.saturating_sub(oldest.size());
        }
    }
}

/// Compiles a pattern or returns the cached one.
///
/// # Errors
/// Returns what is wrong with the pattern.
pub(super) fn compile(pattern: &str) -> Result<Arc<Compiled>, PatternError> {
    if let Some(compiled) = cache().used.get(pattern).and_then(Weak::upgrade) {
        return Ok(compiled);
    }
    let config = Regex::config()
        .nfa_size_limit(Some(MAX_PATTERN_BYTES))
        .which_captures(WhichCaptures::None)
        .hybrid_cache_capacity(MATCH_CACHE_BYTES);
    let regex = Regex::builder()
        .configure(config)
        .build(&as_go_reads(pattern))
        .map_err(|error| match (error.size_limit(), error.syntax_error()) {
            (Some(_), _) => PatternError::TooLarge,
            (None, Some(problem)) => PatternError::Syntax(problem.to_string()),
            (None, None) => PatternError::Syntax(error.to_string()),
        })?;
    let compiled = Arc::new(Compiled { regex });
    cache().keep(pattern, &compiled);
    Ok(compiled)
}

/// Returns true if the patterns of a schema are within the size limit. Stops at the pattern that
/// exceeds it.
pub(super) fn fit_size_limit(schema: &Value) -> bool {
    let mut budget = Budget {
        left: MAX_SCHEMA_BYTES,
        seen: HashSet::new(),
    };
    budget.take_all(schema)
}

struct Budget<'a> {
    left: usize,
    seen: HashSet<&'a str>,
}

impl<'a> Budget<'a> {
    fn take_all(&mut self, schema: &'a Value) -> bool {
        match schema {
            Value::Object(fields) => fields.iter().all(|(name, value)| match value {
                Value::String(pattern) if name == "pattern" => self.take(pattern),
                value => self.take_all(value),
            }),
            Value::Array(items) => items.iter().all(|item| self.take_all(item)),
            _ => true,
        }
    }

    fn take(&mut self, pattern: &'a str) -> bool {
        if !self.seen.insert(pattern) {
            return true;
        }
        let size = match compile(pattern) {
            Ok(compiled) => compiled.size(),
            Err(PatternError::TooLarge) => MAX_PATTERN_BYTES,
            Err(PatternError::Syntax(_)) => pattern.len(),
        };
        match self.left.checked_sub(size) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }
}

/// Returns a schema without its patterns.
pub(super) fn without_patterns(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, value)| *name != "pattern" || !value.is_string())
            .map(|(name, value)| (name.clone(), without_patterns(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(without_patterns).collect(),
        value => value.clone(),
    }
}

/// Converts a pattern so that character classes have the same meaning as in Go:
/// `\w`, `\d`, `\s` and `\b` match only ASCII, and within brackets only
/// `[:name:]` is a nested class.
pub(super) fn as_go_reads(pattern: &str) -> String {
    let mut text = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern.chars().peekable();
    // True if the position is within brackets, and true if it is at their start.
    let (mut inside, mut begins) = (false, false);
    while let Some(c) = rest.next() {
        let began = std::mem::take(&mut begins);
        match c {
            '\\' => {
                let Some(escaped) = rest.next() else {
                    text.push('\\');
                    break;
                };
                let class = match (escaped, inside) {
                    ('w', _) => "[0-9A-Za-z_]",
                    ('W', _) => "[^0-9A-Za-z_]",
                    ('d', _) => "[0-9]",
                    ('D', _) => "[^0-9]",
                    ('s', _) => r"[\t\n\f\r ]",
                    ('S', _) => r"[^\t\n\f\r ]",
                    ('b', false) => r"(?-u:\b)",
                    _ => "",
                };
                text.push_str(class);
                if class.is_empty() {
                    text.push('\\');
                    text.push(escaped);
                }
            }
            '[' if !inside => {
                text.push('[');
                if rest.next_if_eq(&'^').is_some() {
                    text.push('^');
                }
                (inside, begins) = (true, true);
            }
            // A closing bracket at the start is a literal.
            ']' if inside && began => text.push_str(r"\]"),
            ']' => {
                text.push(']');
                inside = false;
            }
            '[' if rest.peek() == Some(&':') => {
                text.push('[');
                // Copy the name of the class unchanged.
                for c in rest.by_ref() {
                    text.push(c);
                    if c == ']' {
                        break;
                    }
                }
            }
            '[' => text.push_str(r"\["),
            // Doubled, these are set operations in Rust but literals in Go.
            '&' | '~' if inside => {
                text.push('\\');
                text.push(c);
            }
            '-' if inside && rest.peek() == Some(&'-') => text.push_str(r"\-"),
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn character_classes_are_those_of_go() {
        for (pattern, yes, no) in [
            (r"^\w+$", "az_09", "ä"),
            (r"^\W$", "ä", "a"),
            (r"^[\w.-]+$", "a.b-c", "é"),
            (r"^[\w-.]+$", "a.b-c", "é"),
            (r"^[^\W]$", "a", "ä"),
            (r"^\d$", "7", "٧"),
            (r"^[\s]$", "\t", "\u{a0}"),
            (r"^a\b", "a-", "ab"),
            (r"^[[a]+$", "[a", "b"),
            (r"^[a&&b]+$", "&ab", "c"),
            (r"^[]a]+$", "]a", "["),
            (r"^[^]a]+$", "b", "]"),
            (r"^[[:alpha:]_]+$", "ab_", "1"),
            (r"^[a~~b]+$", "~", "c"),
            (r"^\[x\]\\w$", r"[x]\w", "[x]a"),
            (r"^.$", "ä", ""),
        ] {
            let compiled = compile(pattern).unwrap();
            assert!(compiled.is_match(yes), "{pattern} {yes}");
            assert!(!compiled.is_match(no), "{pattern} {no}");
        }
        assert!(compile("(").is_err());
        assert!(compile(r"(\p{L}{1000}){1000}").is_err());
    }

    #[test]
    fn patterns_are_compiled_once() {
        let first = compile("^once-[a-z]+$").unwrap();
        assert!(Arc::ptr_eq(&first, &compile("^once-[a-z]+$").unwrap()));
    }

    #[test]
    fn the_total_size_of_patterns_is_limited() {
        let schema = |pattern: &str| {
            let field = |n: usize| {
                let pattern = pattern.replace('N', &n.to_string());
                (
                    format!("f{n}"),
                    json!({"type": "string", "pattern": pattern}),
                )
            };
            let fields: serde_json::Map<_, _> = (0..400).map(field).collect();
            json!({"properties": fields})
        };
        assert!(fit_size_limit(&schema(r"^\w{15}N")));
        let large = schema(r"^\p{L}{100}N");
        assert!(!fit_size_limit(&large));
        assert!(fit_size_limit(&without_patterns(&large)));
        // Patterns that fail to compile are not retried without limit.
        assert!(!fit_size_limit(&schema(r"((\p{L}{100}){100}){N00}")));
        let same = json!({"a": vec![json!({"pattern": r"^\p{L}{100}"}); 1000]});
        assert!(fit_size_limit(&same));
    }

    proptest! {
        #[test]
        fn arbitrary_patterns_do_not_panic(pattern in r"[\[\]\\wdsb^$&~:a\-(){}*+?.|,0-9äé]{0,24}", text: String) {
            if let Ok(compiled) = compile(&pattern) {
                let _ = compiled.is_match(&text);
            }
        }

        /// Patterns without syntax differences are unchanged.
        #[test]
        fn patterns_without_differences_are_unchanged(pattern in r"[a-z^$.*+?|(){},0-9]{0,24}") {
            prop_assert_eq!(as_go_reads(&pattern), pattern);
        }
    }
}
