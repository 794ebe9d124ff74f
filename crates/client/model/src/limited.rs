//! Lists of problems that are found per item of an input. They keep the first problems and count
//! the others, so that a short input cannot cause a long response.

use crate::StatusCause;

/// Maximum number of problems that a list keeps.
pub const MAX_PROBLEMS: usize = 1000;
/// Maximum size of the texts that a list keeps, in bytes.
pub const MAX_PROBLEM_BYTES: usize = 256 << 10;
/// Maximum size of a single text, in bytes.
pub const MAX_TEXT_BYTES: usize = 16 << 10;

/// The causes of an invalid object.
pub type CauseList = Limited<StatusCause>;
/// Messages, for example warnings.
pub type MessageList = Limited<String>;

/// A problem that a list can hold.
pub trait Problem {
    /// Shortens texts that are too long.
    fn shorten(&mut self);
    /// The size of the texts.
    fn bytes(&self) -> usize;
    /// Returns a text with the number of problems that are not listed.
    fn omitted(count: usize) -> Self;
}

impl Problem for StatusCause {
    fn shorten(&mut self) {
        shorten(&mut self.message, MAX_TEXT_BYTES);
        shorten(&mut self.field, MAX_TEXT_BYTES);
    }

    fn bytes(&self) -> usize {
        self.message.len() + self.field.len()
    }

    fn omitted(count: usize) -> Self {
        Self {
            message: format!("and {count} more that are not listed"),
            ..Self::default()
        }
    }
}

impl Problem for String {
    fn shorten(&mut self) {
        shorten(self, MAX_TEXT_BYTES);
    }

    fn bytes(&self) -> usize {
        self.len()
    }

    fn omitted(count: usize) -> Self {
        format!("and {count} more that are not listed")
    }
}

/// Shortens a text that has more than `limit` bytes, and marks its end.
///
/// ```
/// let mut text = "a".repeat(9);
/// longshore_model::shorten(&mut text, 8);
/// assert_eq!(text, "aaaaa…");
/// ```
pub fn shorten(text: &mut String, limit: usize) {
    const MARK: &str = "…";
    if text.len() > limit {
        text.truncate(text.floor_char_boundary(limit.saturating_sub(MARK.len())));
        text.push_str(MARK);
    }
}

/// A list of problems with a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limited<T> {
    kept: Vec<T>,
    bytes: usize,
    omitted: usize,
}

impl<T> Default for Limited<T> {
    fn default() -> Self {
        Self {
            kept: Vec::new(),
            bytes: 0,
            omitted: 0,
        }
    }
}

impl<T: Problem> Limited<T> {
    /// An empty list.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a problem, or counts it if the list is full.
    pub fn push(&mut self, mut problem: T) {
        if self.is_full() {
            self.omitted += 1;
            return;
        }
        problem.shorten();
        self.bytes += problem.bytes();
        self.kept.push(problem);
    }

    /// Returns true if further problems are only counted. Their texts need not be made.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.kept.len() >= MAX_PROBLEMS || self.bytes >= MAX_PROBLEM_BYTES
    }

    /// Returns the problems. If some were dropped, the last one contains their number.
    #[must_use]
    pub fn into_vec(mut self) -> Vec<T> {
        if self.omitted > 0 {
            self.kept.push(T::omitted(self.omitted));
        }
        self.kept
    }

    /// Adds the problems of another list.
    pub fn merge(&mut self, other: Self) {
        self.extend(other.kept);
        self.omitted += other.omitted;
    }

    /// Removes the problems for which a condition does not hold.
    pub fn retain(&mut self, condition: impl FnMut(&T) -> bool) {
        self.kept.retain(condition);
    }
}

impl<T: Problem> Extend<T> for Limited<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, problems: I) {
        for problem in problems {
            self.push(problem);
        }
    }
}

impl<T: Problem> FromIterator<T> for Limited<T> {
    fn from_iter<I: IntoIterator<Item = T>>(problems: I) -> Self {
        let mut list = Self::new();
        list.extend(problems);
        list
    }
}

impl<T: Problem> IntoIterator for Limited<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.into_vec().into_iter()
    }
}

impl<T> std::ops::Deref for Limited<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.kept
    }
}

impl<T> std::ops::DerefMut for Limited<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_problems_are_kept_and_the_others_counted() {
        let mut list = MessageList::new();
        list.extend((0..MAX_PROBLEMS + 5).map(|number| number.to_string()));
        let all = list.into_vec();
        assert_eq!(all.len(), MAX_PROBLEMS + 1);
        assert_eq!(all[0], "0");
        assert_eq!(all[MAX_PROBLEMS], "and 5 more that are not listed");
    }

    #[test]
    fn the_texts_have_a_limit() {
        let mut list = CauseList::new();
        for _ in 0..100 {
            list.push(StatusCause {
                message: "ä".repeat(1 << 20),
                ..StatusCause::default()
            });
        }
        let all = list.into_vec();
        let bytes: usize = all.iter().map(|cause| cause.message.len()).sum();
        // The last text contains the number of problems.
        let most = MAX_PROBLEM_BYTES + MAX_TEXT_BYTES + 100;
        assert!(bytes <= most, "{bytes}");
        assert!(all[0].message.ends_with('…') && all[0].message.len() <= MAX_TEXT_BYTES);
    }

    #[test]
    fn short_lists_are_complete() {
        let list: MessageList = ["a".to_owned(), "b".to_owned()].into_iter().collect();
        assert_eq!(list.into_vec(), ["a", "b"]);
    }
}
