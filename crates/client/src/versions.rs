//! Kinds that a server has in another version than this crate expects: an old
//! server has a kind in an older version, one of the future may have it in a
//! newer one alone. Found out by discovery, when the server does not know the
//! path of the usual version; and remembered.

use std::collections::HashMap;

use serde_json::Value;

use crate::{
    discovery::Discovery,
    error::{Error, Result},
    locks::RwLock,
    transport::{Call, Transport},
};

/// What API servers say of a path that leads to no kind; of an object that is
/// not there they say more.
const NO_KIND: [&str; 2] = [
    "404 page not found",
    "the server could not find the requested resource",
];

/// Where a kind is, in paths.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Place {
    group: String,
    version: String,
    plural: String,
}

impl Place {
    /// The kind that a path is about; the core group has one version only.
    fn of(path: &str) -> Option<Self> {
        let mut steps = path.strip_prefix("/apis/")?.split('/');
        let (group, version) = (steps.next()?, steps.next()?);
        let plural = match steps.next()? {
            "namespaces" => steps.nth(1)?,
            plural => plural,
        };
        let plural = plural.split('?').next()?;
        Some(Self {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: plural.to_owned(),
        })
    }

    fn prefix(&self, version: &str) -> String {
        format!("/apis/{}/{version}/", self.group)
    }
}

/// The version to use instead, by place.
#[derive(Debug, Default)]
pub(crate) struct Versions {
    moved: RwLock<HashMap<Place, String>>,
}

impl Versions {
    fn version(&self, place: &Place) -> Option<String> {
        let moved = self.moved.read();
        // Almost always empty: most requests end here.
        if moved.is_empty() {
            return None;
        }
        moved.get(place).cloned()
    }

    /// The call as this server understands it, as far as is known.
    pub(crate) fn adapt(&self, call: &Call) -> Option<Call> {
        if self.moved.read().is_empty() {
            return None;
        }
        let place = Place::of(&call.path)?;
        Some(moved(call, &place, &self.version(&place)?))
    }

    /// `apiVersion` of a kind of this server.
    pub(crate) fn api_version(&self, info: &longshore_model::KindInfo) -> String {
        let place = Place {
            group: info.gvk.group.to_string(),
            version: info.gvk.version.to_string(),
            plural: info.plural.to_string(),
        };
        match self.version(&place) {
            Some(version) => format!("{}/{version}", place.group),
            None => info.api_version(),
        }
    }

    /// The call to send instead of one that the server refused, if it has the
    /// kind in another version.
    pub(crate) async fn instead(
        &self,
        discovery: &Discovery,
        transport: &Transport,
        call: &Call,
        error: &Error,
    ) -> Result<Option<Call>> {
        let unknown = error
            .status()
            .is_some_and(|status| NO_KIND.contains(&status.message.as_str()));
        if !unknown {
            return Ok(None);
        }
        let Some(place) = Place::of(&call.path) else {
            return Ok(None);
        };
        let served = discovery.of_place(transport, &place.group, &place.plural);
        let Some(version) = served.await?.map(|info| info.gvk.version.to_string()) else {
            return Ok(None);
        };
        if version == place.version {
            return Ok(None);
        }
        tracing::debug!(
            group = place.group,
            plural = place.plural,
            version,
            "another version is served"
        );
        let instead = moved(call, &place, &version);
        self.moved.write().insert(place, version);
        Ok(Some(instead))
    }
}

/// The same call of another version.
fn moved(call: &Call, place: &Place, version: &str) -> Call {
    let mut call = call.clone();
    let rest = call.path.split_off(place.prefix(&place.version).len());
    call.path = place.prefix(version) + &rest;
    let usual = format!("{}/{}", place.group, place.version);
    if let Ok(Value::Object(mut object)) = serde_json::from_slice(&call.body)
        && object.get("apiVersion").is_some_and(|own| *own == usual)
    {
        let own = format!("{}/{version}", place.group);
        object.insert("apiVersion".to_owned(), own.into());
        call.body = Value::Object(object).to_string().into();
    }
    call
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use http::Method;

    use super::*;

    #[test]
    fn places_are_found_in_paths() {
        let place = |path| Place::of(path).map(|place| place.plural);
        assert_eq!(place("/apis/batch/v1/cronjobs").unwrap(), "cronjobs");
        assert_eq!(
            place("/apis/batch/v1/namespaces/a/jobs/b/status").unwrap(),
            "jobs"
        );
        assert_eq!(place("/api/v1/pods"), None);
        assert_eq!(place("/apis/batch"), None);
        assert_eq!(place("/version"), None);
    }

    #[test]
    fn path_and_body_move_together() {
        let call = Call::new(Method::POST, "/apis/batch/v1/namespaces/a/cronjobs")
            .json(&serde_json::json!({"apiVersion": "batch/v1", "kind": "CronJob"}))
            .unwrap();
        let place = Place::of(&call.path).unwrap();
        let call = moved(&call, &place, "v1beta1");
        assert_eq!(call.path, "/apis/batch/v1beta1/namespaces/a/cronjobs");
        let body: Value = serde_json::from_slice(&call.body).unwrap();
        assert_eq!(body["apiVersion"], "batch/v1beta1");
    }
}
