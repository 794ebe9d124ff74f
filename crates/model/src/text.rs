//! What a text tells before it is parsed.

/// The most brackets that are open at a time in a text of YAML or JSON. Those
/// in quoted texts count, too: they are mostly balanced. Parsers of YAML take
/// a time that grows with the square of it, so it is looked at first.
///
/// ```
/// assert_eq!(longshore_model::text::nesting(b"{a: [1, [2]], b: []}"), 3);
/// ```
#[must_use]
pub fn nesting(text: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in text {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}
