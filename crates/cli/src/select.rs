//! Which objects a verb is about: kind, names, namespace, selectors.

use clap::Args;
use longshore::{
    FieldSelector, LabelSelector, View,
    client::{Cluster, Item, kinds::Any},
};

use crate::error::{Error, Kind, Result};

/// Objects of a kind, as arguments.
#[derive(Debug, Clone, Args)]
pub(crate) struct SelectArgs {
    /// The kind, as in `pods`, `po`, `jobs.batch`; or `kind/name`
    kind: String,
    /// Names of objects; without any, all that the selectors match
    names: Vec<String>,
    /// The namespace; the context's own without it
    #[arg(long, short)]
    namespace: Option<String>,
    /// Of all namespaces
    #[arg(long, short = 'A', conflicts_with = "namespace")]
    all_namespaces: bool,
    /// Only objects whose labels match, as in `app=web,tier!=cache`
    #[arg(long, short = 'l')]
    selector: Option<String>,
    /// Only objects whose fields match, as in `status.phase=Running`
    #[arg(long)]
    field_selector: Option<String>,
}

/// [`SelectArgs`], checked: nothing has been asked of a cluster yet.
#[derive(Debug)]
pub(crate) struct Selection {
    kind: String,
    pub(crate) names: Vec<String>,
    namespace: Option<String>,
    pub(crate) all_namespaces: bool,
    labels: LabelSelector,
    fields: FieldSelector,
}

impl SelectArgs {
    /// Takes out of the names what is none.
    pub(crate) fn take(&mut self, is_other: impl Fn(&str) -> bool) -> Vec<String> {
        let (others, names) = std::mem::take(&mut self.names)
            .into_iter()
            .partition(|name| is_other(name));
        self.names = names;
        others
    }

    /// Refuses what cannot be meant, before a cluster is started.
    pub(crate) fn check(self) -> Result<Selection> {
        let unreadable =
            |error: longshore::model::SelectorError| Error::from_source(Kind::Usage, &error);
        let mut names = self.names;
        let mut kind = self.kind;
        if let Some((of, name)) = kind.split_once('/') {
            names.insert(0, name.to_owned());
            kind = of.to_owned();
        }
        let selects = self.selector.is_some() || self.field_selector.is_some();
        if let Some(name) = names.first()
            && (selects || self.all_namespaces)
        {
            return Err(Error::usage(format!(
                "{name:?} is the name of one object: leave it out, or -A and the selectors"
            )));
        }
        let labels = self.selector.unwrap_or_default();
        let fields = self.field_selector.unwrap_or_default();
        Ok(Selection {
            labels: labels.parse().map_err(unreadable)?,
            fields: fields.parse().map_err(unreadable)?,
            kind,
            names,
            namespace: self.namespace,
            all_namespaces: self.all_namespaces,
        })
    }
}

impl Selection {
    /// Whether it names objects or narrows them by a selector.
    pub(crate) fn is_narrow(&self) -> bool {
        !self.names.is_empty() || !self.labels.is_everything() || !self.fields.is_everything()
    }

    /// The one object that is meant, if one is.
    pub(crate) fn only(&self) -> Option<&str> {
        match &self.names[..] {
            [name] => Some(name),
            _ => None,
        }
    }

    /// The view of what is selected.
    pub(crate) async fn view(&self, cluster: &Cluster) -> Result<View<Any>> {
        let mut view = cluster.kind(&self.kind).await?;
        if view.kind().is_namespaced() && !self.all_namespaces {
            let namespace = self.namespace.as_deref();
            let namespace = namespace.unwrap_or_else(|| cluster.default_namespace());
            view = view.in_namespace(namespace)?;
        }
        Ok(view.labels(self.labels.clone()).fields(self.fields.clone()))
    }

    /// The objects; a name that is not there is an error.
    pub(crate) async fn items(&self, view: &View<Any>) -> Result<Vec<Item<Any>>> {
        if self.names.is_empty() {
            return Ok(view.list().await?.items);
        }
        let mut items = Vec::new();
        for name in &self.names {
            items.push(view.fetch(name).await?);
        }
        Ok(items)
    }
}

/// `pod/web`, `job.batch/train`: an object in one word.
pub(crate) fn named(item: &Item<Any>) -> String {
    of_kind(item.kind(), item.name())
}

/// As [`named`], by kind and name.
pub(crate) fn of_kind(info: &longshore::model::KindInfo, name: &str) -> String {
    let group = &info.gvk.group;
    let dot = if group.is_empty() { "" } else { "." };
    format!("{}{dot}{group}/{name}", info.singular)
}

/// `No pods in the namespace default.`
pub(crate) fn nothing(view: &View<Any>) -> String {
    match view.namespace() {
        Some(namespace) => format!("No {} in the namespace {namespace}.", view.kind().plural),
        None => format!("No {}.", view.kind().plural),
    }
}
