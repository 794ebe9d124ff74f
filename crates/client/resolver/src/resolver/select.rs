//! Lists the pods of all roles once.

use futures::future::try_join_all;
use longshore_client::{Item, LabelSelector, View, kinds::Pod};
use longshore_model::facts::PodFacts;

use super::{Resolver, groups};
use crate::{
    error::Error,
    tasks::{Assembly, Tasks, assemble},
};

/// Reads the fields of a pod that the resolver uses.
pub(super) fn facts(pod: &Item<Pod>) -> Result<PodFacts, Error> {
    Ok(pod.typed()?)
}

impl Resolver {
    /// Returns the view of the pods that one list selector matches.
    pub(super) fn view(&self, selector: &LabelSelector) -> Result<View<Pod>, Error> {
        let view = self.cluster.pods().labels(selector.clone());
        Ok(match &self.namespace {
            Some(namespace) => view.in_namespace(namespace)?,
            None => view,
        })
    }

    /// Lists the pods of a view.
    pub(super) async fn list(&self, view: &View<Pod>) -> Result<Vec<PodFacts>, Error> {
        let list = view.list().await.map_err(|source| match source.code() {
            Some(403) => Error::Forbidden {
                verb: "list",
                resource: "pods",
                namespace: self.namespace.clone(),
                source: Box::new(source),
            },
            _ => source.into(),
        })?;
        list.items.iter().map(facts).collect()
    }

    /// Returns all pods that any selector may match, without duplicates.
    pub(super) async fn pods(&self) -> Result<Vec<PodFacts>, Error> {
        let selectors = groups::list_selectors(&self.mapping);
        let lists = selectors
            .iter()
            .map(async |question| self.list(&self.view(question)?).await);
        let mut pods: Vec<PodFacts> = try_join_all(lists).await?.into_iter().flatten().collect();
        if selectors.len() > 1 {
            let key = |pod: &PodFacts| (pod.metadata.namespace.clone(), pod.metadata.name.clone());
            pods.sort_by_cached_key(key);
            pods.dedup_by(|a, b| key(a) == key(b));
        }
        Ok(pods)
    }

    pub(super) async fn tasks_as(&self, assembly: &Assembly) -> Result<Tasks, Error> {
        let pods = self.pods().await?;
        let pods: Vec<&PodFacts> = pods.iter().collect();
        Ok(assemble(&groups::select(&self.mapping, &pods), assembly)?)
    }
}
