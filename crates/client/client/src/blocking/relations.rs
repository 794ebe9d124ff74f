//! Owners, children, pods and events of objects.

use super::{Item, Mirror, View, run, waits};
use crate::{
    error::Result,
    kind::{Any, Kind, Object},
    kinds,
};

impl<K: Object> Item<K> {
    waits! {
        "Item": owner() -> Option<Item<Any>>;
        "Item": owners() -> Vec<Item<Any>>;
        "Item": events() -> Vec<Item<kinds::Event>>;
    }

    /// Like [`Item::children`](crate::Item::children).
    ///
    /// # Errors
    /// The errors of [`Item::children`](crate::Item::children).
    pub fn children<C: Kind>(&self) -> Result<Vec<Item<C>>> {
        run(self.inner().children::<C>()).map(Mirror::mirror)
    }

    /// Like [`Item::children_in`](crate::Item::children_in).
    ///
    /// # Errors
    /// The errors of [`Item::children_in`](crate::Item::children_in).
    pub fn children_in<C: Object>(&self, view: &View<C>) -> Result<Vec<Item<C>>> {
        run(self.inner().children_in(&view.inner)).map(Mirror::mirror)
    }
}

macro_rules! pods {
    ($($kind:ident),*) => {
        $(impl Item<kinds::$kind> {
            waits! { "Item": pods() -> Vec<Item<kinds::Pod>>; }
        })*
    };
}

pods!(
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    Node,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet
);

impl Item<kinds::Deployment> {
    waits! { "Item": replica_sets() -> Vec<Item<kinds::ReplicaSet>>; }
}

impl Item<kinds::CronJob> {
    waits! { "Item": jobs() -> Vec<Item<kinds::Job>>; }
}
