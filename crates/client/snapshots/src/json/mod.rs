//! A scanner for JSON text. The scanner checks the syntax and finds the positions of values,
//! without building them. It does not check that strings are UTF-8; their readers do.
//!
//! A single pass over a list finds the positions of all items and of their most used parts. The
//! rest is parsed when it is read.

mod blocks;

use std::ops::Range;

/// A syntax error and its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyntaxError {
    at: usize,
    problem: &'static str,
}

impl std::fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at byte {}", self.problem, self.at)
    }
}

type Scan<T> = Result<T, SyntaxError>;

/// The maximum nesting depth, as in the API server of Kubernetes. The scanner does not
/// recurse, so that the depth uses no stack.
const MAX_DEPTH: usize = 10_000;

/// The stack of open values. One bit each: 1 for an object, 0 for an array. `word` has the
/// innermost values, at most 64.
#[derive(Default)]
struct Open {
    depth: usize,
    word: u64,
    outer: Vec<u64>,
}

impl Open {
    #[inline]
    fn push(&mut self, is_object: bool) {
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.outer.push(self.word);
        }
        self.word = (self.word << 1) | u64::from(is_object);
        self.depth += 1;
    }

    #[inline]
    fn pop(&mut self) {
        self.depth -= 1;
        self.word >>= 1;
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.word = self.outer.pop().unwrap_or_default();
        }
    }

    #[inline]
    fn in_object(&self) -> bool {
        self.word & 1 == 1
    }
}

/// A JSON text and the position of the next byte.
pub(crate) struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// Returns an error at the current position.
    pub(crate) fn error<T>(&self, problem: &'static str) -> Scan<T> {
        Err(SyntaxError {
            at: self.at,
            problem,
        })
    }

    /// Skips whitespace and returns the next byte without taking it.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        loop {
            match self.text.get(self.at).copied() {
                Some(b' ' | b'\n' | b'\t' | b'\r') => self.at += 1,
                other => return other,
            }
        }
    }

    /// Checks that only whitespace is left.
    pub(crate) fn end(&mut self) -> Scan<()> {
        if self.peek().is_none() {
            Ok(())
        } else {
            self.error("unexpected text after the value")
        }
    }

    /// Skips whitespace and returns the position.
    pub(crate) fn position(&mut self) -> usize {
        self.peek();
        self.at
    }

    /// Returns to an earlier position.
    pub(crate) fn back_to(&mut self, position: usize) {
        self.at = position;
    }

    /// The current position.
    pub(crate) fn offset(&self) -> usize {
        self.at
    }

    /// Calls `visit` with the key of each member of an object. `visit` must take the value.
    #[inline]
    pub(crate) fn members(
        &mut self,
        mut visit: impl FnMut(&mut Self, &'a [u8]) -> Scan<()>,
    ) -> Scan<()> {
        self.members_at(|scanner, key| visit(scanner, &scanner.text[key]))
    }

    /// Like [`Scanner::members`], but with the position of the key, without its quotes.
    #[inline]
    pub(crate) fn members_at(
        &mut self,
        mut visit: impl FnMut(&mut Self, Range<usize>) -> Scan<()>,
    ) -> Scan<()> {
        if self.peek() != Some(b'{') {
            return self.error("expected an object");
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
                _ => return self.error("expected ',' or '}'"),
            }
        }
    }

    /// Calls `visit` for each element of an array. `visit` must take the value.
    pub(crate) fn elements(&mut self, mut visit: impl FnMut(&mut Self) -> Scan<()>) -> Scan<()> {
        if self.peek() != Some(b'[') {
            return self.error("expected an array");
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
                _ => return self.error("expected ',' or ']'"),
            }
        }
    }

    /// Takes a value of any type. Returns its position, without whitespace around it.
    #[inline]
    pub(crate) fn value(&mut self) -> Scan<Range<usize>> {
        let start = self.position();
        let mut open = Open::default();
        'value: loop {
            match self.peek() {
                Some(b'"') => {
                    self.string()?;
                }
                Some(bracket @ (b'{' | b'[')) => {
                    self.at += 1;
                    let is_object = bracket == b'{';
                    if self.peek() == Some(if is_object { b'}' } else { b']' }) {
                        self.at += 1;
                    } else {
                        if open.depth == MAX_DEPTH {
                            return self.error("values are nested too deeply");
                        }
                        open.push(is_object);
                        if is_object {
                            self.key()?;
                        }
                        continue 'value;
                    }
                }
                Some(b'-' | b'0'..=b'9') => self.number()?,
                Some(b't') => self.literal(b"true")?,
                Some(b'f') => self.literal(b"false")?,
                Some(b'n') => self.literal(b"null")?,
                _ => return self.error("expected a value"),
            }
            loop {
                if open.depth == 0 {
                    return Ok(start..self.at);
                }
                let in_object = open.in_object();
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
                    _ => return self.error("expected ',' or the end of an object or array"),
                }
                open.pop();
            }
        }
    }

    /// Like [`Scanner::value`], but only counts the brackets of an object or array, which is much
    /// faster. For values that are checked when they are read.
    #[inline]
    pub(crate) fn skip(&mut self) -> Scan<Range<usize>> {
        if !matches!(self.peek(), Some(b'{' | b'[')) {
            return self.value();
        }
        let start = self.at;
        match blocks::length(&self.text[start..]) {
            Some(length) => {
                self.at = start + length;
                Ok(start..self.at)
            }
            None => self.error("unterminated object or array"),
        }
    }

    /// Takes a key and its colon. Returns the position of the key, without its quotes.
    #[inline]
    fn key(&mut self) -> Scan<Range<usize>> {
        if self.peek() != Some(b'"') {
            return self.error("expected a key");
        }
        let (key, _) = self.string()?;
        if self.peek() != Some(b':') {
            return self.error("expected ':'");
        }
        self.at += 1;
        Ok(key)
    }

    /// Takes the string that starts at the current position. Returns its position, without
    /// the quotes, and whether it has escapes.
    #[inline]
    pub(crate) fn string(&mut self) -> Scan<(Range<usize>, bool)> {
        let start = self.at + 1;
        self.at = start;
        let mut escapes = false;
        loop {
            // Skips eight bytes at a time if they contain no special byte.
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
                Some(0..0x20) => return self.error("control character in a string"),
                Some(_) => self.at += 1,
                None => return self.error("unterminated string"),
            }
        }
    }

    fn escape(&mut self) -> Scan<()> {
        match self.text.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => {
                let digits = self.text.get(self.at + 2..self.at + 6);
                if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                    return self.error("\\u without four hexadecimal digits");
                }
                self.at += 6;
            }
            _ => return self.error("invalid escape"),
        }
        Ok(())
    }

    fn digits(&mut self) -> Scan<()> {
        let start = self.at;
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        if self.at == start {
            self.error("expected a digit")
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

    fn literal(&mut self, literal: &'static [u8]) -> Scan<()> {
        if self
            .text
            .get(self.at..)
            .is_some_and(|rest| rest.starts_with(literal))
        {
            self.at += literal.len();
            Ok(())
        } else {
            self.error("expected a value")
        }
    }
}

/// Returns the high bit of each byte that is a quote, a backslash or a control character.
/// Only the lowest set bit is exact.
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

/// Returns the value at a path of object keys, `None` if it or one of its parents is absent
/// or `null`.
pub(crate) fn find<'a>(text: &'a [u8], path: &[&str]) -> Scan<Option<&'a [u8]>> {
    let mut value = text;
    for name in path {
        let mut scanner = Scanner::new(value);
        if scanner.peek() == Some(b'n') {
            return Ok(None);
        }
        let mut found = None;
        // An error stops the scan at the first match. Other values are skipped without
        // checks, because only the match is parsed.
        let outcome = scanner.members(|scanner, key| {
            let range = scanner.skip()?;
            if key == name.as_bytes() {
                found = Some(range);
                return scanner.error("stop");
            }
            Ok(())
        });
        match (found, outcome) {
            (Some(range), _) => value = &value[range],
            (None, Ok(())) => return Ok(None),
            (None, Err(error)) => return Err(error),
        }
    }
    Ok((value != b"null").then_some(value))
}

#[cfg(test)]
pub(crate) mod tests;
