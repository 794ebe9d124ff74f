//! Sets of completion indexes, in the text format of a Job's status: `0,2-4`.

use std::{fmt, str::FromStr};

/// A set of indexes, stored as sorted ranges that are not adjacent.
///
/// The text has the format of `.status.completedIndexes`: three or more consecutive indexes form a
/// range with a hyphen, and commas separate the rest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct IndexSet {
    /// The first and last index of each range.
    ranges: Vec<(u32, u32)>,
}

/// The error for a text that is not a set of indexes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid list of indexes {text:?}: use increasing numbers and ranges, for example 0,2-4")]
pub(crate) struct IndexSetError {
    text: String,
}

impl IndexSet {
    /// Returns true if `index` is in the set.
    pub(crate) fn contains(&self, index: u32) -> bool {
        let after = self.ranges.partition_point(|(first, _)| *first <= index);
        after > 0 && self.ranges[after - 1].1 >= index
    }

    /// Adds `index`. Returns `false` if it was already in the set.
    pub(crate) fn insert(&mut self, index: u32) -> bool {
        if self.contains(index) {
            return false;
        }
        let at = self.ranges.partition_point(|(first, _)| *first < index);
        let joins_left = at > 0 && self.ranges[at - 1].1.checked_add(1) == Some(index);
        let joins_right = self
            .ranges
            .get(at)
            .is_some_and(|(first, _)| index.checked_add(1) == Some(*first));
        match (joins_left, joins_right) {
            (true, true) => {
                self.ranges[at - 1].1 = self.ranges[at].1;
                self.ranges.remove(at);
            }
            (true, false) => self.ranges[at - 1].1 = index,
            (false, true) => self.ranges[at].0 = index,
            (false, false) => self.ranges.insert(at, (index, index)),
        }
        true
    }

    /// Returns the number of indexes.
    pub(crate) fn len(&self) -> u64 {
        self.ranges
            .iter()
            .map(|(first, last)| u64::from(last - first) + 1)
            .sum()
    }

    /// Returns the number of indexes in both sets.
    pub(crate) fn common(&self, other: &Self) -> u64 {
        let (mut ours, mut theirs) = (self.ranges.iter(), other.ranges.iter());
        let (mut a, mut b) = (ours.next(), theirs.next());
        let mut common = 0;
        while let (Some((a_first, a_last)), Some((b_first, b_last))) = (a, b) {
            let (first, last) = (a_first.max(b_first), a_last.min(b_last));
            if first <= last {
                common += u64::from(last - first) + 1;
            }
            if a_last < b_last {
                a = ours.next();
            } else {
                b = theirs.next();
            }
        }
        common
    }

    /// Returns the first index from `index` that is not in the set.
    pub(crate) fn next_missing(&self, index: u32) -> Option<u32> {
        let after = self.ranges.partition_point(|(first, _)| *first <= index);
        match after.checked_sub(1).map(|at| self.ranges[at]) {
            // Ranges are not adjacent, so there is a gap after each.
            Some((_, last)) if last >= index => last.checked_add(1),
            _ => Some(index),
        }
    }

    /// Returns the set without the indexes from `end`.
    pub(crate) fn below(mut self, end: u32) -> Self {
        self.ranges.retain(|(first, _)| *first < end);
        if let Some((_, last)) = self.ranges.last_mut()
            && *last >= end
        {
            *last = end - 1;
        }
        self
    }
}

impl fmt::Display for IndexSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (first, last)) in self.ranges.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            match last - first {
                0 => write!(f, "{first}")?,
                1 => write!(f, "{first},{last}")?,
                _ => write!(f, "{first}-{last}")?,
            }
        }
        Ok(())
    }
}

impl FromStr for IndexSet {
    type Err = IndexSetError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || IndexSetError {
            text: text.to_owned(),
        };
        let number = |digits: &str| {
            let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            if plain {
                digits.parse::<u32>().map_err(|_| error())
            } else {
                Err(error())
            }
        };
        let mut set = Self::default();
        if text.is_empty() {
            return Ok(set);
        }
        for part in text.split(',') {
            let (first, last) = match part.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(part)?, number(part)?),
            };
            if last < first {
                return Err(error());
            }
            match set.ranges.last_mut() {
                Some((_, end)) if first <= *end => return Err(error()),
                Some((_, end)) if first - *end == 1 => *end = last,
                _ => set.ranges.push((first, last)),
            }
        }
        Ok(set)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn set(indexes: impl IntoIterator<Item = u32>) -> IndexSet {
        let mut set = IndexSet::default();
        for index in indexes {
            set.insert(index);
        }
        set
    }

    #[test]
    fn three_or_more_consecutive_indexes_form_a_range() {
        let table: &[(&[u32], &str)] = &[
            (&[], ""),
            (&[0], "0"),
            (&[0, 1], "0,1"),
            (&[0, 1, 2], "0-2"),
            (&[0, 2, 3, 4], "0,2-4"),
            (&[7, 5, 4, 3, 1], "1,3-5,7"),
            (&[u32::MAX, u32::MAX - 1], "4294967294,4294967295"),
        ];
        for (indexes, text) in table {
            assert_eq!(set(indexes.iter().copied()).to_string(), *text);
        }
    }

    #[test]
    fn invalid_sets_are_rejected() {
        for text in [
            "a",
            "1,",
            ",1",
            "2,1",
            "1,1",
            "3-2",
            "1-",
            "-1",
            "+1",
            "1-2-3",
            "99999999999",
        ] {
            assert!(text.parse::<IndexSet>().is_err(), "{text}");
        }
    }

    #[test]
    fn indexes_from_the_end_are_removed() {
        let all: IndexSet = "0,2-4,9".parse().unwrap();
        assert_eq!(all.clone().below(10).to_string(), "0,2-4,9");
        assert_eq!(all.clone().below(4).to_string(), "0,2,3");
        assert_eq!(all.clone().below(2).to_string(), "0");
        assert_eq!(all.below(0).to_string(), "");
        let whole: IndexSet = "0-4294967295".parse().unwrap();
        assert_eq!(whole.next_missing(7), None);
    }

    proptest! {
        #[test]
        fn the_set_behaves_like_a_btree_set(
            indexes in prop::collection::vec(0u32..60, 0..60),
            others in prop::collection::vec(0u32..60, 0..60),
        ) {
            let ours = set(indexes.iter().copied());
            let plain: BTreeSet<u32> = indexes.iter().copied().collect();
            let other_plain: BTreeSet<u32> = others.iter().copied().collect();
            prop_assert_eq!(ours.len(), plain.len() as u64);
            for index in 0..61 {
                prop_assert_eq!(ours.contains(index), plain.contains(&index));
                let missing = (index..).find(|index| !plain.contains(index));
                prop_assert_eq!(ours.next_missing(index), missing);
            }
            prop_assert_eq!(
                ours.common(&set(others)),
                plain.intersection(&other_plain).count() as u64
            );
            prop_assert_eq!(ours.to_string().parse::<IndexSet>().unwrap(), ours);
        }

        #[test]
        fn parsing_never_panics(text in "[0-9,\\-a]{0,12}") {
            if let Ok(parsed) = text.parse::<IndexSet>() {
                let again: IndexSet = parsed.to_string().parse().unwrap();
                prop_assert_eq!(again, parsed);
            }
        }
    }
}
