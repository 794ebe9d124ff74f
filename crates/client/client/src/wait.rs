//! Waits for conditions of objects.

use std::time::Duration;

use longshore_model::FieldSelector;
use serde_json::Value;

use crate::{
    error::{Error, Result},
    item::Item,
    kind::Object,
    until,
    view::View,
    watch::WatchEvent,
};

/// ```
/// # longshore_embedded::example(async |cluster| {
/// use std::time::Duration;
/// use longshore_client::DeleteOptions;
/// use serde_json::json;
/// let maps = cluster.configmaps().in_namespace("default")?;
/// let timeout = Duration::from_secs(20);
///
/// let blue = json!({"metadata": {"name": "a"}, "data": {"colour": "blue"}});
/// let (made, map) = tokio::join!(
///     maps.create(&blue),
///     maps.wait("a", |map| map.data().is_ok_and(|data| data["colour"] == "blue"), timeout),
/// );
/// assert_eq!(map?.uid(), made?.uid());
///
/// maps.delete("a", &DeleteOptions::default()).await?;
/// maps.wait_gone("a", timeout).await?;
/// let error = maps.wait("a", |_| true, Duration::from_millis(1)).await.unwrap_err();
/// assert!(error.is_timeout());
/// # Ok(()) });
/// ```
impl<K: Object> View<K> {
    /// Waits until an object exists and `until` returns true for it, and returns that
    /// version. Continues to wait if the object does not exist yet or is deleted. See
    /// [`until`](crate::until) for conditions.
    ///
    /// # Errors
    /// [`Error::Timeout`] names the last observed state; otherwise as [`View::list`].
    pub async fn wait(
        &self,
        name: &str,
        mut until: impl FnMut(&Item<K>) -> bool + Send,
        timeout: Duration,
    ) -> Result<Item<K>> {
        let found = self
            .wait_for(name, timeout, "", move |item| {
                item.filter(|item| until(item)).cloned()
            })
            .await?;
        Ok(found)
    }

    /// Waits until an object is deleted.
    ///
    /// # Errors
    /// The same as [`View::wait`].
    pub async fn wait_gone(&self, name: &str, timeout: Duration) -> Result<()> {
        self.wait_for(name, timeout, " to be gone", |item| {
            item.is_none().then_some(())
        })
        .await
    }

    pub(crate) async fn wait_for<T>(
        &self,
        name: &str,
        timeout: Duration,
        aim: &str,
        mut done: impl FnMut(Option<&Item<K>>) -> Option<T>,
    ) -> Result<T> {
        self.object_path(name)?;
        let only = self
            .clone()
            .fields(FieldSelector::everything().with("metadata.name", name));
        let mut last: Option<Item<K>> = None;
        let waiting = async {
            let list = only.list().await?;
            last = list.items.into_iter().next();
            if let Some(result) = done(last.as_ref()) {
                return Ok(result);
            }
            let mut watch = only.watch_since(&list.version).await?;
            loop {
                last = match watch.next(None).await? {
                    WatchEvent::Added(item) | WatchEvent::Modified(item) => Some(item),
                    WatchEvent::Deleted(_) => None,
                    WatchEvent::Resync(list) => list.items.into_iter().next(),
                };
                if let Some(result) = done(last.as_ref()) {
                    return Ok(result);
                }
            }
        };
        match tokio::time::timeout(timeout, waiting).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Error::Timeout {
                waiting_for: format!("waiting for {} {name}{aim}", self.kind().singular),
                after: timeout,
                last: last.map_or_else(|| "it is not there".to_owned(), |item| item.state()),
            }),
        }
    }
}

/// ```
/// # longshore_embedded::example(async |cluster| {
/// use std::time::Duration;
/// use longshore_client::{DeleteOptions, Patch};
/// # let spec = serde_json::json!({"containers": [{"name": "main", "image": "busybox"}]});
/// # let pod = serde_json::json!({"metadata": {"name": "web"}, "spec": spec});
/// # let pods = cluster.pods().in_namespace("default")?;
/// let pod = pods.create(&pod).await?;
/// assert_eq!(pod.state(), "phase Pending");
///
/// # let running = Patch::merge(serde_json::json!({"status": {"phase": "Running"}}));
/// # pods.patch_status("web", &running).await?;
/// let running = |pod: &longshore_client::PodItem| pod.state() == "phase Running";
/// let pod = pod.wait(running, Duration::from_secs(20)).await?;
///
/// let at_once = DeleteOptions { grace_seconds: Some(0), ..DeleteOptions::default() };
/// pod.delete(&at_once).await?;
/// pod.wait_gone(Duration::from_secs(20)).await?;
/// # Ok(()) });
/// ```
impl<K: Object> Item<K> {
    /// The state of the object in a few words: its phase, the number of ready replicas, or
    /// the conditions that are true.
    #[must_use]
    pub fn state(&self) -> String {
        state(self)
    }

    /// Waits until this object meets the condition, and returns it. Continues to wait if
    /// the object is deleted. See [`until`](crate::until) for conditions.
    ///
    /// # Errors
    /// The same as [`View::wait`].
    pub async fn wait(
        &self,
        until: impl FnMut(&Self) -> bool + Send,
        timeout: Duration,
    ) -> Result<Self> {
        self.view().wait(self.name(), until, timeout).await
    }

    /// Waits until this object is deleted. Ignores a new object of the same name.
    ///
    /// # Errors
    /// The same as [`View::wait`].
    pub async fn wait_gone(&self, timeout: Duration) -> Result<()> {
        let gone = |item: Option<&Self>| {
            let same = item.is_some_and(|item| item.uid() == self.uid());
            (!same).then_some(())
        };
        let view = self.view();
        view.wait_for(self.name(), timeout, " to be gone", gone)
            .await
    }
}

fn state<K: Object>(item: &Item<K>) -> String {
    if item.meta().deletion_timestamp.is_some() {
        return "it is being deleted".to_owned();
    }
    let text = |path: &[&str]| item.field::<String>(path).ok().flatten();
    if let Some(phase) = text(&["status", "phase"]) {
        let reason = text(&["status", "reason"]).map(|reason| format!(" ({reason})"));
        return format!("phase {phase}{}", reason.unwrap_or_default());
    }
    let number = |path: &[&str]| item.field::<u64>(path).ok().flatten();
    if let Some(wanted) = number(&["spec", "replicas"]) {
        return replicas(item, wanted);
    }
    let conditions: Vec<Value> = item
        .field(&["status", "conditions"])
        .ok()
        .flatten()
        .unwrap_or_default();
    let holding: Vec<&str> = conditions
        .iter()
        .filter(|condition| condition["status"] == "True")
        .filter_map(|condition| condition["type"].as_str())
        .collect();
    if holding.is_empty() {
        "it is there".to_owned()
    } else {
        holding.join(", ")
    }
}

/// The counts of an object with replicas.
#[derive(Debug, Clone, Copy)]
struct Replicas {
    wanted: u64,
    all: u64,
    ready: u64,
    /// Replicas of the current template.
    updated: u64,
    /// True if the counts are of the current generation.
    observed: bool,
}

impl Replicas {
    /// The state in words. During a rollout, replicas of the previous template are ready too.
    fn state(self) -> String {
        let Self {
            wanted,
            ready,
            updated,
            ..
        } = self;
        if !self.observed {
            return format!(
                "the controller has not observed the change yet; {ready} replicas are ready"
            );
        }
        match self.all.saturating_sub(updated) {
            0 => format!("{ready} of {wanted} replicas are ready"),
            previous => format!(
                "{updated} of {wanted} replicas have the current template, and {previous} the \
                 previous; {ready} of all are ready"
            ),
        }
    }
}

fn replicas<K: Object>(item: &Item<K>, wanted: u64) -> String {
    let number = |path: &[&str]| item.field::<u64>(path).ok().flatten();
    let count = |field| number(&["status", field]).unwrap_or(0);
    let (all, has_updates) = (count("replicas"), until::has_updates(item));
    let seen = number(&["status", "observedGeneration"]);
    Replicas {
        wanted,
        all,
        ready: count("readyReplicas"),
        updated: if has_updates {
            count("updatedReplicas")
        } else {
            all
        },
        observed: !has_updates || seen.is_none() || seen >= number(&["metadata", "generation"]),
    }
    .state()
}

#[cfg(test)]
mod tests {
    use super::Replicas;

    #[test]
    fn replicas_of_the_previous_template_are_counted_apart() {
        let state = |wanted, all, ready, updated, observed| {
            Replicas {
                wanted,
                all,
                ready,
                updated,
                observed,
            }
            .state()
        };
        assert_eq!(state(3, 2, 1, 2, true), "1 of 3 replicas are ready");
        assert_eq!(
            state(3, 4, 3, 1, true),
            "1 of 3 replicas have the current template, and 3 the previous; 3 of all are ready"
        );
        assert_eq!(
            state(3, 3, 3, 3, false),
            "the controller has not observed the change yet; 3 replicas are ready"
        );
    }
}
