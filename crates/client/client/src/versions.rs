//! Kinds that the server has in another version than this crate expects: old servers have
//! some kinds only in an older version, and future servers may have some only in a newer
//! one. If the server does not know the path of a request, discovery finds the version that
//! it serves. Later requests use that version.

use std::collections::HashMap;

use serde_json::Value;

use crate::{
    discovery::Discovery,
    error::{Error, Result},
    locks::RwLock,
    transport::{Call, Transport},
};

/// The messages of API servers for an unknown path. The message for an object that does not
/// exist contains its name.
const UNKNOWN_PATH: [&str; 2] = [
    "404 page not found",
    "the server could not find the requested resource",
];

/// Group, version and resource, as in the path of a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Gvr {
    group: String,
    version: String,
    plural: String,
}

impl Gvr {
    /// Parses the path of a request. `None` for the core group, which has only one version.
    fn of(path: &str) -> Option<Self> {
        let mut segments = path.strip_prefix("/apis/")?.split('/');
        let (group, version) = (segments.next()?, segments.next()?);
        let plural = match segments.next()? {
            "namespaces" => segments.nth(1)?,
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

/// The versions that the server has instead of those that this crate expects.
#[derive(Debug, Default)]
pub(crate) struct Versions {
    served: RwLock<HashMap<Gvr, String>>,
}

impl Versions {
    fn version(&self, gvr: &Gvr) -> Option<String> {
        let served = self.served.read();
        // Usually empty: avoids computing the hash.
        if served.is_empty() {
            return None;
        }
        served.get(gvr).cloned()
    }

    /// Returns the call in the version that this server has, if it is known to have another
    /// version.
    pub(crate) fn in_served_version(&self, call: &Call) -> Option<Call> {
        if self.served.read().is_empty() {
            return None;
        }
        let gvr = Gvr::of(&call.path)?;
        Some(with_version(call, &gvr, &self.version(&gvr)?))
    }

    /// Returns the `apiVersion` of a kind on this server.
    pub(crate) fn api_version(&self, info: &longshore_model::KindInfo) -> String {
        let gvr = Gvr {
            group: info.gvk.group.to_string(),
            version: info.gvk.version.to_string(),
            plural: info.plural.to_string(),
        };
        match self.version(&gvr) {
            Some(version) => format!("{}/{version}", gvr.group),
            None => info.api_version(),
        }
    }

    /// Returns a replacement for a call that failed with `error`, if the server has the kind in
    /// another version.
    ///
    /// # Errors
    /// The errors of discovery requests.
    pub(crate) async fn replacement_for(
        &self,
        discovery: &Discovery,
        transport: &Transport,
        call: &Call,
        error: &Error,
    ) -> Result<Option<Call>> {
        let unknown = error
            .status()
            .is_some_and(|status| UNKNOWN_PATH.contains(&status.message.as_str()));
        if !unknown {
            return Ok(None);
        }
        let Some(gvr) = Gvr::of(&call.path) else {
            return Ok(None);
        };
        let served = discovery.by_resource(transport, &gvr.group, &gvr.plural);
        let Some(version) = served.await?.map(|info| info.gvk.version.to_string()) else {
            return Ok(None);
        };
        if version == gvr.version {
            return Ok(None);
        }
        tracing::debug!(
            group = gvr.group,
            plural = gvr.plural,
            version,
            "the server has another version"
        );
        let instead = with_version(call, &gvr, &version);
        self.served.write().insert(gvr, version);
        Ok(Some(instead))
    }
}

/// Changes the version in the path of a call, and in its body.
fn with_version(call: &Call, gvr: &Gvr, version: &str) -> Call {
    let mut call = call.clone();
    let rest = call.path.split_off(gvr.prefix(&gvr.version).len());
    call.path = gvr.prefix(version) + &rest;
    let old = format!("{}/{}", gvr.group, gvr.version);
    if let Ok(Value::Object(mut object)) = serde_json::from_slice(&call.body)
        && object.get("apiVersion").is_some_and(|found| *found == old)
    {
        let new = format!("{}/{version}", gvr.group);
        object.insert("apiVersion".to_owned(), new.into());
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
    fn resources_are_parsed_from_paths() {
        let plural = |path| Gvr::of(path).map(|gvr| gvr.plural);
        assert_eq!(plural("/apis/batch/v1/cronjobs").unwrap(), "cronjobs");
        assert_eq!(
            plural("/apis/batch/v1/namespaces/a/jobs/b/status").unwrap(),
            "jobs"
        );
        assert_eq!(plural("/api/v1/pods"), None);
        assert_eq!(plural("/apis/batch"), None);
        assert_eq!(plural("/version"), None);
    }

    #[test]
    fn the_version_changes_in_path_and_body() {
        let call = Call::new(Method::POST, "/apis/batch/v1/namespaces/a/cronjobs")
            .json(&serde_json::json!({"apiVersion": "batch/v1", "kind": "CronJob"}))
            .unwrap();
        let gvr = Gvr::of(&call.path).unwrap();
        let call = with_version(&call, &gvr, "v1beta1");
        assert_eq!(call.path, "/apis/batch/v1beta1/namespaces/a/cronjobs");
        let body: Value = serde_json::from_slice(&call.body).unwrap();
        assert_eq!(body["apiVersion"], "batch/v1beta1");
    }
}
