//! "Did you mean ...?": the candidates that are closest to a mistyped word.

/// The candidate with the fewest edits to `word`, if at most a third of its letters differ. If
/// several candidates are equally close, returns the first.
///
/// ```
/// use longshore_launcher::suggest::nearest;
/// assert_eq!(nearest("pdos", ["nodes", "pods", "jobs"]), Some("pods"));
/// assert_eq!(nearest("anything", ["nodes", "pods", "jobs"]), None);
/// ```
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let distance = edits(word, candidate);
        let is_close = distance <= candidate.chars().count().div_ceil(3);
        if is_close && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// The maximum number of characters of a word that are compared, because the time is proportional
/// to the product of the lengths.
const LONGEST_WORD: usize = 100;

/// The number of letters to insert, delete, change or swap with their neighbour
/// (optimal string alignment).
fn edits(left: &str, right: &str) -> usize {
    let letters = |word: &str| word.chars().take(LONGEST_WORD).collect::<Vec<char>>();
    let (left, right) = (letters(left), letters(right));
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in right.iter().enumerate() {
            let change = last[j] + usize::from(a != b);
            let mut least = change.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == right[j - 1] && left[i - 1] == *b {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        for (left, right, count) in [
            ("", "", 0),
            ("abc", "abc", 0),
            ("abc", "", 3),
            ("", "ab", 2),
            ("kitten", "sitting", 3),
            ("lgos", "logs", 1),
            ("ä", "a", 1),
        ] {
            assert_eq!(edits(left, right), count, "{left} {right}");
        }
    }

    #[test]
    fn only_a_close_word_is_suggested() {
        assert_eq!(nearest("comand", ["count", "command"]), Some("command"));
        assert_eq!(nearest("xyz", ["count", "command"]), None);
        assert_eq!(nearest("a", []), None);
        let long = "x".repeat(1_000_000);
        assert_eq!(nearest(&long, ["count"]), None);
    }
}
