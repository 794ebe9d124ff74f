//! Splits the source of an expression into tokens.

use std::iter::Peekable;

use crate::source::Problem;

/// A token with its position in characters.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token {
    pub(crate) at: usize,
    pub(crate) kind: TokenKind,
    /// The token's source text, for messages.
    pub(crate) text: String,
}

/// The kind of a token.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TokenKind {
    Ident(String),
    Int(String),
    Uint(String),
    Double(String),
    String(String),
    Bytes(Vec<u8>),
    /// An operator or a delimiter.
    Symbol(&'static str),
    End,
}

const SYMBOLS: [&str; 25] = [
    "&&", "||", "==", "!=", "<=", ">=", "[", "]", "{", "}", "(", ")", ".", ",", "-", "+", "*", "/",
    "%", "?", ":", "!", "<", ">", "`",
];

struct Lexer<'s> {
    chars: Peekable<std::str::CharIndices<'s>>,
    source: &'s str,
    at: usize,
}

/// Splits `source` into tokens; the last is [`TokenKind::End`]. Characters that do not form a token
/// are skipped and reported.
pub(crate) fn tokens(source: &str) -> (Vec<Token>, Vec<Problem>) {
    let mut lexer = Lexer {
        chars: source.char_indices().peekable(),
        source,
        at: 0,
    };
    let (mut tokens, mut problems) = (Vec::new(), Vec::new());
    loop {
        lexer.skip_blanks();
        let (at, from) = (lexer.at, lexer.offset());
        let kind = match lexer.token() {
            Ok(kind) => kind,
            Err(problem) => {
                problems.push(problem);
                continue;
            }
        };
        let text = match kind {
            TokenKind::End => "<EOF>".to_owned(),
            _ => source[from..lexer.offset()].to_owned(),
        };
        let ends = kind == TokenKind::End;
        tokens.push(Token { at, kind, text });
        if ends {
            return (tokens, problems);
        }
    }
}

impl Lexer<'_> {
    fn peek(&mut self) -> Option<char> {
        self.chars.peek().map(|(_, c)| *c)
    }

    fn offset(&mut self) -> usize {
        self.chars.peek().map_or(self.source.len(), |(at, _)| *at)
    }

    fn rest(&mut self) -> &str {
        let offset = self.offset();
        &self.source[offset..]
    }

    fn next(&mut self) -> Option<char> {
        let (_, c) = self.chars.next()?;
        self.at += 1;
        Some(c)
    }

    fn skip(&mut self, count: usize) {
        for _ in 0..count {
            self.next();
        }
    }

    fn skip_blanks(&mut self) {
        while let Some(c) = self.peek() {
            match c {
                ' ' | '\t' | '\n' | '\r' | '\x0c' => {
                    self.next();
                }
                '/' if self.rest().starts_with("//") => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.next();
                    }
                }
                _ => return,
            }
        }
    }

    fn take_while(&mut self, fits: impl Fn(char) -> bool) -> String {
        let mut text = String::new();
        while let Some(c) = self.peek().filter(|c| fits(*c)) {
            text.push(c);
            self.next();
        }
        text
    }

    fn token(&mut self) -> Result<TokenKind, Problem> {
        let Some(c) = self.peek() else {
            return Ok(TokenKind::End);
        };
        if let Some(found) = self.string()? {
            return Ok(found);
        }
        if c.is_ascii_alphabetic() || c == '_' {
            return Ok(TokenKind::Ident(
                self.take_while(|c| c.is_ascii_alphanumeric() || c == '_'),
            ));
        }
        let after_dot = self.rest().as_bytes().get(1).copied().unwrap_or_default();
        if c.is_ascii_digit() || (c == '.' && after_dot.is_ascii_digit()) {
            return Ok(self.number());
        }
        let rest = self.rest();
        match SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            Some(symbol) => {
                self.skip(symbol.len());
                Ok(TokenKind::Symbol(symbol))
            }
            None => {
                let at = self.at;
                self.next();
                let mut text = c.to_string();
                // These begin operators of two characters.
                if matches!(c, '=' | '&' | '|') {
                    text.extend(self.next());
                }
                Err(self.unrecognized(at, text))
            }
        }
    }

    fn unrecognized(&self, at: usize, text: String) -> Problem {
        Problem {
            at,
            message: format!("Syntax error: token recognition error at: '{text}'"),
        }
    }

    fn unterminated(&self, start: usize) -> Problem {
        let length = self.at.saturating_sub(start);
        let text = self.source.chars().skip(start).take(length).collect();
        self.unrecognized(start, text)
    }

    fn number(&mut self) -> TokenKind {
        let digits = |lexer: &mut Self| lexer.take_while(|c| c.is_ascii_digit());
        let lower = self
            .rest()
            .get(..2)
            .unwrap_or_default()
            .to_ascii_lowercase();
        let mut text;
        let mut is_double = false;
        if lower == "0x" {
            self.skip(2);
            text = format!("0x{}", self.take_while(|c| c.is_ascii_hexdigit()));
        } else {
            text = digits(self);
            let next = self.rest().as_bytes().get(1).copied().unwrap_or_default();
            if self.peek() == Some('.') && next.is_ascii_digit() {
                self.next();
                text = format!("{text}.{}", digits(self));
                is_double = true;
            }
            let bytes = self.rest().as_bytes();
            let sign = usize::from(matches!(bytes.get(1), Some(b'+' | b'-')));
            if matches!(bytes.first(), Some(b'e' | b'E'))
                && bytes.get(1 + sign).is_some_and(u8::is_ascii_digit)
            {
                self.next();
                text.push('e');
                if sign == 1 {
                    text.extend(self.next());
                }
                text.push_str(&digits(self));
                is_double = true;
            }
        }
        if is_double {
            TokenKind::Double(text)
        } else if matches!(self.peek(), Some('u' | 'U')) {
            self.next();
            TokenKind::Uint(text)
        } else {
            TokenKind::Int(text)
        }
    }

    /// A string or bytes literal, if one starts here.
    fn string(&mut self) -> Result<Option<TokenKind>, Problem> {
        let start = self.at;
        let rest = self.rest();
        let prefix: String = rest
            .chars()
            .take_while(|c| matches!(c, 'r' | 'R' | 'b' | 'B'))
            .take(3)
            .collect();
        let lower = prefix.to_ascii_lowercase();
        let Some(quote) = rest[prefix.len()..].chars().next() else {
            return Ok(None);
        };
        if !matches!(quote, '"' | '\'') || !matches!(&*lower, "" | "r" | "b" | "rb" | "br") {
            return Ok(None);
        }
        let (raw, bytes) = (lower.contains('r'), lower.contains('b'));
        let triple = quote.to_string().repeat(3);
        let is_long = rest[prefix.len()..].starts_with(&triple);
        self.skip(prefix.len() + if is_long { 3 } else { 1 });
        let mut out = Contents {
            bytes: Vec::new(),
            is_bytes: bytes,
        };
        loop {
            if is_long && self.rest().starts_with(&triple) {
                self.skip(3);
                break;
            }
            match self.next() {
                Some(c) if c == quote && !is_long => break,
                Some('\\') if !raw => self.escape(&mut out)?,
                // A backslash does not end a raw string, and keeps its quote.
                Some('\n' | '\r') if !is_long => return Err(self.unterminated(start)),
                Some(c) => out.push(c),
                None => return Err(self.unterminated(start)),
            }
        }
        Ok(Some(if bytes {
            TokenKind::Bytes(out.bytes)
        } else {
            TokenKind::String(String::from_utf8_lossy(&out.bytes).into_owned())
        }))
    }

    fn escape(&mut self, out: &mut Contents) -> Result<(), Problem> {
        let at = self.at;
        let bad = |text: String| Problem {
            at,
            message: format!("Syntax error: token recognition error at: '{text}'"),
        };
        let Some(c) = self.next() else {
            return Err(bad("\\".to_owned()));
        };
        let plain = match c {
            'a' => '\x07',
            'b' => '\x08',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0b',
            '\\' | '\'' | '"' | '`' | '?' => c,
            'x' | 'X' | 'u' | 'U' | '0'..='3' => {
                let (digits, radix) = match c {
                    'x' | 'X' => (2, 16),
                    'u' if !out.is_bytes => (4, 16),
                    'U' if !out.is_bytes => (8, 16),
                    '0'..='3' => (2, 8),
                    _ => return Err(bad(format!("\\{c}"))),
                };
                let mut text = String::new();
                if radix == 8 {
                    text.push(c);
                }
                for _ in 0..digits {
                    text.extend(self.next());
                }
                let number =
                    u32::from_str_radix(&text, radix).map_err(|_| bad(format!("\\{c}{text}")))?;
                return out
                    .push_number(number)
                    .ok_or_else(|| bad(format!("\\{c}{text}")));
            }
            _ => return Err(bad(format!("\\{c}"))),
        };
        out.push(plain);
        Ok(())
    }
}

struct Contents {
    bytes: Vec<u8>,
    is_bytes: bool,
}

impl Contents {
    fn push(&mut self, c: char) {
        self.bytes
            .extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }

    /// Adds the character with the given number, or the byte in a bytes literal.
    fn push_number(&mut self, number: u32) -> Option<()> {
        if self.is_bytes {
            self.bytes.push(u8::try_from(number).ok()?);
        } else {
            self.push(char::from_u32(number)?);
        }
        Some(())
    }
}
