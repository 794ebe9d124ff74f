//! Sets of indices in the status of an Indexed Job: `1,3-5`.

/// Returns a flag for each of `count` indices: true if the set contains it. Invalid parts are
/// ignored, because any client can write the status.
///
/// ```
/// use longshore_diagnosis::evidence::index_set;
/// assert_eq!(index_set("0,2-3", 5), [true, false, true, true, false]);
/// ```
#[must_use]
pub fn index_set(text: &str, count: usize) -> Vec<bool> {
    let mut has = vec![false; count];
    for part in text.split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (Ok(from), Ok(to)) = (from.parse::<usize>(), to.parse::<usize>()) else {
            continue;
        };
        let to = to.min(count.saturating_sub(1));
        let indices = has.get_mut(from..=to).into_iter().flatten();
        indices.for_each(|index| *index = true);
    }
    has
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_lists_of_indices_and_ranges() {
        let has = |text: &str| -> Vec<usize> {
            let has = index_set(text, 6);
            (0..6).filter(|index| has[*index]).collect()
        };
        assert_eq!(has("1,3-4"), [1, 3, 4]);
        assert_eq!(has("4-9999999"), [4, 5]);
        for invalid in ["", "x", "5-2", "9", "-", "1-", "99999999999999999999"] {
            assert_eq!(has(invalid), [0_usize; 0], "{invalid}");
        }
        assert!(index_set("0-3", 0).is_empty());
    }
}
