//! Properties of a text that can be determined without parsing it.

/// The maximum nesting depth of brackets in YAML or JSON text. Brackets in
/// quoted strings count as well; they are usually balanced. The run time of
/// YAML parsers grows with the square of this depth, so check it before
/// parsing.
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
