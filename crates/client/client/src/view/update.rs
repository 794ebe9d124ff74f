//! Reads, changes and replaces an object.

use serde_json::Value;

use super::{View, prepare::as_json};
use crate::{error::Result, item::Item, kind::Object};

impl<K: Object> View<K> {
    /// Reads an object, lets `change` change it, and replaces the version that was read.
    /// If another client has changed the object in between, this is repeated with the
    /// newer version.
    ///
    /// Fields that the type does not have, such as fields of a newer server, keep their values,
    /// except in elements of lists that `change` changes and that have no `name`.
    ///
    /// # Errors
    /// The errors of `change`, [`View::fetch`], [`Item::object`] and [`View::replace`]; a conflict
    /// after [`Timing::retries`](crate::Timing::retries) tries.
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// let maps = cluster.configmaps().in_namespace("default")?;
    /// # maps.create(&serde_json::json!({"metadata": {"name": "counter"}})).await?;
    /// let counter = maps
    ///     .update("counter", |map| {
    ///         let count = map.data.get_or_insert_default().entry("count".to_owned()).or_default();
    ///         *count = (count.parse().unwrap_or(0) + 1).to_string();
    ///         Ok(())
    ///     })
    ///     .await?;
    /// assert_eq!(counter.data()?["count"], "1");
    /// # Ok(()) });
    /// ```
    pub async fn update(
        &self,
        name: &str,
        mut change: impl FnMut(&mut K) -> Result<()> + Send,
    ) -> Result<Item<K>> {
        let timing = self.cluster().transport.timing();
        let mut attempt = 0;
        loop {
            let item = self.fetch(name).await?;
            let mut object = item.object()?;
            let before = as_json(&object)?;
            change(&mut object)?;
            let mut data = item.raw()?;
            merge_change(&mut data, &before, as_json(&object)?);
            match self.put(name, "", &data).await {
                Err(error) if error.is_conflict() && attempt < timing.retries => {
                    tokio::time::sleep(timing.backoff().wait(attempt) / 10).await;
                    attempt += 1;
                }
                outcome => return outcome,
            }
        }
    }
}

/// Makes the change from `before` to `after` in `stored`, which may have fields that
/// `before` lacks.
fn merge_change(stored: &mut Value, before: &Value, after: Value) {
    if *before == after {
        return;
    }
    match (stored, before, after) {
        (Value::Object(stored), Value::Object(before), Value::Object(after)) => {
            stored.retain(|key, _| after.contains_key(key) || !before.contains_key(key));
            for (key, after) in after {
                match (stored.get_mut(&key), before.get(&key)) {
                    (Some(stored), Some(before)) => merge_change(stored, before, after),
                    _ => drop(stored.insert(key, after)),
                }
            }
        }
        (Value::Array(stored), Value::Array(before), Value::Array(after))
            if stored.len() == before.len() =>
        {
            let merged = after.into_iter().map(|after| {
                let Some(index) = same_element(before, &after) else {
                    return after;
                };
                let mut element = stored[index].clone();
                merge_change(&mut element, &before[index], after);
                element
            });
            *stored = merged.collect();
        }
        (stored, _, after) => *stored = after,
    }
}

/// Returns the previous index of the element `after`: the index of an equal element, or of an
/// element with the same name.
fn same_element(before: &[Value], after: &Value) -> Option<usize> {
    let equal = before.iter().position(|before| before == after);
    equal.or_else(|| {
        let name = after.get("name")?;
        let has_name = |before: &Value| before.get("name") == Some(name);
        before.iter().position(has_name)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn merged(mut stored: Value, before: Value, after: Value) -> Value {
        merge_change(&mut stored, &before, after);
        stored
    }

    #[test]
    fn changes_keep_unknown_fields() {
        let stored = json!({"spec": {"size": 1, "new": true}, "other": 1});
        let before = json!({"spec": {"size": 1}});
        let after = json!({"spec": {"size": 2}, "status": {}});
        let expected = json!({"spec": {"size": 2, "new": true}, "other": 1, "status": {}});
        assert_eq!(merged(stored, before, after), expected);
    }

    #[test]
    fn removed_fields_are_removed() {
        let stored = json!({"data": {"a": "1", "b": "2"}, "new": 1});
        let before = json!({"data": {"a": "1", "b": "2"}});
        let expected = json!({"data": {"b": "2"}, "new": 1});
        let after = json!({"data": {"b": "2"}});
        assert_eq!(merged(stored.clone(), before.clone(), after), expected);
        assert_eq!(merged(stored, before, json!({})), json!({"new": 1}));
    }

    #[test]
    fn elements_of_lists_keep_unknown_fields_wherever_they_move() {
        let stored =
            json!([{"name": "a", "new": 1}, {"name": "b", "new": 2}, {"verb": "x", "new": 3}]);
        let before = json!([{"name": "a"}, {"name": "b"}, {"verb": "x"}]);
        let after = json!([{"verb": "x"}, {"name": "b", "image": "i"}, {"name": "c"}]);
        let expected =
            json!([{"verb": "x", "new": 3}, {"name": "b", "image": "i", "new": 2}, {"name": "c"}]);
        assert_eq!(merged(stored, before, after), expected);
    }

    #[test]
    fn a_value_of_another_type_replaces() {
        assert_eq!(
            merged(json!({"a": [1]}), json!({"a": [1]}), json!({"a": 2})),
            json!({"a": 2})
        );
    }
}
