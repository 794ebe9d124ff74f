//! Escapes text that Kubernetes would expand.
//!
//! In `command`, `args` and the values of `env` a kubelet replaces `$(NAME)` by the value of the
//! variable, and `$$` by `$`.

/// The text that Kubernetes expands to exactly `text`.
///
/// A `$` is doubled where it would begin an expression: before `$`, before `(`, and before a
/// non-ASCII character, because kubelets consume only its first byte.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        escaped.push(c);
        let begins = |next: &char| matches!(next, '$' | '(') || !next.is_ascii();
        if c == '$' && rest.peek().is_some_and(begins) {
            escaped.push('$');
        }
    }
    escaped
}

/// The original of an escaped text.
pub(crate) fn unescape(escaped: &str) -> String {
    escaped.replace("$$", "$")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A port of Kubernetes' expansion (third_party/forked/golang/expansion/expand.go). Every name
    /// is known, so that all expressions are expanded.
    fn expand(input: &[u8]) -> Vec<u8> {
        let (mut out, mut checkpoint, mut cursor) = (Vec::new(), 0, 0);
        while cursor < input.len() {
            if input[cursor] == b'$' && cursor + 1 < input.len() {
                out.extend_from_slice(&input[checkpoint..cursor]);
                let (read, is_variable, advance) = read_name(&input[cursor + 1..]);
                if is_variable {
                    out.extend_from_slice(b"<expanded>");
                } else {
                    out.extend_from_slice(&read);
                }
                cursor += advance;
                checkpoint = cursor + 1;
            }
            cursor += 1;
        }
        out.extend_from_slice(input.get(checkpoint..).unwrap_or_default());
        out
    }

    fn read_name(input: &[u8]) -> (Vec<u8>, bool, usize) {
        match input[0] {
            b'$' => (b"$".to_vec(), false, 1),
            b'(' => match input.iter().position(|&byte| byte == b')') {
                Some(end) => (input[1..end].to_vec(), true, end + 1),
                None => (b"$(".to_vec(), false, 1),
            },
            // Go's `string(byte)`: the code point of this number, in UTF-8.
            byte => (format!("${}", char::from(byte)).into_bytes(), false, 1),
        }
    }

    #[test]
    fn only_expressions_are_escaped() {
        for (text, escaped) in [
            ("echo $HOME", "echo $HOME"),
            ("echo pid $$", "echo pid $$$"),
            ("$(HOME)", "$$(HOME)"),
            ("$é", "$$é"),
            ("a$", "a$"),
        ] {
            assert_eq!(escape(text), escaped);
            assert_eq!(expand(escaped.as_bytes()), text.as_bytes(), "{text}");
        }
        // Without escaping, these texts would change.
        for text in ["$$", "$(A)", "$é"] {
            assert_ne!(expand(text.as_bytes()), text.as_bytes(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn escaped_text_round_trips(text in "[$()A\\\\é\n ]{0,24}|\\PC{0,40}") {
            let arrived = expand(escape(&text).as_bytes());
            prop_assert_eq!(String::from_utf8(arrived).ok(), Some(text.clone()));
            prop_assert_eq!(unescape(&escape(&text)), text);
        }
    }
}
