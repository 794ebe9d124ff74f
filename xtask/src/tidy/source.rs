//! Rust source as words and signs, without spaces.

use ra_ap_rustc_lexer::{FrontmatterAllowed, TokenKind, tokenize};

/// One word or sign.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind,
    pub(super) text: &'a str,
    /// Counted from 1.
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

/// Everything but spaces, comments included.
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

/// The same without comments.
pub(super) fn code(source: &str) -> Vec<Token<'_>> {
    let mut all = tokens(source);
    all.retain(|token| !token.is_comment());
    all
}
