//! Values with their positions in `longshore.toml`.

use std::{borrow::Borrow, cmp::Ordering, collections::BTreeMap, fmt, ops::Deref};

use serde::{Deserialize, Deserializer};

/// A value and its position in its file.
///
/// The position is only for error messages: comparisons ignore it.
///
/// ```
/// use longshore_launcher::config::Text;
///
/// let namespace = Text::from("team-a");
/// assert_eq!(namespace.len(), 6);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Located<T> {
    value: T,
    /// The offset in the text of the file, in bytes. `None` if the value is not from a file.
    offset: Option<usize>,
}

/// A text of `longshore.toml` or of the command line.
pub type Text = Located<String>;

impl<T> Located<T> {
    /// The value without its position.
    pub fn into_inner(self) -> T {
        self.value
    }

    /// Another value at the same position.
    pub(super) fn replaced<U>(&self, value: U) -> Located<U> {
        Located {
            value,
            offset: self.offset,
        }
    }

    pub(super) fn offset(&self) -> Option<usize> {
        self.offset
    }
}

impl<T> From<T> for Located<T> {
    fn from(value: T) -> Self {
        Self {
            value,
            offset: None,
        }
    }
}

impl From<&str> for Text {
    fn from(value: &str) -> Self {
        value.to_owned().into()
    }
}

impl<T> Deref for Located<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        &self.value
    }
}

impl<T: fmt::Display> fmt::Display for Located<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

impl<T: PartialEq> PartialEq for Located<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T: Eq> Eq for Located<T> {}

impl<T: PartialOrd> PartialOrd for Located<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.value.partial_cmp(&other.value)
    }
}

impl<T: Ord> Ord for Located<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.value.cmp(&other.value)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Located<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = toml::Spanned::deserialize(deserializer)?;
        let offset = Some(spanned.span().start);
        let value = spanned.into_inner();
        Ok(Self { value, offset })
    }
}

/// Line and column, from 1, of an offset in a text.
pub(super) fn line_and_column(text: &str, offset: usize) -> Option<(usize, usize)> {
    let before = text.get(..offset)?;
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next()?.chars().count() + 1;
    Some((line, column))
}

/// Reads a table whose keys have positions.
pub(super) fn entries<'de, V, D>(deserializer: D) -> Result<Vec<(Text, V)>, D::Error>
where
    V: Deserialize<'de>,
    D: Deserializer<'de>,
{
    let table = BTreeMap::deserialize(deserializer)?;
    Ok(table.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_are_counted_from_1() {
        assert_eq!(line_and_column("ä = 1", 0), Some((1, 1)));
        assert_eq!(line_and_column("ä = 1", 5), Some((1, 5)));
        assert_eq!(line_and_column("a\n\nb = 1", 3), Some((3, 1)));
        assert_eq!(line_and_column("ä", 1), None, "inside a character");
        assert_eq!(line_and_column("a", 2), None);
    }

    #[test]
    fn comparisons_ignore_the_position() {
        let here = Text::from("a");
        let there = Located {
            value: "a".to_owned(),
            offset: Some(7),
        };
        assert_eq!(here, there);
        assert_eq!(there.replaced(1).offset(), Some(7));
    }
}
