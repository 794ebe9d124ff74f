//! Where values stand in lists: found at once in long lists, by looking in
//! short ones.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
};

use serde_json::Value;

/// Lists of so many items are searched one by one: that is faster than to hash
/// them.
const SHORT: usize = 16;

/// The first place of each value of a list.
pub(super) enum Places<'a> {
    Short(&'a [&'a Value]),
    Long(HashMap<&'a Value, usize>),
}

impl<'a> Places<'a> {
    pub(super) fn of(list: &'a [&'a Value]) -> Self {
        if list.len() <= SHORT {
            return Self::Short(list);
        }
        let mut places = HashMap::with_capacity(list.len());
        for (place, value) in list.iter().enumerate() {
            places.entry(*value).or_insert(place);
        }
        Self::Long(places)
    }

    pub(super) fn find(&self, value: &Value) -> Option<usize> {
        match self {
            Self::Short(list) => list.iter().position(|other| *other == value),
            Self::Long(places) => places.get(value).copied(),
        }
    }
}

/// A list that is merged into, found by a key of its items or by the items
/// themselves. A removed item leaves its place empty until the end.
pub(super) struct Slots<'k> {
    key: Option<&'k str>,
    items: Vec<Option<Value>>,
    /// Places by the hash of what tells items apart; none for short lists.
    index: Option<(RandomState, HashMap<u64, Vec<usize>>)>,
}

impl<'k> Slots<'k> {
    /// Of a list to which at most `more` items are added.
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

    fn is(&self, place: usize, id: &Value) -> bool {
        let item = self.items[place].as_ref();
        let own = item.and_then(|item| match self.key {
            Some(key) => item.get(key),
            None => Some(item),
        });
        own == Some(id)
    }

    /// The first place of an item.
    pub(super) fn find(&self, id: &Value) -> Option<usize> {
        match &self.index {
            None => (0..self.items.len()).find(|place| self.is(*place, id)),
            Some((state, index)) => {
                let places = index.get(&state.hash_one(id))?;
                places.iter().copied().find(|place| self.is(*place, id))
            }
        }
    }

    /// Removes all items of an id.
    pub(super) fn remove(&mut self, id: &Value) {
        let Some((state, mut index)) = self.index.take() else {
            for place in 0..self.items.len() {
                if self.is(place, id) {
                    self.items[place] = None;
                }
            }
            return;
        };
        if let Some(places) = index.get_mut(&state.hash_one(id)) {
            places.retain(|place| {
                let gone = self.is(*place, id);
                if gone {
                    self.items[*place] = None;
                }
                !gone
            });
        }
        self.index = Some((state, index));
    }

    /// Takes an item out, to be put back.
    pub(super) fn take(&mut self, place: usize) -> Option<Value> {
        self.items[place].take()
    }

    /// Puts an item back where one of the same id was.
    pub(super) fn put(&mut self, place: usize, item: Value) {
        self.items[place] = Some(item);
    }

    /// Adds an item at the end.
    pub(super) fn push(&mut self, item: Value) {
        let id = match self.key {
            Some(key) => item.get(key),
            None => Some(&item),
        };
        if let (Some((state, index)), Some(id)) = (&mut self.index, id) {
            let places = index.entry(state.hash_one(id)).or_default();
            places.push(self.items.len());
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
        fn long_lists_are_as_short_ones(
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
                    (_, Some(place)) => {
                        let (a, b) = (long.take(place), short.take(place));
                        prop_assert_eq!(&a, &b);
                        long.put(place, item(n));
                        short.put(place, item(n));
                    }
                    _ => {}
                }
            }
            prop_assert_eq!(long.into_list(), short.into_list());
        }

        #[test]
        fn the_first_place_counts(list in prop::collection::vec(0..9_u8, 0..40), n in 0..9_u8) {
            let list: Vec<Value> = list.into_iter().map(Value::from).collect();
            let list: Vec<&Value> = list.iter().collect();
            let n = Value::from(n);
            let expected = list.iter().position(|other| **other == n);
            prop_assert_eq!(Places::of(&list).find(&n), expected);
        }
    }
}
