//! The order in which sources of options override each other.

/// The same options from several sources. Each source overrides those before it.
pub(super) struct Layers<'a, T, const N: usize>(pub(super) [&'a T; N]);

impl<T, const N: usize> Clone for Layers<'_, T, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, const N: usize> Copy for Layers<'_, T, N> {}

impl<'a, T, const N: usize> Layers<'a, T, N> {
    /// The value of an option in the last source that has one.
    pub(super) fn value<V>(self, option: impl Fn(&'a T) -> &'a Option<V>) -> Option<&'a V> {
        let mut sources = self.0.iter().rev();
        sources.find_map(|source| option(source).as_ref())
    }

    /// The entries of a list or table from all sources, in order, so that the last entry of a key
    /// applies.
    pub(super) fn entries<V: 'a>(
        self,
        option: impl Fn(&'a T) -> &'a Vec<V>,
    ) -> impl Iterator<Item = &'a V> {
        self.0.into_iter().flat_map(option)
    }

    /// Returns true if any source sets a switch.
    pub(super) fn any(self, option: impl Fn(&'a T) -> bool) -> bool {
        self.0.into_iter().any(option)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_sources_override_earlier_ones_and_extend_lists() {
        let (file, role, flags) = (
            (Some(1), vec!['a', 'b'], false),
            (Some(2), vec!['c'], true),
            (None, vec!['d'], false),
        );
        let layers = Layers([&file, &role, &flags]);
        assert_eq!(layers.value(|source| &source.0), Some(&2));
        let entries: String = layers.entries(|source| &source.1).collect();
        assert_eq!(entries, "abcd");
        assert!(layers.any(|source| source.2));
        assert!(!Layers([&file, &flags]).any(|source| source.2));
    }
}
