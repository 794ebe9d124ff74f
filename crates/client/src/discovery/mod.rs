//! Which kinds the cluster serves: asked once, when a kind is wanted that
//! this crate does not know.

mod answers;

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use longshore_model::{Gvk, KindInfo, kind};
use serde_json::Value;

use crate::{
    error::{Error, Result},
    locks::Mutex,
    transport::{Call, JSON, Transport},
};
use answers::{Aggregated, CoreVersions, Group, Groups, Resources, Served};

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
        let others: Vec<String> = self
            .known_versions(gvk)
            .iter()
            .map(|info| info.api_version())
            .collect();
        let remedy = if others.is_empty() {
            LISTED.to_owned()
        } else {
            format!("it has it in {}", others.join(", "))
        };
        Err(missing(transport, gvk, &remedy))
    }

    /// A kind in each version that the cluster serves, the preferred one first.
    pub(crate) async fn versions(
        &self,
        transport: &Transport,
        gvk: &Gvk,
    ) -> Result<Vec<Arc<KindInfo>>> {
        let any = self.find(transport, |served| is_same(&served.info, gvk));
        match any.await? {
            Some(_) => Ok(self.known_versions(gvk)),
            None => Err(missing(transport, gvk, LISTED)),
        }
    }

    fn known_versions(&self, gvk: &Gvk) -> Vec<Arc<KindInfo>> {
        let known = self.known.lock().clone().unwrap_or_default();
        let infos = known.iter().map(|served| &served.info);
        infos.filter(|info| is_same(info, gvk)).cloned().collect()
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

/// Whether it is the kind, in any version.
fn is_same(info: &KindInfo, gvk: &Gvk) -> bool {
    info.gvk.group == gvk.group && info.gvk.kind == gvk.kind
}

fn missing(transport: &Transport, gvk: &Gvk, remedy: &str) -> Error {
    let url = transport.url();
    Error::Invalid(format!("the cluster at {url} has no kind {gvk}: {remedy}"))
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
