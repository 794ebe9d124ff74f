//! Reports unprocessed changes of a kind as pending work to a manual clock.

use std::sync::{Arc, Weak};

use longshore_client::{Cache, Object, kinds::Any};
use longshore_clock::{Clock, Component, Newest};
use longshore_model::KindInfo;

/// Returns the reason why changes of a kind are unprocessed, if they are: the cache has not
/// received them, or its subscribers have not processed them.
pub(crate) fn pending<K: Object>(
    group: &str,
    kind: &str,
    cache: &Cache<K>,
    newest: &Newest<'_>,
) -> Option<String> {
    let received = cache.resource_version().parse().unwrap_or(0);
    if newest(group, kind) > received {
        return Some(format!("changes of kind {kind} have not been received"));
    }
    (!cache.is_delivered()).then(|| format!("changes of kind {kind} have not been processed"))
}

/// The cache of a kind that exists only for a time.
#[derive(Debug)]
struct Temporary {
    kind: Arc<KindInfo>,
    cache: Cache<Any>,
}

impl Component for Temporary {
    fn pending(&self, newest: &Newest<'_>) -> Option<String> {
        let gvk = &self.kind.gvk;
        pending(&gvk.group, &gvk.kind, &self.cache, newest)
    }

    fn steps(&self) -> u64 {
        0
    }
}

/// Reports the changes of a custom kind to the clock until the returned value is dropped.
pub(crate) fn follow(clock: &Clock, kind: Arc<KindInfo>, cache: &Cache<Any>) -> Arc<dyn Component> {
    let cache = cache.clone();
    let component: Arc<dyn Component> = Arc::new(Temporary { kind, cache });
    let weak: Weak<dyn Component> = Arc::downgrade(&component);
    clock.add(weak);
    component
}
