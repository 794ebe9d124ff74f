//! Which kinds the cluster serves: asked once, when a kind is wanted that
//! this crate does not know.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use longshore_model::{
    Gvk, KindInfo, Scope,
    kind::{self, Words},
};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    error::{Error, Result},
    transport::{Call, JSON, Transport},
};

/// A kind that the cluster serves, and its short names.
#[derive(Debug, Clone)]
struct Served {
    info: Arc<KindInfo>,
    short_names: Vec<String>,
}

impl Served {
    fn is_called(&self, word: &str) -> bool {
        let word = word.to_ascii_lowercase();
        let (name, group) = word.split_once('.').unwrap_or((&word, ""));
        self.info.is_called(&word)
            || (self.short_names.iter().any(|short| short == name)
                && (group.is_empty() || group == self.info.gvk.group))
    }
}

/// What to do about a kind that is not there.
const LISTED: &str = "`kubectl api-resources` lists those it has";
const NO_WORD: &str = "no kind is named: give one, as in \"pods\", or in \"v1\" and \"Pod\"";

/// The kinds of a cluster, once they have been asked for: in each version, the
/// preferred one first.
#[derive(Debug, Default)]
pub(crate) struct Discovery {
    known: Mutex<Option<Arc<Vec<Served>>>>,
    asking: tokio::sync::Mutex<()>,
}

impl Discovery {
    /// The kind a person means by `word`.
    pub(crate) async fn called(&self, transport: &Transport, word: &str) -> Result<Arc<KindInfo>> {
        if word.trim().is_empty() {
            return Err(Error::Invalid(NO_WORD.to_owned()));
        }
        if let Some(info) = kind::called(word) {
            return Ok(Arc::new(info.clone()));
        }
        self.find(transport, |served| served.is_called(word))
            .await?
            .ok_or_else(|| {
                Error::Invalid(format!(
                    "the cluster at {} has no kind {word:?}: {LISTED}",
                    transport.url()
                ))
            })
    }

    /// The kind of an object's own words.
    pub(crate) async fn of_type(&self, transport: &Transport, gvk: &Gvk) -> Result<Arc<KindInfo>> {
        if gvk.kind.trim().is_empty() || gvk.version.trim().is_empty() {
            return Err(Error::Invalid(NO_WORD.to_owned()));
        }
        let found = self
            .find(transport, |served| served.info.gvk == *gvk)
            .await?;
        if let Some(info) = found {
            return Ok(info);
        }
        let others = self.known.lock().clone().unwrap_or_default();
        let others: Vec<String> = others
            .iter()
            .map(|served| &served.info)
            .filter(|info| info.gvk.group == gvk.group && info.gvk.kind == gvk.kind)
            .map(|info| info.api_version())
            .collect();
        let remedy = if others.is_empty() {
            LISTED.to_owned()
        } else {
            format!("it has it in {}", others.join(", "))
        };
        let url = transport.url();
        Err(Error::Invalid(format!(
            "the cluster at {url} has no kind {gvk}: {remedy}"
        )))
    }

    /// The kind at a place of the API, in whichever version.
    pub(crate) async fn of_place(
        &self,
        transport: &Transport,
        group: &str,
        plural: &str,
    ) -> Result<Option<Arc<KindInfo>>> {
        self.find(transport, |served| {
            served.info.gvk.group == group && served.info.plural == plural
        })
        .await
    }

    /// What is not known may have come since: then the cluster is asked anew.
    async fn find(
        &self,
        transport: &Transport,
        wanted: impl Fn(&Served) -> bool,
    ) -> Result<Option<Arc<KindInfo>>> {
        let search = |known: &[Served]| {
            known
                .iter()
                .find(|served| wanted(served))
                .map(|served| served.info.clone())
        };
        let before = self.known.lock().clone();
        if let Some(found) = before.as_deref().and_then(|known| search(known)) {
            return Ok(Some(found));
        }
        let _one = self.asking.lock().await;
        let now = self.known.lock().clone();
        let asked_meanwhile = match (&before, &now) {
            (Some(before), Some(now)) => !Arc::ptr_eq(before, now),
            (None, now) => now.is_some(),
            (Some(_), None) => false,
        };
        if asked_meanwhile {
            return Ok(now.as_deref().and_then(|known| search(known)));
        }
        let known = Arc::new(ask(transport).await?);
        *self.known.lock() = Some(known.clone());
        Ok(search(&known))
    }
}

const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

async fn ask(transport: &Transport) -> Result<Vec<Served>> {
    let (core, groups) = futures::try_join!(root(transport, "/api"), root(transport, "/apis"))?;
    Ok(core.into_iter().chain(groups).collect())
}

/// So many versions are asked for at a time.
const AT_ONCE: usize = 8;

/// One root: with all its resources when the server aggregates them, else
/// with one request more for each version of each group.
async fn root(transport: &Transport, path: &str) -> Result<Vec<Served>> {
    let value = read(transport, path, AGGREGATED).await?;
    if value["kind"] == "APIGroupDiscoveryList" {
        return parse::<Aggregated>(path, value).map(Aggregated::served);
    }
    let versions: Vec<String> = if path == "/api" {
        parse::<CoreVersions>(path, value)?
            .versions
            .into_iter()
            .take(1)
            .collect()
    } else {
        let groups = parse::<Groups>(path, value)?.groups;
        groups.into_iter().flat_map(Group::versions).collect()
    };
    let asked = versions.into_iter().map(|version| {
        let path = format!("{path}/{version}");
        of_version(transport.clone(), path, version)
    });
    let answers: Vec<Vec<Served>> = stream::iter(asked).buffered(AT_ONCE).try_collect().await?;
    Ok(answers.into_iter().flatten().collect())
}

async fn of_version(transport: Transport, path: String, version: String) -> Result<Vec<Served>> {
    match read(&transport, &path, JSON).await {
        Ok(value) => Ok(parse::<Resources>(&path, value)?.served(&version)),
        // A group whose own server is away must not hide the others.
        Err(error) if error.code().is_some() => {
            tracing::warn!(%error, "a group's kinds are not known");
            Ok(Vec::new())
        }
        Err(error) => Err(error),
    }
}

async fn read(transport: &Transport, path: &str, accept: &'static str) -> Result<Value> {
    let mut call = Call::get(path);
    call.accept = accept;
    transport.json(&call).await
}

fn parse<T: serde::de::DeserializeOwned>(path: &str, value: Value) -> Result<T> {
    serde_json::from_value(value)
        .map_err(|error| Error::decode(format!("the answer to GET {path}"), error))
}

fn served(
    (group, version, kind): (&str, &str, &str),
    (plural, singular): (&str, &str),
    namespaced: bool,
    subresources: &[&str],
    short_names: Vec<String>,
) -> Served {
    let info = KindInfo {
        gvk: Gvk {
            group: group.to_owned().into(),
            version: version.to_owned().into(),
            kind: kind.to_owned().into(),
        },
        plural: plural.to_owned().into(),
        singular: if singular.is_empty() {
            kind.to_lowercase()
        } else {
            singular.to_owned()
        }
        .into(),
        // Short names known only at run time are kept beside.
        short_names: Words::default(),
        categories: Words::default(),
        scope: if namespaced {
            Scope::Namespaced
        } else {
            Scope::Cluster
        },
        subresources: subresources.iter().map(|name| (*name).to_owned()).collect(),
        list_kind: None,
    };
    Served {
        info: Arc::new(info),
        short_names,
    }
}

#[derive(Deserialize)]
struct Aggregated {
    #[serde(default)]
    items: Vec<AggregatedGroup>,
}

#[derive(Deserialize)]
struct AggregatedGroup {
    #[serde(default)]
    metadata: GroupMeta,
    #[serde(default)]
    versions: Vec<AggregatedVersion>,
}

#[derive(Deserialize, Default)]
struct GroupMeta {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct AggregatedVersion {
    version: String,
    #[serde(default)]
    resources: Vec<AggregatedResource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AggregatedResource {
    resource: String,
    #[serde(default)]
    response_kind: ResponseKind,
    #[serde(default)]
    scope: String,
    #[serde(default)]
    singular_resource: String,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    subresources: Vec<AggregatedSubresource>,
}

#[derive(Deserialize, Default)]
struct ResponseKind {
    #[serde(default)]
    kind: String,
}

#[derive(Deserialize)]
struct AggregatedSubresource {
    subresource: String,
}

impl Aggregated {
    /// Versions come newest and preferred first: a kind's first one is the one
    /// meant by its name alone.
    fn served(self) -> Vec<Served> {
        let mut all: Vec<Served> = Vec::new();
        for group in self.items {
            for version in group.versions {
                for resource in version.resources {
                    let subresources: Vec<&str> = resource
                        .subresources
                        .iter()
                        .map(|sub| sub.subresource.as_str())
                        .collect();
                    all.push(served(
                        (
                            &group.metadata.name,
                            &version.version,
                            &resource.response_kind.kind,
                        ),
                        (&resource.resource, &resource.singular_resource),
                        resource.scope == "Namespaced",
                        &subresources,
                        resource.short_names,
                    ));
                }
            }
        }
        all
    }
}

#[derive(Deserialize)]
struct CoreVersions {
    #[serde(default)]
    versions: Vec<String>,
}

#[derive(Deserialize)]
struct Groups {
    #[serde(default)]
    groups: Vec<Group>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    #[serde(default)]
    versions: Vec<GroupVersion>,
    preferred_version: Option<GroupVersion>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GroupVersion {
    group_version: String,
}

impl Group {
    /// Group and version, the preferred one first.
    fn versions(self) -> Vec<String> {
        let preferred = self.preferred_version.into_iter();
        let mut names: Vec<String> = Vec::new();
        for GroupVersion { group_version } in preferred.chain(self.versions) {
            if !names.contains(&group_version) {
                names.push(group_version);
            }
        }
        names
    }
}

#[derive(Deserialize)]
struct Resources {
    #[serde(default)]
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    name: String,
    #[serde(default)]
    singular_name: String,
    #[serde(default)]
    namespaced: bool,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    short_names: Vec<String>,
}

impl Resources {
    fn served(self, group_version: &str) -> Vec<Served> {
        let (group, version) = group_version.split_once('/').unwrap_or(("", group_version));
        let subresources_of = |plural: &str| -> Vec<&str> {
            self.resources
                .iter()
                .filter_map(|resource| resource.name.strip_prefix(plural)?.strip_prefix('/'))
                .collect()
        };
        self.resources
            .iter()
            .filter(|resource| !resource.name.contains('/'))
            .map(|resource| {
                served(
                    (group, version, &resource.kind),
                    (&resource.name, &resource.singular_name),
                    resource.namespaced,
                    &subresources_of(&resource.name),
                    resource.short_names.clone(),
                )
            })
            .collect()
    }
}
