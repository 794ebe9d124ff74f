//! What belongs to what: owners, children, the pods of a workload, the events
//! of an object.

use longshore_model::{
    FieldSelector, Gvk, LabelSelector, OwnerReference, selector::StructuredSelector,
};
use serde_json::Value;

use crate::{
    error::{Error, Result},
    item::Item,
    kinds::{
        Any, CronJob, DaemonSet, Deployment, Event, Job, Kind, Node, Pod, ReplicaSet,
        ReplicationController, Service, StatefulSet,
    },
    view::View,
};

impl<K: Kind> Item<K> {
    /// The object that this one belongs to: the one that controls it, or else
    /// the first of its owners. `None` when it belongs to nothing, or its owner
    /// is gone.
    ///
    /// # Errors
    /// As the server refuses; [`Error::Invalid`] when the cluster does not know
    /// the owner's kind.
    ///
    /// ```
    /// # async fn example(pod: longshore_client::PodItem) -> longshore_client::Result<()> {
    /// if let Some(owner) = pod.owner().await? {
    ///     println!("{} belongs to {} {}", pod.name(), owner.kind().gvk.kind, owner.name());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn owner(&self) -> Result<Option<Item<Any>>> {
        let meta = self.meta();
        let Some(owner) = meta.controller().or(meta.owner_references.first()) else {
            return Ok(None);
        };
        self.referred(owner).await
    }

    /// All objects that this one belongs to and that are still there.
    ///
    /// # Errors
    /// As [`Item::owner`].
    pub async fn owners(&self) -> Result<Vec<Item<Any>>> {
        let mut owners = Vec::new();
        for owner in &self.meta().owner_references {
            owners.extend(self.referred(owner).await?);
        }
        Ok(owners)
    }

    async fn referred(&self, owner: &OwnerReference) -> Result<Option<Item<Any>>> {
        let gvk = Gvk::from_api_version(&owner.api_version, &owner.kind);
        let view = self.cluster().view_of(self.cluster().kind_of(&gvk).await?);
        let namespace = self.namespace().map(str::to_owned);
        let namespaced = view.kind().is_namespaced();
        let view = view.with_namespace(namespace.filter(|_| namespaced));
        let found = view.find(&owner.name).await?;
        // A name that is used again is another object.
        Ok(found.filter(|found| found.uid() == owner.uid))
    }

    /// The objects of a kind that belong to this one directly.
    ///
    /// # Errors
    /// As [`View::list`].
    ///
    /// ```
    /// # async fn example(job: longshore_client::JobItem) -> longshore_client::Result<()> {
    /// use longshore_client::kinds::Pod;
    /// for pod in job.children::<Pod>().await? {
    ///     println!("{} {}", pod.name(), pod.phase()?);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn children<C: Kind + Default>(&self) -> Result<Vec<Item<C>>> {
        self.children_in(&self.cluster().view()).await
    }

    /// The objects of a view that belong to this one directly; for kinds that
    /// have no type here.
    ///
    /// # Errors
    /// As [`View::list`].
    pub async fn children_in<C: Kind>(&self, view: &View<C>) -> Result<Vec<Item<C>>> {
        let mut view = view.clone();
        if self.namespace().is_some() && view.kind().is_namespaced() {
            view = view.with_namespace(self.namespace().map(str::to_owned));
        }
        let list = view.list().await?;
        let owned = |item: &Item<C>| {
            let owners = &item.meta().owner_references;
            owners.iter().any(|owner| owner.uid == self.uid())
        };
        Ok(list.into_iter().filter(owned).collect())
    }

    /// What happened to this object, oldest first. The cluster forgets events
    /// after an hour or so.
    ///
    /// # Errors
    /// As [`View::list`].
    ///
    /// ```
    /// # async fn example(pod: longshore_client::PodItem) -> longshore_client::Result<()> {
    /// for event in pod.events().await? {
    ///     println!("{}: {}", event.reason()?, event.message()?);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn events(&self) -> Result<Vec<Item<Event>>> {
        let about = FieldSelector::everything()
            .with("involvedObject.uid", self.uid())
            .with("involvedObject.name", self.name());
        let view = self.cluster().events().fields(about);
        let view = view.with_namespace(self.namespace().map(str::to_owned));
        let mut events = view.list().await?.items;
        events.sort_by_cached_key(|event| event.last_seen().ok().flatten());
        Ok(events)
    }

    /// The pods whose labels the selector at a path of the spec matches and
    /// that belong to this object.
    async fn selected(&self) -> Result<Vec<Item<Pod>>> {
        let pods = self.cluster().pods().labels(self.selector()?);
        self.children_in(&pods).await
    }

    /// The selector in the spec, in either form; without one, everything.
    fn selector(&self) -> Result<LabelSelector> {
        let what = || format!("spec.selector of {}", self.described());
        let selector: Option<Value> = self.field(&["spec", "selector"])?;
        let Some(selector) = selector else {
            return Ok(LabelSelector::everything());
        };
        let structured = ["matchLabels", "matchExpressions"]
            .iter()
            .any(|key| selector.get(key).is_some());
        let structured: StructuredSelector = if structured {
            serde_json::from_value(selector)
        } else {
            serde_json::from_value(serde_json::json!({ "matchLabels": selector }))
        }
        .map_err(|error| Error::decode(what(), error))?;
        LabelSelector::try_from(structured).map_err(|error| Error::decode(what(), error))
    }
}

macro_rules! pods {
    ($($kind:ty,)*) => {
        $(impl Item<$kind> {
            /// Its pods, in the server's order.
            ///
            /// # Errors
            /// As [`View::list`].
            pub async fn pods(&self) -> Result<Vec<Item<Pod>>> {
                self.selected().await
            }
        })*
    };
}

pods! { DaemonSet, Job, ReplicaSet, ReplicationController, StatefulSet, }

impl Item<Deployment> {
    /// Its ReplicaSets: one for each of its templates that is remembered.
    ///
    /// # Errors
    /// As [`View::list`].
    pub async fn replica_sets(&self) -> Result<Vec<Item<ReplicaSet>>> {
        let sets = self.cluster().replicasets().labels(self.selector()?);
        self.children_in(&sets).await
    }

    /// The pods of all its ReplicaSets.
    ///
    /// # Errors
    /// As [`View::list`].
    pub async fn pods(&self) -> Result<Vec<Item<Pod>>> {
        let sets = self.replica_sets().await?;
        let uids: Vec<&str> = sets.iter().map(Item::uid).collect();
        grandchildren(self, &uids, self.selector()?).await
    }
}

impl Item<CronJob> {
    /// The Jobs it has made and that are still there.
    ///
    /// # Errors
    /// As [`View::list`].
    pub async fn jobs(&self) -> Result<Vec<Item<Job>>> {
        self.children().await
    }

    /// The pods of all its Jobs.
    ///
    /// # Errors
    /// As [`View::list`].
    pub async fn pods(&self) -> Result<Vec<Item<Pod>>> {
        let jobs = self.jobs().await?;
        let uids: Vec<&str> = jobs.iter().map(Item::uid).collect();
        grandchildren(self, &uids, LabelSelector::everything()).await
    }
}

impl Item<Service> {
    /// The pods that its selector matches; none for a Service without one.
    ///
    /// # Errors
    /// As [`View::list`].
    pub async fn pods(&self) -> Result<Vec<Item<Pod>>> {
        let selector = self.selector()?;
        if selector.is_everything() {
            return Ok(Vec::new());
        }
        let pods = self.cluster().pods().labels(selector);
        let pods = pods.with_namespace(self.namespace().map(str::to_owned));
        Ok(pods.list().await?.items)
    }
}

impl Item<Node> {
    /// The pods that are on it, of all namespaces.
    ///
    /// # Errors
    /// As [`View::list`].
    pub async fn pods(&self) -> Result<Vec<Item<Pod>>> {
        let here = FieldSelector::everything().with("spec.nodeName", self.name());
        Ok(self.cluster().pods().fields(here).list().await?.items)
    }
}

async fn grandchildren<K: Kind>(
    item: &Item<K>,
    parents: &[&str],
    selector: LabelSelector,
) -> Result<Vec<Item<Pod>>> {
    let pods = item.cluster().pods().labels(selector);
    let pods = pods.with_namespace(item.namespace().map(str::to_owned));
    let list = pods.list().await?;
    let owned = |pod: &Item<Pod>| {
        let owners = &pod.meta().owner_references;
        owners
            .iter()
            .any(|owner| parents.contains(&owner.uid.as_str()))
    };
    Ok(list.into_iter().filter(owned).collect())
}
