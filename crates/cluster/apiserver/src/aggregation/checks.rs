//! Checks the server of an APIService, and reads its discovery documents.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use longshore_engine::{Engine, ListRequest, Object, ReadVersion};
use longshore_model::{LabelSelector, kind::builtin};
use longshore_schema::openapi::V2Part;
use serde_json::Value;
use tokio::{sync::watch, time::sleep};

use super::{
    Aggregation, Discovered, KIND,
    availability::{self, Availability, Evidence},
    convert,
    index::Remote,
    requests,
    server::Document,
};
use crate::{remote::service, user::User};

/// Interval between checks of an available server.
const RECHECK: Duration = Duration::from_secs(30);
/// The delay after the first failed check. Each further failure doubles it.
const FIRST_RETRY: Duration = Duration::from_millis(5);
/// Time limit of a request to a server, as in Kubernetes.
const CHECK_TIME: Duration = Duration::from_secs(5);
const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

/// The parts of the server that the tasks use.
#[derive(Clone)]
pub(super) struct Parts {
    pub(super) aggregation: Arc<Aggregation>,
    pub(super) engine: Engine,
}

/// Checks a server when its objects change, and at intervals.
pub(super) async fn check_repeatedly(
    parts: Parts,
    remote: Arc<Remote>,
    mut recheck: watch::Receiver<()>,
) {
    let mut failures: u32 = 0;
    loop {
        recheck.borrow_and_update();
        let seen = Found::read(&parts.engine, &remote);
        let availability = check(&parts, &remote, &seen).await;
        let is_available = availability.is_available;
        let discovered = match is_available {
            true => discover(&parts, &remote).await,
            false => None,
        };
        parts.aggregation.learn(&remote.service.name, discovered);
        if let Some(kind) = KIND.first() {
            let name = &remote.service.name;
            let set = requests::set_condition(&parts.engine, kind, name, &availability).await;
            if let Err(error) = set {
                tracing::warn!(%error, name, "cannot write the status of an APIService");
            }
        }
        let delay = match is_available {
            true => {
                failures = 0;
                RECHECK
            }
            false => {
                failures = failures.saturating_add(1);
                let factor = 2_u32.saturating_pow(failures.saturating_sub(1));
                FIRST_RETRY.saturating_mul(factor).min(RECHECK)
            }
        };
        let changed = async {
            // Until an object of this server changes.
            while Found::read(&parts.engine, &remote).revisions() == seen.revisions() {
                if recheck.changed().await.is_err() {
                    return false;
                }
            }
            true
        };
        tokio::select! {
            () = sleep(delay) => {}
            is_open = changed => match is_open {
                true => failures = 0,
                false => return,
            },
        }
    }
}

/// Checks the Service of a version, its endpoints, and its discovery document.
async fn check(parts: &Parts, remote: &Remote, found: &Found) -> Availability {
    let (engine, backend) = (&parts.engine, &remote.backend);
    let resolved = service::resolve(engine, &backend.namespace, &backend.name, backend.port);
    let slices: Vec<Value> = found.slices.iter().map(|slice| slice.value()).collect();
    let found = found.service.as_ref().map(|service| service.value());
    let evidence = Evidence {
        service: found.as_ref(),
        slices: &slices,
        has_sockets: resolved.is_ok(),
    };
    if let Some(failed) = availability::check(backend, &evidence) {
        return failed;
    }
    let host = found
        .as_ref()
        .and_then(|found| found["spec"]["clusterIP"].as_str());
    let host = host.filter(|host| !matches!(*host, "" | "None"));
    let host = host.map_or_else(|| remote.host(), str::to_owned);
    let path = remote.service.path();
    let url = format!("https://{host}:{}{path}", backend.port);
    let user = aggregator(&["system:masters"]);
    let asked = parts
        .aggregation
        .read(engine, remote, Document::json(&path), &user);
    let problem = match tokio::time::timeout(CHECK_TIME, asked).await {
        Ok(Ok((code, ..))) if code.is_success() => return Availability::passed(),
        Ok(Ok((code, ..))) => format!("bad status from {url}: {}", code.as_u16()),
        Ok(Err(problem)) => format!("Get {url:?}: {problem}"),
        Err(_) => format!("Get {url:?}: context deadline exceeded"),
    };
    let message = format!("failing or missing response from {url}: {problem}");
    Availability::failed("FailedDiscoveryCheck", message)
}

/// The Service of a server and its EndpointSlices.
struct Found {
    service: Option<Arc<Object>>,
    slices: Vec<Arc<Object>>,
}

impl Found {
    fn read(engine: &Engine, remote: &Remote) -> Self {
        let backend = &remote.backend;
        let (namespace, name) = (&backend.namespace, &backend.name);
        let service = builtin("", "Service").and_then(|kind| {
            let found = engine.get(kind, Some(namespace), name, ReadVersion::Latest);
            found.ok()
        });
        Self {
            service,
            slices: slices(engine, namespace, name).unwrap_or_default(),
        }
    }

    fn revisions(&self) -> Vec<u64> {
        let objects = self.service.iter().chain(&self.slices);
        objects.map(|object| object.revision()).collect()
    }
}

fn slices(engine: &Engine, namespace: &str, name: &str) -> Option<Vec<Arc<Object>>> {
    let label = ("kubernetes.io/service-name".to_owned(), name.to_owned());
    let request = ListRequest {
        namespace: Some(namespace.to_owned()),
        labels: LabelSelector::exactly([label]).ok()?,
        ..ListRequest::of(Arc::new(
            builtin("discovery.k8s.io", "EndpointSlice")?.clone(),
        ))
    };
    Some(engine.list(&request).ok()?.items)
}

fn aggregator(groups: &[&str]) -> User {
    User {
        name: "system:kube-aggregator".into(),
        groups: groups.iter().map(|group| (*group).to_owned()).collect(),
        ..User::default()
    }
}

/// Reads the discovery documents of a version.
async fn discover(parts: &Parts, remote: &Remote) -> Option<Discovered> {
    let (group, version) = (&remote.service.group, &remote.service.version);
    let groups = Document {
        accept: AGGREGATED,
        ..Document::json("/apis")
    };
    let aggregated = read(parts, remote, groups).await;
    let resources = aggregated.and_then(|found| convert::of_aggregated(&found, group, version));
    let resources = match resources {
        Some(resources) => resources,
        None => {
            let path = remote.service.path();
            let legacy = read(parts, remote, Document::json(&path)).await?;
            convert::of_legacy(&legacy, group, version)?
        }
    };
    let openapi = read(parts, remote, Document::json("/openapi/v3")).await;
    let known = parts.aggregation.known(&remote.service.name);
    let known = known.unwrap_or_default();
    let found = Discovered {
        resources,
        openapi: openapi.and_then(|found| convert::openapi_paths(&found, group, version)),
        openapi_v2: known.openapi_v2,
        openapi_v2_tag: known.openapi_v2_tag,
        is_stale: false,
    };
    Some(with_openapi_v2(parts, remote, found).await)
}

/// Reads the document of OpenAPI v2 if it has changed. The known document remains if the server
/// does not respond.
async fn with_openapi_v2(parts: &Parts, remote: &Remote, known: Discovered) -> Discovered {
    let document = Document {
        known: known.openapi_v2_tag.as_deref(),
        ..Document::json("/openapi/v2")
    };
    let Some((code, headers, body)) = respond(parts, remote, document).await else {
        return known;
    };
    let (part, tag) = match code {
        StatusCode::NOT_FOUND => (None, None),
        StatusCode::OK => {
            let document = serde_json::from_slice(&body).unwrap_or_default();
            let prefix = format!("{}/", remote.service.path());
            let tag = headers.get(header::ETAG).and_then(|tag| tag.to_str().ok());
            (V2Part::below(document, &prefix), tag.map(str::to_owned))
        }
        _ => return known,
    };
    Discovered {
        openapi_v2: part.map(Arc::new),
        openapi_v2_tag: tag,
        ..known
    }
}

/// Reads a document; `None` without a successful response.
async fn read(parts: &Parts, remote: &Remote, document: Document<'_>) -> Option<Value> {
    let (code, _, body) = respond(parts, remote, document).await?;
    let body = code.is_success().then_some(body)?;
    serde_json::from_slice(&body).ok()
}

async fn respond(
    parts: &Parts,
    remote: &Remote,
    document: Document<'_>,
) -> Option<(StatusCode, HeaderMap, Bytes)> {
    let user = aggregator(&["system:masters"]);
    let reading = parts
        .aggregation
        .read(&parts.engine, remote, document, &user);
    match tokio::time::timeout(CHECK_TIME, reading).await {
        Ok(Ok(response)) => Some(response),
        Ok(Err(problem)) => {
            let (name, path) = (&remote.service.name, document.path);
            tracing::debug!(
                name,
                path,
                problem,
                "cannot read a document of an aggregated API server"
            );
            None
        }
        Err(_) => None,
    }
}
