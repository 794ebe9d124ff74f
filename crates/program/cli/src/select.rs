//! Selects the objects of a command by kind, names, namespace and selectors.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use longshore::{
    FieldSelector, LabelSelector, View,
    client::{Cluster, Item, kinds::Any},
    launcher::suggest,
    model::kind,
};

use crate::{
    complete,
    error::{Error, Kind, Result},
    target,
};

/// Arguments for objects of a kind.
#[derive(Debug, Clone, Args)]
pub(crate) struct SelectArgs {
    /// Kind, as in pods, po or jobs.batch; or KIND/NAME
    #[arg(add = ArgValueCompleter::new(complete::kinds))]
    pub(crate) kind: String,
    #[command(flatten)]
    pub(crate) which: WhichArgs,
}

/// Arguments that select objects of a kind.
#[derive(Debug, Clone, Args)]
pub(crate) struct WhichArgs {
    /// Names [default: all objects that the selectors match]
    #[arg(value_name = "NAME", add = ArgValueCompleter::new(complete::objects))]
    pub(crate) names: Vec<String>,
    /// Namespace [default: the namespace of the context]
    #[arg(long, short)]
    pub(crate) namespace: Option<String>,
    /// All namespaces
    #[arg(long, short = 'A', conflicts_with = "namespace")]
    pub(crate) all_namespaces: bool,
    /// Filter by labels, as in app=web,tier!=cache
    #[arg(long, short = 'l')]
    pub(crate) selector: Option<String>,
    /// Filter by fields, as in status.phase=Running
    #[arg(long, value_name = "SELECTOR")]
    pub(crate) field_selector: Option<String>,
}

/// Parses a label selector. Rejects an empty selector, which would select everything: it is
/// usually a mistake, such as an empty variable in a script.
pub(crate) fn labels(text: &str) -> Result<LabelSelector> {
    let selector: LabelSelector =
        text.parse()
            .map_err(|error: longshore::model::SelectorError| {
                Error::from_source(Kind::Usage, &error)
            })?;
    refuse_everything(selector.is_everything(), "--selector")?;
    Ok(selector)
}

fn fields(text: &str) -> Result<FieldSelector> {
    let selector: FieldSelector =
        text.parse()
            .map_err(|error: longshore::model::SelectorError| {
                Error::from_source(Kind::Usage, &error)
            })?;
    refuse_everything(selector.is_everything(), "--field-selector")?;
    Ok(selector)
}

fn refuse_everything(is_everything: bool, option: &str) -> Result<()> {
    match is_everything {
        true => Err(Error::usage(format!(
            "the {option} is empty, which would select every object"
        ))
        .hint(format!("omit {option} to select all objects"))),
        false => Ok(()),
    }
}

/// Validated [`SelectArgs`], before any request.
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
    /// Removes the words that are not names, and returns them.
    pub(crate) fn take(&mut self, is_other: impl Fn(&str) -> bool) -> Vec<String> {
        let (others, names) = std::mem::take(&mut self.which.names)
            .into_iter()
            .partition(|name| is_other(name));
        self.which.names = names;
        others
    }

    /// Rejects invalid combinations, before a cluster is started.
    pub(crate) fn check(self) -> Result<Selection> {
        self.which.check(self.kind)
    }
}

impl WhichArgs {
    /// Like [`SelectArgs::check`], with the kind.
    pub(crate) fn check(self, mut kind: String) -> Result<Selection> {
        let mut names = self.names;
        if let Some((of, name)) = kind.split_once('/') {
            names.insert(0, name.to_owned());
            kind = of.to_owned();
        }
        let selects = self.selector.is_some() || self.field_selector.is_some();
        if let Some(name) = names.first()
            && (selects || self.all_namespaces)
        {
            return Err(Error::usage(format!(
                "{name:?} names one object and cannot be combined with -A or a selector"
            )));
        }
        let labels = self.selector.as_deref().map(labels).transpose()?;
        let fields = self.field_selector.as_deref().map(fields).transpose()?;
        Ok(Selection {
            labels: labels.unwrap_or_default(),
            fields: fields.unwrap_or_default(),
            kind,
            names,
            namespace: self.namespace,
            all_namespaces: self.all_namespaces,
        })
    }
}

impl Selection {
    /// Returns true if the selection names objects or narrows them by a selector.
    pub(crate) fn is_narrow(&self) -> bool {
        !self.names.is_empty() || !self.labels.is_everything() || !self.fields.is_everything()
    }

    /// The name, if exactly one is given.
    pub(crate) fn only(&self) -> Option<&str> {
        match &self.names[..] {
            [name] => Some(name),
            _ => None,
        }
    }

    /// The view of the selected objects.
    pub(crate) async fn view(&self, cluster: &Cluster) -> Result<View<Any>> {
        let view = cluster.kind(&self.kind).await;
        let mut view = view.map_err(|error| unknown_kind(error, &self.kind))?;
        if view.kind().is_namespaced() && !self.all_namespaces {
            let namespace = target::namespace(self.namespace.as_deref(), cluster);
            view = view.in_namespace(namespace)?;
        }
        if !self.labels.is_everything() {
            view = view.labels(self.labels.clone());
        }
        if !self.fields.is_everything() {
            view = view.fields(self.fields.clone());
        }
        Ok(view)
    }

    /// The objects. A missing name is an error.
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

/// Adds the closest kind to an error about an unknown kind.
fn unknown_kind(error: longshore::Error, word: &str) -> Error {
    let is_unknown = matches!(error, longshore::Error::Invalid(_));
    let word = word.to_ascii_lowercase();
    let known = kind::BUILTIN.iter();
    let names = known.flat_map(|info| [&*info.plural, &*info.singular]);
    let near = suggest::nearest(&word, names).filter(|_| is_unknown);
    match near {
        Some(near) => Error::from(error).hint(format!("did you mean {near}?")),
        None => error.into(),
    }
}

/// Adds the closest kind to an error about the kind of an object.
pub(crate) fn unknown_kind_of(error: longshore::Error, object: &serde_json::Value) -> Error {
    let kind = object["kind"].as_str().unwrap_or_default();
    let names = kind::BUILTIN.iter().map(|info| &*info.gvk.kind);
    let near = suggest::nearest(kind, names).filter(|near| *near != kind);
    match near {
        Some(near) if matches!(error, longshore::Error::Invalid(_)) => {
            Error::from(error).hint(format!("did you mean {near}?"))
        }
        _ => error.into(),
    }
}

/// `pod/web`, `job.batch/train`: an object in one word.
pub(crate) fn named(item: &Item<Any>) -> String {
    of_kind(item.kind(), item.name())
}

/// Like [`named`], by kind and name.
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
