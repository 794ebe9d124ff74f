//! A scanner over JSON text: checks the grammar and finds where values begin
//! and end, without making values of them. Whether strings are UTF-8 is left
//! to who reads them.
//!
//! One pass over a list gives the place of every item and of the parts that
//! are asked for most; the rest is parsed when it is wanted.

use std::ops::Range;

use crate::blocks;

/// What is wrong with a text, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    at: usize,
    problem: &'static str,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at byte {}", self.problem, self.at)
    }
}

type Scan<T> = Result<T, Fault>;

/// Objects and lists may be nested so deep; serde_json's own limit is alike.
const DEPTH: u32 = 120;

pub(crate) struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    pub(crate) fn fault<T>(&self, problem: &'static str) -> Scan<T> {
        Err(Fault {
            at: self.at,
            problem,
        })
    }

    /// The next byte that is no space, not yet taken.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        loop {
            match self.text.get(self.at).copied() {
                Some(b' ' | b'\n' | b'\t' | b'\r') => self.at += 1,
                other => return other,
            }
        }
    }

    /// Nothing but space is left.
    pub(crate) fn end(&mut self) -> Scan<()> {
        if self.peek().is_none() {
            Ok(())
        } else {
            self.fault("text after the value")
        }
    }

    /// The position of the next byte that is no space.
    pub(crate) fn position(&mut self) -> usize {
        self.peek();
        self.at
    }

    /// The position of the next byte, space or not.
    pub(crate) fn offset(&self) -> usize {
        self.at
    }

    /// Visits the members of an object; `visit` must take the value.
    #[inline]
    pub(crate) fn members(
        &mut self,
        mut visit: impl FnMut(&mut Self, &'a [u8]) -> Scan<()>,
    ) -> Scan<()> {
        self.members_at(|scanner, key| visit(scanner, &scanner.text[key]))
    }

    /// As [`Scanner::members`], with the place of the key between its quotes.
    #[inline]
    pub(crate) fn members_at(
        &mut self,
        mut visit: impl FnMut(&mut Self, Range<usize>) -> Scan<()>,
    ) -> Scan<()> {
        if self.peek() != Some(b'{') {
            return self.fault("an object is expected");
        }
        self.at += 1;
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            let key = self.key()?;
            visit(self, key)?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return self.fault("',' or '}' is expected"),
            }
        }
    }

    /// Visits the elements of a list; `visit` must take the value.
    pub(crate) fn elements(&mut self, mut visit: impl FnMut(&mut Self) -> Scan<()>) -> Scan<()> {
        if self.peek() != Some(b'[') {
            return self.fault("a list is expected");
        }
        self.at += 1;
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            visit(self)?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return self.fault("',' or ']' is expected"),
            }
        }
    }

    /// Takes a value of any type; its place, without space around it.
    #[inline]
    pub(crate) fn value(&mut self) -> Scan<Range<usize>> {
        let start = self.position();
        let (mut objects, mut depth) = (0_u128, 0_u32);
        'value: loop {
            match self.peek() {
                Some(b'"') => {
                    self.string()?;
                }
                Some(open @ (b'{' | b'[')) => {
                    self.at += 1;
                    let is_object = open == b'{';
                    if self.peek() == Some(if is_object { b'}' } else { b']' }) {
                        self.at += 1;
                    } else {
                        depth += 1;
                        if depth > DEPTH {
                            return self.fault("values are nested too deep");
                        }
                        objects = (objects << 1) | u128::from(is_object);
                        if is_object {
                            self.key()?;
                        }
                        continue 'value;
                    }
                }
                Some(b'-' | b'0'..=b'9') => self.number()?,
                Some(b't') => self.word(b"true")?,
                Some(b'f') => self.word(b"false")?,
                Some(b'n') => self.word(b"null")?,
                _ => return self.fault("a value is expected"),
            }
            loop {
                if depth == 0 {
                    return Ok(start..self.at);
                }
                let in_object = objects & 1 == 1;
                match self.peek() {
                    Some(b',') => {
                        self.at += 1;
                        if in_object {
                            self.key()?;
                        }
                        continue 'value;
                    }
                    Some(b'}') if in_object => self.at += 1,
                    Some(b']') if !in_object => self.at += 1,
                    _ => return self.fault("',' or the end of an object or list is expected"),
                }
                objects >>= 1;
                depth -= 1;
            }
        }
    }

    /// Takes a value as [`Scanner::value`] does, but of an object or list only
    /// finds the end, by its brackets: much faster. For what is checked when
    /// it is read.
    #[inline]
    pub(crate) fn pass(&mut self) -> Scan<Range<usize>> {
        if !matches!(self.peek(), Some(b'{' | b'[')) {
            return self.value();
        }
        let start = self.at;
        match blocks::length(&self.text[start..]) {
            Some(length) => {
                self.at = start + length;
                Ok(start..self.at)
            }
            None => self.fault("an object or list without an end"),
        }
    }

    /// Takes a key and its colon; the place of the text between the quotes.
    #[inline]
    fn key(&mut self) -> Scan<Range<usize>> {
        if self.peek() != Some(b'"') {
            return self.fault("a key is expected");
        }
        let (key, _) = self.string()?;
        if self.peek() != Some(b':') {
            return self.fault("':' is expected");
        }
        self.at += 1;
        Ok(key)
    }

    /// Takes a string that begins here; the place between the quotes, and
    /// whether it has escapes.
    #[inline]
    pub(crate) fn string(&mut self) -> Scan<(Range<usize>, bool)> {
        let start = self.at + 1;
        self.at = start;
        let mut escapes = false;
        loop {
            // Eight bytes at a time while none of them is special.
            while let Some(chunk) = self.text.get(self.at..).and_then(<[u8]>::first_chunk::<8>) {
                let special = special_bytes(u64::from_le_bytes(*chunk));
                if special == 0 {
                    self.at += 8;
                } else {
                    self.at += special.trailing_zeros() as usize / 8;
                    break;
                }
            }
            match self.text.get(self.at) {
                Some(b'"') => {
                    let end = self.at;
                    self.at += 1;
                    return Ok((start..end, escapes));
                }
                Some(b'\\') => {
                    escapes = true;
                    self.escape()?;
                }
                Some(0..0x20) => return self.fault("a control character in a string"),
                Some(_) => self.at += 1,
                None => return self.fault("a string without an end"),
            }
        }
    }

    fn escape(&mut self) -> Scan<()> {
        match self.text.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => {
                let digits = self.text.get(self.at + 2..self.at + 6);
                if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                    return self.fault("\\u without four hexadecimal digits");
                }
                self.at += 6;
            }
            _ => return self.fault("an unknown escape"),
        }
        Ok(())
    }

    fn digits(&mut self) -> Scan<()> {
        let start = self.at;
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        if self.at == start {
            self.fault("a digit is expected")
        } else {
            Ok(())
        }
    }

    fn number(&mut self) -> Scan<()> {
        if self.text.get(self.at) == Some(&b'-') {
            self.at += 1;
        }
        if self.text.get(self.at) == Some(&b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.text.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.text.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn word(&mut self, word: &'static [u8]) -> Scan<()> {
        if self
            .text
            .get(self.at..)
            .is_some_and(|rest| rest.starts_with(word))
        {
            self.at += word.len();
            Ok(())
        } else {
            self.fault("a value is expected")
        }
    }
}

/// The high bit of each byte that is a quote, a backslash or a control
/// character; exact up to and including the lowest such byte.
#[inline]
fn special_bytes(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let zero = |x: u64| x.wrapping_sub(ONES) & !x;
    let quote = zero(word ^ (ONES * b'"' as u64));
    let backslash = zero(word ^ (ONES * b'\\' as u64));
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (quote | backslash | control) & HIGH
}

/// The value at a path of object keys; `None` when it, or an object on the
/// way, is absent or `null`.
pub(crate) fn find<'a>(text: &'a [u8], path: &[&str]) -> Scan<Option<&'a [u8]>> {
    let mut here = text;
    for step in path {
        let mut scanner = Scanner::new(here);
        if scanner.peek() == Some(b'n') {
            return Ok(None);
        }
        let mut found = None;
        // The first match ends the search, and what is passed over is not
        // checked: only what is found will be parsed.
        let outcome = scanner.members(|scanner, key| {
            let place = scanner.pass()?;
            if key == step.as_bytes() {
                found = Some(place);
                return scanner.fault("");
            }
            Ok(())
        });
        match (found, outcome) {
            (Some(place), _) => here = &here[place],
            (None, Ok(())) => return Ok(None),
            (None, Err(fault)) => return Err(fault),
        }
    }
    Ok((here != b"null").then_some(here))
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn accepts(text: &str) -> bool {
        let mut scanner = Scanner::new(text.as_bytes());
        scanner.value().and_then(|_| scanner.end()).is_ok()
    }

    #[test]
    fn finds_by_path() {
        let text = br#" {"a" : {"b":[1, {"c":"}"}], "d": null }, "e":"x\"y"} "#;
        let found = |path: &[&str]| {
            find(text, path)
                .unwrap()
                .map(|v| String::from_utf8_lossy(v).into_owned())
        };
        assert_eq!(found(&["a", "b"]).unwrap(), r#"[1, {"c":"}"}]"#);
        assert_eq!(found(&["e"]).unwrap(), r#""x\"y""#);
        assert_eq!(found(&["a", "d"]), None);
        assert_eq!(found(&["a", "d", "f"]), None);
        assert_eq!(found(&["z"]), None);
        assert!(find(b"[1]", &["a"]).is_err());
    }

    #[test]
    fn depth_is_limited() {
        let deep = |n: usize| "[".repeat(n) + &"]".repeat(n);
        assert!(accepts(&deep(100)));
        // The innermost list is empty and does not count.
        assert!(accepts(&deep(121)));
        assert!(!accepts(&deep(122)));
        assert!(!accepts(&"{\"a\":".repeat(1_000_000)));
    }

    pub(crate) fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".*".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(".*", inner, 0..6).prop_map(|map| json!(map)),
            ]
        })
    }

    proptest! {
        #[test]
        fn agrees_with_serde_json_on_noise(text in r#"[\[\]{}",:\\ 0-9eE+.\-a-u\x00-\x1f\n]{0,24}"#) {
            prop_assert_eq!(accepts(&text), serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok());
        }

        #[test]
        fn accepts_all_json_and_no_part_of_an_object(value in any_json(), cut in any::<prop::sample::Index>()) {
            let text = json!({ "v": value }).to_string();
            prop_assert!(accepts(&text));
            prop_assert!(accepts(&serde_json::to_string_pretty(&json!([value])).unwrap()));
            let cut = cut.index(text.len());
            if text.is_char_boundary(cut) {
                prop_assert!(!accepts(&text[..cut]));
            }
        }

        #[test]
        fn agrees_with_serde_json_after_a_changed_byte(value in any_json(), at in any::<prop::sample::Index>(), byte in 0_u8..128) {
            let mut text = json!({ "v": value }).to_string().into_bytes();
            let at = at.index(text.len());
            text[at] = byte;
            if let Ok(text) = String::from_utf8(text) {
                prop_assert_eq!(accepts(&text), serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok());
            }
        }
    }
}
