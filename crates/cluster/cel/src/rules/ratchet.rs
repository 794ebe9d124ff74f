//! Finds the values that an update changes. Rules may fail for unchanged values.

use std::ops::Deref;

use serde_json::Value as Json;

use super::Node;

/// A value of the new object with its previous value.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ratchet<'o> {
    current: Option<Pair<'o>>,
    /// The nearest enclosing value that has a previous value.
    nearest: Option<Pair<'o>>,
}

#[derive(Debug, Clone, Copy)]
struct Pair<'o> {
    old: &'o Json,
    new: &'o Json,
}

impl<'o> Ratchet<'o> {
    /// The whole object.
    pub(super) fn of(old: Option<&'o Json>, new: &'o Json) -> Self {
        Self {
            current: old.map(|old| Pair { old, new }),
            nearest: None,
        }
    }

    /// Returns true if the value is unchanged. A value that did not exist before counts as
    /// unchanged if the nearest enclosing value that existed is unchanged.
    pub(super) fn is_unchanged(&self) -> bool {
        let pair = self.current.or(self.nearest);
        pair.is_some_and(|pair| pair.old == pair.new)
    }

    fn below(self, child: Option<Pair<'o>>) -> Self {
        match self.current {
            None => self,
            Some(current) => Self {
                current: child,
                nearest: Some(current),
            },
        }
    }

    /// The value of a key.
    pub(super) fn key(self, key: &str) -> Self {
        if self.current.is_some() && self.nearest.is_none() && matches!(key, "apiVersion" | "kind")
        {
            return Self::default();
        }
        let child = self.current.and_then(|pair| {
            let (old, new) = (pair.old.get(key)?, pair.new.get(key)?);
            Some(Pair { old, new })
        });
        self.below(child)
    }

    /// The item at an index, with the item that it replaces.
    pub(super) fn item(self, old: Option<&'o Json>, new: &'o Json) -> Self {
        self.below(old.map(|old| Pair { old, new }))
    }
}

/// The previous items of a list, by their keys.
pub(super) struct OldItems<'o> {
    items: Vec<(Vec<&'o Json>, &'o Json)>,
}

impl<'o> OldItems<'o> {
    pub(super) fn of(node: &Node, old: Option<&'o Json>) -> Self {
        let list = old.and_then(Json::as_array);
        let mut items: Vec<(Vec<&Json>, &Json)> = match (&node.keys, list) {
            (Some(keys), Some(list)) => list
                .iter()
                .map(|item| (item_key(item, keys), item))
                .collect(),
            _ => Vec::new(),
        };
        items.sort_by_cached_key(|(key, _)| text(key));
        Self { items }
    }

    /// The previous item with the keys of an item.
    pub(super) fn get(&self, node: &Node, item: &'o Json) -> Option<&'o Json> {
        let key = item_key(item, node.keys.as_ref()?);
        let wanted = text(&key);
        let at = self
            .items
            .binary_search_by(|(key, _)| text(key).cmp(&wanted))
            .ok()?;
        self.items.get(at).map(|(_, item)| *item)
    }
}

fn item_key<'o>(item: &'o Json, keys: &[String]) -> Vec<&'o Json> {
    keys.iter().map(|key| &item[key.deref()]).collect()
}

fn text(key: &[&Json]) -> String {
    let parts: Vec<String> = key.iter().map(|part| part.to_string()).collect();
    parts.join(",")
}
