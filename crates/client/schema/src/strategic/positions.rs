//! Indexes of lists: linear search in short lists, hashing in long ones.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
};

use serde_json::Value;

/// Up to this length, a linear search is faster than hashing.
const SHORT: usize = 16;

#[cfg(test)]
thread_local! {
    /// The number of lookups and comparisons of values on this thread.
    pub(super) static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Counts a lookup or comparison in tests of the complexity.
fn count_step() {
    #[cfg(test)]
    STEPS.set(STEPS.get() + 1);
}

/// The first position of each value in a list.
pub(super) enum Positions<'a> {
    Short(&'a [&'a Value]),
    Long(HashMap<&'a Value, usize>),
}

impl<'a> Positions<'a> {
    pub(super) fn of(list: &'a [&'a Value]) -> Self {
        if list.len() <= SHORT {
            return Self::Short(list);
        }
        let mut positions = HashMap::with_capacity(list.len());
        for (position, value) in list.iter().enumerate() {
            positions.entry(*value).or_insert(position);
        }
        Self::Long(positions)
    }

    pub(super) fn find(&self, value: &Value) -> Option<usize> {
        match self {
            Self::Short(list) => list.iter().position(|other| {
                count_step();
                *other == value
            }),
            Self::Long(positions) => {
                count_step();
                positions.get(value).copied()
            }
        }
    }
}

/// The target list of a merge, indexed by a key of its items or by the items
/// themselves. A removed item leaves an empty slot until the end.
pub(super) struct Slots<'k> {
    key: Option<&'k str>,
    items: Vec<Option<Value>>,
    /// Positions by the hash of the item's identity; `None` for short lists.
    index: Option<(RandomState, HashMap<u64, Vec<usize>>)>,
}

impl<'k> Slots<'k> {
    /// Indexes a list to which at most `more` items will be added.
    pub(super) fn new(list: Vec<Value>, key: Option<&'k str>, more: usize) -> Self {
        let is_long = list.len().saturating_add(more) > SHORT;
        let mut slots = Self {
            key,
            items: Vec::with_capacity(list.len()),
            index: is_long.then(|| (RandomState::new(), HashMap::new())),
        };
        list.into_iter().for_each(|item| slots.push(item));
        slots
    }

    fn matches(&self, position: usize, id: &Value) -> bool {
        count_step();
        let item = self.items[position].as_ref();
        let own = item.and_then(|item| match self.key {
            Some(key) => item.get(key),
            None => Some(item),
        });
        own == Some(id)
    }

    /// The first position of an item.
    pub(super) fn find(&self, id: &Value) -> Option<usize> {
        match &self.index {
            None => (0..self.items.len()).find(|position| self.matches(*position, id)),
            Some((state, index)) => {
                let positions = index.get(&state.hash_one(id))?;
                positions
                    .iter()
                    .copied()
                    .find(|position| self.matches(*position, id))
            }
        }
    }

    /// Removes all items with an id.
    pub(super) fn remove(&mut self, id: &Value) {
        let Some((state, mut index)) = self.index.take() else {
            for position in 0..self.items.len() {
                if self.matches(position, id) {
                    self.items[position] = None;
                }
            }
            return;
        };
        if let Some(positions) = index.get_mut(&state.hash_one(id)) {
            positions.retain(|position| {
                let gone = self.matches(*position, id);
                if gone {
                    self.items[*position] = None;
                }
                !gone
            });
        }
        self.index = Some((state, index));
    }

    /// Takes an item out so that it can be put back.
    pub(super) fn take(&mut self, position: usize) -> Option<Value> {
        self.items[position].take()
    }

    /// Puts an item into the slot of an item with the same id.
    pub(super) fn put(&mut self, position: usize, item: Value) {
        self.items[position] = Some(item);
    }

    /// Appends an item.
    pub(super) fn push(&mut self, item: Value) {
        let id = match self.key {
            Some(key) => item.get(key),
            None => Some(&item),
        };
        if let (Some((state, index)), Some(id)) = (&mut self.index, id) {
            let positions = index.entry(state.hash_one(id)).or_default();
            positions.push(self.items.len());
        }
        self.items.push(Some(item));
    }

    pub(super) fn into_list(self) -> Vec<Value> {
        self.items.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn indexed(list: Vec<Value>, key: Option<&'static str>) -> Slots<'static> {
        Slots::new(list, key, SHORT + 1)
    }

    fn plain(list: Vec<Value>, key: Option<&'static str>) -> Slots<'static> {
        let mut slots = Slots::new(Vec::new(), key, 0);
        list.into_iter().for_each(|item| slots.push(item));
        slots
    }

    proptest! {
        #[test]
        fn long_and_short_lists_behave_alike(
            list in prop::collection::vec(0..6_u8, 0..12),
            steps in prop::collection::vec((0..3_u8, 0..6_u8), 0..24),
            keyed: bool,
        ) {
            let key = keyed.then_some("k");
            let id = |n: u8| json!(n);
            let item = |n: u8| if keyed { json!({"k": n}) } else { json!(n) };
            let list: Vec<Value> = list.into_iter().map(item).collect();
            let (mut long, mut short) = (indexed(list.clone(), key), plain(list, key));
            for (step, n) in steps {
                prop_assert_eq!(long.find(&id(n)), short.find(&id(n)));
                match (step, short.find(&id(n))) {
                    (0, _) => {
                        long.push(item(n));
                        short.push(item(n));
                    }
                    (1, _) => {
                        long.remove(&id(n));
                        short.remove(&id(n));
                    }
                    (_, Some(position)) => {
                        let (a, b) = (long.take(position), short.take(position));
                        prop_assert_eq!(&a, &b);
                        long.put(position, item(n));
                        short.put(position, item(n));
                    }
                    _ => {}
                }
            }
            prop_assert_eq!(long.into_list(), short.into_list());
        }

        #[test]
        fn the_first_position_is_found(list in prop::collection::vec(0..9_u8, 0..40), n in 0..9_u8) {
            let list: Vec<Value> = list.into_iter().map(Value::from).collect();
            let list: Vec<&Value> = list.iter().collect();
            let n = Value::from(n);
            let expected = list.iter().position(|other| **other == n);
            prop_assert_eq!(Positions::of(&list).find(&n), expected);
        }
    }
}
