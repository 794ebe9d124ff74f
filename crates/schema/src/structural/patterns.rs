//! Patterns of schemas: regular expressions as Go reads them, compiled once for
//! all schemas that have them, and bounded, since what is compiled can be
//! thousands of times larger than its text.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
};

use regex_automata::{meta::Regex, nfa::thompson::WhichCaptures};
use serde_json::Value;

/// Bytes that one compiled pattern may take.
const PATTERN: usize = 1 << 20;

/// Bytes that the compiled patterns of one schema may take together.
pub(super) const SCHEMA: usize = 8 << 20;

/// Bytes of memory in which a pattern keeps what it has found out while it was
/// matched.
const CACHE: usize = 64 << 10;

/// A compiled pattern.
#[derive(Debug)]
pub(super) struct Compiled {
    regex: Regex,
}

impl Compiled {
    pub(super) fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// Bytes of memory that it takes, at least.
    pub(super) fn size(&self) -> usize {
        self.regex.memory_usage()
    }
}

/// Why a pattern cannot be compiled.
#[derive(Debug, thiserror::Error)]
pub(super) enum PatternError {
    /// It is not a regular expression.
    #[error("{0}")]
    Syntax(String),
    /// It would take too much memory.
    #[error("it takes more than {PATTERN} bytes of memory")]
    TooLarge,
}

/// The patterns that are in use, and those used last.
#[derive(Debug, Default)]
struct Known {
    used: HashMap<Box<str>, Weak<Compiled>>,
    /// A pattern is looked at several times before a schema keeps it.
    recent: VecDeque<Arc<Compiled>>,
    recent_size: usize,
    /// How many patterns are known when those that nothing uses are forgotten.
    limit: usize,
}

fn known() -> MutexGuard<'static, Known> {
    static KNOWN: OnceLock<Mutex<Known>> = OnceLock::new();
    // A map of complete entries is never half changed.
    let known = KNOWN.get_or_init(Mutex::default);
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Known {
    fn keep(&mut self, pattern: &str, compiled: &Arc<Compiled>) {
        if self.used.len() > self.limit {
            self.used.retain(|_, compiled| compiled.strong_count() > 0);
            self.limit = (self.used.len() * 2).max(1024);
        }
        self.used.insert(pattern.into(), Arc::downgrade(compiled));
        self.recent_size = self.recent_size.saturating_add(compiled.size());
        self.recent.push_back(compiled.clone());
        while self.recent_size > SCHEMA
            && let Some(oldest) = self.recent.pop_front()
        {
            self.recent_size = self.recent_size.saturating_sub(oldest.size());
        }
    }
}

/// Compiles a pattern, or finds it.
///
/// # Errors
/// What is wrong with it.
pub(super) fn compile(pattern: &str) -> Result<Arc<Compiled>, PatternError> {
    if let Some(compiled) = known().used.get(pattern).and_then(Weak::upgrade) {
        return Ok(compiled);
    }
    let config = Regex::config()
        .nfa_size_limit(Some(PATTERN))
        .which_captures(WhichCaptures::None)
        .hybrid_cache_capacity(CACHE);
    let regex = Regex::builder()
        .configure(config)
        .build(&as_go_reads(pattern))
        .map_err(|error| match (error.size_limit(), error.syntax_error()) {
            (Some(_), _) => PatternError::TooLarge,
            (None, Some(problem)) => PatternError::Syntax(problem.to_string()),
            (None, None) => PatternError::Syntax(error.to_string()),
        })?;
    let compiled = Arc::new(Compiled { regex });
    known().keep(pattern, &compiled);
    Ok(compiled)
}

/// Whether the patterns of a schema take no more memory than they may. It stops
/// at the pattern that is too much.
pub(super) fn fit(schema: &Value) -> bool {
    let mut budget = Budget {
        left: SCHEMA,
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
            Err(PatternError::TooLarge) => PATTERN,
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

/// A schema without its patterns.
pub(super) fn without(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, value)| *name != "pattern" || !value.is_string())
            .map(|(name, value)| (name.clone(), without(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(without).collect(),
        value => value.clone(),
    }
}

/// A pattern in which classes mean what they mean to Go: `\w`, `\d`, `\s` and
/// `\b` are of ASCII, and in brackets only `[:name:]` is a class of its own.
fn as_go_reads(pattern: &str) -> String {
    let mut text = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern.chars().peekable();
    // Whether it is in brackets, and whether these have just begun.
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
            // A bracket that comes first closes nothing.
            ']' if inside && began => text.push_str(r"\]"),
            ']' => {
                text.push(']');
                inside = false;
            }
            '[' if rest.peek() == Some(&':') => {
                text.push('[');
                // Up to the end of the name, as it is.
                for c in rest.by_ref() {
                    text.push(c);
                    if c == ']' {
                        break;
                    }
                }
            }
            '[' => text.push_str(r"\["),
            // Twice they are set operations to others.
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
    fn classes_are_those_of_go() {
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
    fn one_pattern_is_compiled_once() {
        let first = compile("^once-[a-z]+$").unwrap();
        assert!(Arc::ptr_eq(&first, &compile("^once-[a-z]+$").unwrap()));
    }

    #[test]
    fn many_small_patterns_fit_and_many_large_ones_do_not() {
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
        assert!(fit(&schema(r"^\w{15}N")));
        let large = schema(r"^\p{L}{100}N");
        assert!(!fit(&large));
        assert!(fit(&without(&large)));
        // Those that cannot be compiled are not tried without end.
        assert!(!fit(&schema(r"((\p{L}{100}){100}){N00}")));
        let same = json!({"a": vec![json!({"pattern": r"^\p{L}{100}"}); 1000]});
        assert!(fit(&same));
    }

    proptest! {
        #[test]
        fn noise_never_panics(pattern in r"[\[\]\\wdsb^$&~:a\-(){}*+?.|,0-9äé]{0,24}", text: String) {
            if let Ok(compiled) = compile(&pattern) {
                let _ = compiled.is_match(&text);
            }
        }

        /// Patterns without what is read otherwise are left as they are.
        #[test]
        fn plain_patterns_stay(pattern in r"[a-z^$.*+?|(){},0-9]{0,24}") {
            prop_assert_eq!(as_go_reads(&pattern), pattern);
        }
    }
}
