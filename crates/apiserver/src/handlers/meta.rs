//! What the server tells of itself: health, version, discovery, OpenAPI.

use std::sync::{LazyLock, Mutex, PoisonError};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use longshore_engine::Served;
use longshore_model::KindInfo;
use longshore_schema::openapi;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::plain_shape;
use crate::{
    body::Body,
    discovery::Catalog,
    fault::Fault,
    input,
    negotiate::{self, Shape, negotiate},
    reply::{self, Reply},
    route::Route,
    server::Documents,
    service::Call,
};

/// The version of Kubernetes' API spoken here.
const GIT_VERSION: &str = "v1.34.0";

pub(super) async fn dispatch(call: Call, route: Route) -> Reply {
    let catalog = || Catalog::new(&call.shared.engine.kinds());
    match route {
        Route::Health(name, check) => health(&call, name, check.as_deref()),
        Route::Metrics => Ok(reply::with_type(
            StatusCode::OK,
            "text/plain; version=0.0.4; charset=utf-8",
            Body::full(call.shared.metrics.text()),
        )),
        Route::Version => {
            plain_shape(&call)?;
            Ok(reply::value(StatusCode::OK, &version()))
        }
        Route::CoreVersions => groups(&call, true, catalog().core_versions()),
        Route::Groups => groups(&call, false, catalog().groups()),
        Route::Group(group) => found(&call, catalog().group(&group)),
        Route::GroupVersion { group, version } => {
            found(&call, catalog().resources(&group, &version))
        }
        Route::Root => {
            plain_shape(&call)?;
            Ok(reply::value(
                StatusCode::OK,
                &json!({"paths": paths(&call)}),
            ))
        }
        Route::OpenApiV2 => openapi_v2(&call).await,
        Route::OpenApiV3Index => {
            let document = cached(&call, "v3", |kinds| {
                Some(json_bytes(&openapi::v3_index(kinds)))
            });
            tagged(&call, "application/json", document.await?)
        }
        Route::OpenApiV3(group_version) => {
            let name = format!("v3/{group_version}");
            let document = cached(&call, &name, move |kinds| {
                openapi::v3_document(kinds, &group_version)
                    .as_ref()
                    .map(json_bytes)
            });
            tagged(&call, "application/json", document.await?)
        }
        Route::Resource(_) | Route::Own(_) => Err(Fault::unknown_path()),
    }
}

/// What is looked at when health is asked for. All of it holds as long as the
/// server answers: its parts live and die together.
const CHECKS: &[&str] = &["ping", "log", "etcd"];
/// What readiness needs beyond that.
const READY_CHECKS: &[&str] = &["ping", "log", "etcd", "informer-sync", "shutdown"];

fn health(call: &Call, name: &str, single: Option<&str>) -> Reply {
    let checks = if name == "readyz" {
        READY_CHECKS
    } else {
        CHECKS
    };
    if single.is_some_and(|single| !checks.contains(&single)) {
        return Err(Fault::unknown_path());
    }
    let text = if single.is_none() && call.query.first("verbose").is_some() {
        let excluded = call.query.all("exclude");
        let mut lines: Vec<String> = checks
            .iter()
            .map(|check| {
                let is_excluded = excluded.iter().any(|name| name == check);
                format!(
                    "[+]{check} {}ok\n",
                    if is_excluded { "excluded: " } else { "" }
                )
            })
            .collect();
        let unknown = excluded
            .iter()
            .filter(|name| !checks.contains(&name.as_str()));
        let unknown: Vec<String> = unknown.map(|name| format!("{name:?}")).collect();
        if !unknown.is_empty() {
            lines.push(format!(
                "warn: some health checks cannot be excluded: no matches for {}\n",
                unknown.join(",")
            ));
        }
        format!("{}{name} check passed\n", lines.concat())
    } else {
        "ok".to_owned()
    };
    let text = Body::full(text);
    Ok(reply::with_type(
        StatusCode::OK,
        "text/plain; charset=utf-8",
        text,
    ))
}

fn version() -> Value {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    json!({
        "major": "1",
        "minor": "34",
        "gitVersion": GIT_VERSION,
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{architecture}", std::env::consts::OS),
    })
}

fn paths(call: &Call) -> Vec<String> {
    let mut paths: Vec<String> = [
        "/api",
        "/apis",
        "/healthz",
        "/livez",
        "/metrics",
        "/openapi/v2",
        "/openapi/v3",
        "/readyz",
        "/version",
    ]
    .map(str::to_owned)
    .into();
    for info in call.shared.engine.kinds() {
        if !info.gvk.group.is_empty() {
            paths.push(format!("/apis/{}", info.gvk.group));
        }
        paths.push(info.api_path());
    }
    paths.sort();
    paths.dedup();
    paths
}

/// `/api` and `/apis`: aggregated discovery for who asks, the old document
/// for the others.
fn groups(call: &Call, core: bool, old: Value) -> Reply {
    let wanted = negotiate(&call.headers, |shape| {
        matches!(shape, Shape::Object | Shape::Discovery(_))
    })?;
    let (media_type, document) = match wanted.shape {
        Shape::Discovery(version) => {
            let catalog = Catalog::new(&call.shared.engine.kinds());
            let media_type = match version {
                "v2" => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
                _ => "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
            };
            (media_type, catalog.aggregated(core, version))
        }
        _ => ("application/json", old),
    };
    let mut response = tagged(call, media_type, json_bytes(&document))?;
    response
        .headers_mut()
        .insert(header::VARY, HeaderValue::from_static("Accept"));
    Ok(response)
}

fn found(call: &Call, document: Option<Value>) -> Reply {
    let wanted = plain_shape(call)?;
    let document = document.ok_or_else(Fault::unknown_path)?;
    reply::document(StatusCode::OK, wanted.encoding, json_bytes(&document))
}

async fn openapi_v2(call: &Call) -> Reply {
    const PROTOBUF: &[&str] = &[
        "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
        "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
    ];
    if !negotiate::asks_for(&call.headers, PROTOBUF) {
        return Err(Fault::not_acceptable());
    }
    let document = cached(call, "v2", |kinds| Some(openapi::v2_protobuf(kinds).into())).await?;
    tagged(
        call,
        "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
        document,
    )
}

/// A document that is made once, off the threads that serve requests.
async fn cached(
    call: &Call,
    name: &str,
    make: impl FnOnce(&[Described]) -> Option<Bytes> + Send + 'static,
) -> Result<Bytes, Fault> {
    let engine = &call.shared.engine;
    // Asked first: kinds that come in between only make it too old.
    let epoch = engine.kinds_epoch();
    let served = engine.served();
    // What all servers of the process have in common they also share.
    let builtin = served.iter().all(|served| served.custom.is_none());
    let (place, epoch) = if builtin {
        (&*BUILTIN, 0)
    } else {
        (&call.shared.documents, epoch)
    };
    let documents = || place.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(document) = documents().get(epoch, name) {
        return Ok(document);
    }
    let kinds: Vec<Described> = served.into_iter().map(Described).collect();
    let document = input::aside(move || make(&kinds))
        .await?
        .ok_or_else(Fault::unknown_path)?;
    documents().put(epoch, name, document.clone());
    Ok(document)
}

/// The documents of servers without custom kinds.
static BUILTIN: LazyLock<Mutex<Documents>> = LazyLock::new(Mutex::default);

/// A served kind, as documents describe it.
struct Described(Served);

impl openapi::Describe for Described {
    fn info(&self) -> &KindInfo {
        &self.0.info
    }

    fn schema(&self) -> Option<&Value> {
        self.0.custom.as_ref().map(|custom| custom.openapi())
    }
}

/// A document with its `ETag`; 304 for who has it already.
fn tagged(call: &Call, media_type: &'static str, document: Bytes) -> Reply {
    let digest = Sha256::digest(&document);
    let hex: String = digest.iter().map(|byte| format!("{byte:02X}")).collect();
    let tag = format!("\"{hex}\"");
    let known = call
        .headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|known| known.trim().trim_start_matches("W/") == tag);
    let mut response = if known {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        reply::with_type(StatusCode::OK, media_type, Body::full(document))
    };
    let tag = HeaderValue::from_str(&tag).map_err(Fault::internal)?;
    response.headers_mut().insert(header::ETAG, tag);
    Ok(response)
}

fn json_bytes(value: &Value) -> Bytes {
    value.to_string().into()
}
