//! A scanner over JSON text: checks the grammar and finds where values begin
//! and end, without making values of them. Whether strings are UTF-8 is left
//! to who reads them.
//!
//! One pass over a list gives the place of every item and of the parts that
//! are asked for most; the rest is parsed when it is wanted.

mod blocks;

use std::ops::Range;

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

/// Objects and lists may be nested so deep, as in answers of a real API server.
/// Nothing here recurses, so this costs no stack.
const DEPTH: usize = 10_000;

/// Which of the values that are open are objects: a bit for each, those of the
/// innermost 64 at hand.
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

    /// Begins again at a position there was.
    pub(crate) fn back_to(&mut self, position: usize) {
        self.at = position;
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
                        if open.depth == DEPTH {
                            return self.fault("values are nested too deep");
                        }
                        open.push(is_object);
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
                    _ => return self.fault("',' or the end of an object or list is expected"),
                }
                open.pop();
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
pub(crate) mod tests;
