//! A set of fields of an object, represented as a tree. Managers own such sets.

use std::cmp::Ordering;

use longshore_schema::OwnedType;

use super::element::{self, Element};

/// The fields at and below one path of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    /// True if the path itself is in the set.
    pub(super) owned: bool,
    /// The non-empty sets below the path, sorted by element.
    pub(super) inside: Vec<(Element, FieldSet)>,
}

impl FieldSet {
    /// A set of only the path itself.
    pub(super) fn leaf() -> Self {
        Self {
            owned: true,
            inside: Vec::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.owned && self.inside.is_empty()
    }

    /// The number of fields.
    pub(crate) fn len(&self) -> usize {
        usize::from(self.owned) + self.inside.iter().map(|(_, set)| set.len()).sum::<usize>()
    }

    /// Adds the set below an element. Call [`FieldSet::sort`] afterwards.
    pub(super) fn push(&mut self, element: Element, set: Self) {
        if !set.is_empty() {
            self.inside.push((element, set));
        }
    }

    /// Sorts the pushed elements.
    pub(super) fn sort(&mut self) {
        if !self.inside.is_sorted_by(|(a, _), (b, _)| a < b) {
            self.inside.sort_by(|(a, _), (b, _)| a.cmp(b));
            self.inside.dedup_by(|(a, twin), (b, set)| {
                a == b && {
                    *set = std::mem::take(set).union(std::mem::take(twin));
                    true
                }
            });
        }
    }

    /// The set with one more field.
    #[cfg(test)]
    pub(super) fn with(mut self, path: &[&str]) -> Self {
        match path {
            [] => self.owned = true,
            [first, rest @ ..] => {
                let at = self
                    .inside
                    .partition_point(|(element, _)| **element < **first);
                if self.inside.get(at).is_none_or(|(e, _)| **e != **first) {
                    self.inside.insert(at, ((*first).into(), Self::default()));
                }
                let (_, set) = &mut self.inside[at];
                *set = std::mem::take(set).with(rest);
            }
        }
        self
    }

    /// The set below an element.
    pub(super) fn get(&self, element: &str) -> Option<&Self> {
        let at = self
            .inside
            .binary_search_by(|(e, _)| (**e).cmp(element))
            .ok()?;
        Some(&self.inside[at].1)
    }

    /// The fields in either set.
    pub(crate) fn union(mut self, other: Self) -> Self {
        if other.inside.is_empty() {
            self.owned |= other.owned;
            return self;
        }
        let mut inside = Vec::with_capacity(self.inside.len().max(other.inside.len()));
        let mut theirs = other.inside.into_iter().peekable();
        for (element, set) in self.inside {
            while let Some(before) = theirs.next_if(|(e, _)| *e < element) {
                inside.push(before);
            }
            match theirs.next_if(|(e, _)| *e == element) {
                Some((_, twin)) => inside.push((element, set.union(twin))),
                None => inside.push((element, set)),
            }
        }
        inside.extend(theirs);
        Self {
            owned: self.owned | other.owned,
            inside,
        }
    }

    /// The fields in both sets.
    pub(crate) fn intersection(&self, other: &Self) -> Self {
        let mut both = Self {
            owned: self.owned && other.owned,
            inside: Vec::new(),
        };
        pairs(&self.inside, &other.inside, |element, ours, theirs| {
            if let Some(theirs) = theirs {
                both.push(element.clone(), ours.intersection(theirs));
            }
        });
        both
    }

    /// The fields of this set that are not in the other.
    pub(crate) fn difference(&self, other: &Self) -> Self {
        let mut rest = Self {
            owned: self.owned && !other.owned,
            inside: Vec::new(),
        };
        pairs(&self.inside, &other.inside, |element, ours, theirs| {
            let kept = theirs.map_or_else(|| ours.clone(), |theirs| ours.difference(theirs));
            rest.push(element.clone(), kept);
        });
        rest
    }

    /// Returns true if a field is in the set.
    #[cfg(test)]
    pub(crate) fn has(&self, path: &[&str]) -> bool {
        match path {
            [] => self.owned,
            [first, rest @ ..] => self.get(first).is_some_and(|set| set.has(rest)),
        }
    }

    /// Adds every field that the type declares and that has members in the set.
    pub(super) fn with_named(&self, at: OwnedType<'_>) -> Self {
        let inside = self.inside.iter().map(|(element, set)| {
            let name = element::field_name(element);
            let below = match name {
                Some(name) => at.field(name).unwrap_or(OwnedType::Any),
                None => at.items(),
            };
            let mut set = set.with_named(below);
            set.owned |= name.is_some_and(|name| at.names_field(name)) && !set.inside.is_empty();
            (element.clone(), set)
        });
        Self {
            owned: self.owned,
            inside: inside.collect(),
        }
    }

    /// Formats each field as error messages do. At every level, leaves come
    /// first.
    pub(crate) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect_paths(&mut String::new(), &mut paths);
        paths
    }

    fn collect_paths(&self, prefix: &mut String, paths: &mut Vec<String>) {
        let length = prefix.len();
        for (element, _) in self.inside.iter().filter(|(_, set)| set.owned) {
            element::format_into(element, prefix);
            paths.push(prefix.clone());
            prefix.truncate(length);
        }
        for (element, set) in self.inside.iter().filter(|(_, set)| !set.inside.is_empty()) {
            element::format_into(element, prefix);
            set.collect_paths(prefix, paths);
            prefix.truncate(length);
        }
    }
}

/// Calls `visit` with every element of `ours` and its counterpart in `theirs`.
fn pairs<'a>(
    ours: &'a [(Element, FieldSet)],
    theirs: &'a [(Element, FieldSet)],
    mut visit: impl FnMut(&'a Element, &'a FieldSet, Option<&'a FieldSet>),
) {
    let mut theirs = theirs.iter().peekable();
    for (element, set) in ours {
        let mut twin = None;
        while let Some((other, other_set)) = theirs.peek() {
            match other.cmp(element) {
                Ordering::Less => {
                    theirs.next();
                }
                Ordering::Equal => {
                    twin = Some(other_set);
                    break;
                }
                Ordering::Greater => break,
            }
        }
        visit(element, set, twin);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Sets of few distinct fields, so that two sets often overlap.
    pub(in crate::managed) fn any_set() -> impl Strategy<Value = FieldSet> {
        let path = prop::collection::vec("[fk]:[a-c]", 1..4);
        prop::collection::vec(path, 0..8).prop_map(|paths| {
            paths.iter().fold(FieldSet::default(), |set, path| {
                set.with(&path.iter().map(String::as_str).collect::<Vec<_>>())
            })
        })
    }

    fn is_sound(set: &FieldSet) -> bool {
        set.inside.is_sorted_by(|(a, _), (b, _)| a < b)
            && set
                .inside
                .iter()
                .all(|(_, inner)| !inner.is_empty() && is_sound(inner))
    }

    proptest! {
        #[test]
        fn sets_obey_the_laws_of_set_algebra(a in any_set(), b in any_set(), c in any_set()) {
            let union = a.clone().union(b.clone());
            prop_assert_eq!(&union, &b.clone().union(a.clone()));
            prop_assert_eq!(a.intersection(&b), b.intersection(&a));
            prop_assert_eq!(
                union.clone().union(c.clone()),
                a.clone().union(b.clone().union(c.clone()))
            );
            prop_assert_eq!(
                a.difference(&b).union(a.intersection(&b)), a.clone());
            prop_assert!(a.difference(&b).intersection(&b).is_empty());
            prop_assert_eq!(union.len() + a.intersection(&b).len(), a.len() + b.len());
            prop_assert_eq!(
                a.intersection(&b.clone().union(c.clone())),
                a.intersection(&b).union(a.intersection(&c))
            );
            for set in [union, a.intersection(&b), a.difference(&b)] {
                prop_assert!(is_sound(&set));
            }
        }

        #[test]
        fn operations_with_itself_are_trivial(a in any_set()) {
            prop_assert_eq!(a.clone().union(a.clone()), a.clone());
            prop_assert!(a.difference(&a).is_empty());
            prop_assert_eq!(a.paths().len(), a.len());
        }
    }

    #[test]
    fn a_path_and_its_children_are_distinct_members() {
        let set = FieldSet::default().with(&["f:a"]).with(&["f:a", "f:b"]);
        assert!(set.has(&["f:a"]) && set.has(&["f:a", "f:b"]) && !set.has(&["f:b"]));
        let without = set.difference(&FieldSet::default().with(&["f:a"]));
        assert!(!without.has(&["f:a"]) && without.has(&["f:a", "f:b"]));
        assert_eq!(set.paths(), [".a", ".a.b"]);
    }
}
