//! Whether controllers have processed the changes of a kind, as work that a manual clock
//! reports.

use std::sync::{Arc, Weak};

use longshore_client::{Cache, Object, kinds::Any};
use longshore_clock::{Clock, Component, Newest};
use longshore_model::KindInfo;

/// Why the changes of a kind have not been processed: its cache has not received them, or
/// its subscribers are not done with them.
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

/// A cache of a kind that exists only for a time.
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
