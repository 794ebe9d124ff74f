//! The tokens of Rust source code, without whitespace.

use ra_ap_rustc_lexer::{FrontmatterAllowed, TokenKind, tokenize};

/// A token.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind,
    pub(super) text: &'a str,
    /// The line number; the first line is 1.
    pub(super) line: usize,
}

impl Token<'_> {
    pub(super) fn is_comment(&self) -> bool {
        use TokenKind::{BlockComment, LineComment};
        matches!(self.kind, LineComment { .. } | BlockComment { .. })
    }

    pub(super) fn is_string(&self) -> bool {
        matches!(self.kind, TokenKind::Literal { .. }) && self.text.contains('"')
    }

    pub(super) fn is_identifier(&self) -> bool {
        matches!(self.kind, TokenKind::Ident | TokenKind::RawIdent)
    }
}

/// All tokens except whitespace; includes comments.
pub(super) fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let (mut rest, mut line) = (source, 1);
    for token in tokenize(source, FrontmatterAllowed::No) {
        let (text, after) = rest.split_at(token.len as usize);
        if token.kind != TokenKind::Whitespace {
            let kind = token.kind;
            found.push(Token { kind, text, line });
        }
        line += text.matches('\n').count();
        rest = after;
    }
    found
}

/// All tokens except whitespace and comments.
pub(super) fn code(source: &str) -> Vec<Token<'_>> {
    let mut all = tokens(source);
    all.retain(|token| !token.is_comment());
    all
}
