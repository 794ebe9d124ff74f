//! Documents about the server itself: health, version, discovery, OpenAPI.

use std::sync::{LazyLock, Mutex, PoisonError};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use longshore_engine::Served;
use longshore_model::{KindInfo, release};
use longshore_schema::openapi;
use serde_json::{Value, json};

use super::plain_shape;
use crate::{
    body::Body,
    call::Call,
    discovery::Catalog,
    documents::{Document, Documents},
    negotiate::{self, Shape, negotiate},
    offload::offload,
    reply::{self, Reply},
    route::Route,
    status_error::StatusError,
    tokens::{ISSUER, TokenKey},
};

/// Returns the metrics document.
fn metrics(call: &Call) -> String {
    let mut text = call.shared.metrics.text();
    if let Some(log) = call.shared.audit.get() {
        text.push_str(&log.metrics());
    }
    text
}

pub(super) async fn dispatch(call: Call, route: Route) -> Reply {
    match route {
        Route::Health(name, check) => health(&call, name, check.as_deref()),
        Route::Metrics => Ok(reply::with_type(
            StatusCode::OK,
            "text/plain; version=0.0.4; charset=utf-8",
            Body::full(metrics(&call)),
        )),
        Route::Version => {
            plain_shape(&call)?;
            Ok(raw_document(&version()))
        }
        Route::CoreVersions => groups(&call, true),
        Route::Groups => groups(&call, false),
        Route::Group(group) => {
            let name = format!("discovery/{group}");
            found(&call, &name, |catalog| catalog.group(&group))
        }
        Route::GroupVersion { group, version } => {
            let name = format!("discovery/{group}/{version}");
            found(&call, &name, |catalog| catalog.resources(&group, &version))
        }
        Route::Root => {
            plain_shape(&call)?;
            Ok(raw_document(&json!({"paths": paths(&call)})))
        }
        Route::OpenApiV2 => openapi_v2(&call).await,
        Route::OpenApiV3Index => {
            let shared = call.shared.clone();
            let document = cached(&call, "v3", move |kinds| {
                let mut index = openapi::v3_index(kinds);
                for found in shared.aggregation.versions(&shared.engine) {
                    if let Some(entry) = found.discovered.openapi {
                        let path = format!("apis/{}/{}", found.group, found.version);
                        index["paths"][path] = entry;
                    }
                }
                Some(json_bytes(&index))
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
            match document.await {
                // Without a `Status`, as in Kubernetes.
                Err(error) if error.status().code == 404 => {
                    let mut response = Response::new(Body::empty());
                    *response.status_mut() = StatusCode::NOT_FOUND;
                    Ok(response)
                }
                document => tagged(&call, "application/json", document?),
            }
        }
        Route::OpenIdConfiguration => openid_configuration(&call),
        Route::OpenIdKeys => openid_keys(&call),
        Route::Resource(_) | Route::ForTests(_) => Err(StatusError::unknown_path()),
    }
}

/// Responds with a document that is not an API object; it has no trailing
/// newline.
fn raw_document(value: &Value) -> Response<Body> {
    reply::json(StatusCode::OK, Body::full(value.to_string()))
}

/// Names of the health checks. All checks pass as long as the server responds, because the
/// components run in one process.
const CHECKS: &[&str] = &["ping", "log", "etcd"];
/// Names of the readiness checks.
const READY_CHECKS: &[&str] = &["ping", "log", "etcd", "informer-sync", "shutdown"];

fn health(call: &Call, name: &str, single: Option<&str>) -> Reply {
    let checks = if name == "readyz" {
        READY_CHECKS
    } else {
        CHECKS
    };
    if single.is_some_and(|single| !checks.contains(&single)) {
        return Err(StatusError::unknown_path());
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
        "major": release::MAJOR,
        "minor": release::MINOR,
        "gitVersion": release::VERSION,
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
        "/.well-known/openid-configuration",
        "/api",
        "/apis",
        "/healthz",
        "/livez",
        "/metrics",
        "/openapi/v2",
        "/openapi/v3",
        "/openid/v1/jwks",
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
    for found in call.shared.aggregation.versions(&call.shared.engine) {
        paths.push(format!("/apis/{}", found.group));
        paths.push(format!("/apis/{}/{}", found.group, found.version));
    }
    paths.sort();
    paths.dedup();
    paths
}

/// `/api` and `/apis`: the aggregated discovery document if the client accepts
/// it, otherwise the legacy document.
fn groups(call: &Call, core: bool) -> Reply {
    let wanted = negotiate(&call.headers, |shape| {
        matches!(shape, Shape::Object | Shape::Discovery(_))
    })?;
    let of = if core { "core" } else { "groups" };
    let (media_type, version) = match wanted.shape {
        Shape::Discovery(version) => {
            let media_type = match version {
                "v2" => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
                _ => "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
            };
            (media_type, Some(version))
        }
        _ => ("application/json", None),
    };
    let name = format!("discovery of {of} {}", version.unwrap_or_default());
    let document = discovery(call, &name, |catalog| {
        let document = match version {
            Some(version) => catalog.aggregated(core, version),
            None if core => catalog.core_versions(),
            None => catalog.groups(),
        };
        let mut line = reply::ordered(&document).to_vec();
        line.push(b'\n');
        Some(line.into())
    })?;
    let mut response = tagged(call, media_type, document)?;
    response
        .headers_mut()
        .insert(header::VARY, HeaderValue::from_static("Accept"));
    Ok(response)
}

fn found(call: &Call, name: &str, make: impl Fn(&Catalog) -> Option<Value>) -> Reply {
    let wanted = plain_shape(call)?;
    let document = discovery(call, name, |catalog| {
        let document = make(catalog)?;
        Some(reply::ordered(&document))
    })?;
    reply::document(StatusCode::OK, wanted.encoding, document.bytes)
}

/// Responds with a discovery document, rendered once. It is small.
fn discovery(
    call: &Call,
    name: &str,
    make: impl FnOnce(&Catalog) -> Option<Bytes>,
) -> Result<Document, StatusError> {
    let (document_cache, epoch, _) = document_cache(call);
    // The node starts after the API server.
    let measures = call.shared.node_streams.measure().is_some();
    let name = if measures {
        format!("{name} with resource usage")
    } else {
        name.to_owned()
    };
    if let Some(document) = get(document_cache, epoch, &name) {
        return Ok(document);
    }
    let engine = &call.shared.engine;
    let aggregated = call.shared.aggregation.versions(engine);
    let bytes = make(&Catalog::new(&engine.kinds(), measures, aggregated));
    let document = Document::new(bytes.ok_or_else(StatusError::unknown_path)?);
    put(document_cache, epoch, &name, &document);
    Ok(document)
}

/// The OpenID configuration of the issuer of service account tokens, for
/// programs that verify them.
fn openid_configuration(call: &Call) -> Reply {
    token_key(call)?;
    let host = call
        .headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let host = host
        .or(call.authority.as_ref().map(http::uri::Authority::as_str))
        .unwrap_or("localhost");
    let document = json!({
        "issuer": ISSUER,
        "jwks_uri": format!("https://{host}/openid/v1/jwks"),
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [TokenKey::algorithm()],
    });
    Ok(cacheable_for_an_hour("application/json", &document))
}

/// The public keys of service account tokens.
fn openid_keys(call: &Call) -> Reply {
    let key = token_key(call)?;
    Ok(cacheable_for_an_hour(
        "application/jwk-set+json",
        &key.public(),
    ))
}

fn token_key(call: &Call) -> Result<&TokenKey, StatusError> {
    let key = call.shared.authenticator.token_key.as_ref();
    key.ok_or_else(StatusError::unknown_path)
}

/// Responds with a document that clients may cache for an hour (as in
/// Kubernetes).
fn cacheable_for_an_hour(media_type: &'static str, document: &Value) -> Response<Body> {
    let mut response =
        reply::with_type(StatusCode::OK, media_type, Body::full(document.to_string()));
    let public = HeaderValue::from_static("public, max-age=3600");
    response.headers_mut().insert(header::CACHE_CONTROL, public);
    response
}

async fn openapi_v2(call: &Call) -> Reply {
    const PROTOBUF: &[&str] = &[
        "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
        "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
    ];
    if !negotiate::asks_for(&call.headers, PROTOBUF) {
        negotiate(&call.headers, |shape| shape == Shape::Object)?;
        let shared = call.shared.clone();
        let document = cached(call, "v2 in JSON", move |kinds| {
            let parts = shared.aggregation.openapi_v2(&shared.engine);
            Some(json_bytes(&openapi::v2_json(kinds, &parts)))
        });
        return tagged(call, "application/json", document.await?);
    }
    let shared = call.shared.clone();
    let document = cached(call, "v2", move |kinds| {
        let parts = shared.aggregation.openapi_v2(&shared.engine);
        Some(openapi::v2_protobuf(kinds, &parts).into())
    });
    let document = document.await?;
    tagged(
        call,
        "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
        document,
    )
}

/// Responds with a document that is rendered once, off the threads that serve requests. Concurrent
/// requests for the document wait, and share its bytes.
async fn cached(
    call: &Call,
    name: &str,
    make: impl FnOnce(&[Described]) -> Option<Bytes> + Send + 'static,
) -> Result<Document, StatusError> {
    static RENDERING: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

    let (known, epoch, _) = document_cache(call);
    if let Some(document) = get(known, epoch, name) {
        return Ok(document);
    }
    let rendering = RENDERING.lock().await;
    // The kinds may have changed in the meantime.
    let (known, epoch, served) = document_cache(call);
    if let Some(document) = get(known, epoch, name) {
        return Ok(document);
    }
    let kinds: Vec<Described> = served.into_iter().map(Described).collect();
    let render = move || {
        // Until the end of the work, even if the client no longer waits for it.
        let _rendering = rendering;
        make(&kinds).map(Document::new)
    };
    let document = offload(render)
        .await?
        .ok_or_else(StatusError::unknown_path)?;
    put(known, epoch, name, &document);
    Ok(document)
}

/// Returns the document cache for the current kinds, the epoch of the kinds,
/// and the kinds.
fn document_cache(call: &Call) -> (&Mutex<Documents>, u64, Vec<Served>) {
    let engine = &call.shared.engine;
    // Read the epoch first: a kind that is added in between only makes it
    // outdated.
    let aggregated = call.shared.aggregation.epoch(engine);
    let epoch = engine.kinds_epoch().saturating_add(aggregated);
    let served = engine.served();
    // Servers without custom kinds share their documents within the process.
    let builtin = aggregated == 0 && served.iter().all(|served| served.custom.is_none());
    if builtin {
        (&*BUILTIN, 0, served)
    } else {
        (&call.shared.documents, epoch, served)
    }
}

fn get(document_cache: &Mutex<Documents>, epoch: u64, name: &str) -> Option<Document> {
    let documents = document_cache
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    documents.get(epoch, name)
}

fn put(document_cache: &Mutex<Documents>, epoch: u64, name: &str, document: &Document) {
    let mut documents = document_cache
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    documents.put(epoch, name, document.clone());
}

/// Documents of servers without custom kinds.
static BUILTIN: LazyLock<Mutex<Documents>> = LazyLock::new(Mutex::default);

/// A served kind, in the form that the documents describe.
struct Described(Served);

impl openapi::Describe for Described {
    fn info(&self) -> &KindInfo {
        &self.0.info
    }

    fn schema(&self) -> Option<&Value> {
        self.0.custom.as_ref().map(|custom| custom.openapi())
    }
}

/// Responds with a document and its `ETag`, or with 304 if the client has this
/// version.
fn tagged(call: &Call, media_type: &'static str, document: Document) -> Reply {
    let Document { bytes, tag } = document;
    let known = call
        .headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|known| known.trim().trim_start_matches("W/") == &*tag);
    let mut response = if known {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        reply::with_type(StatusCode::OK, media_type, Body::full(bytes))
    };
    let tag = HeaderValue::from_str(&tag).map_err(StatusError::internal)?;
    response.headers_mut().insert(header::ETAG, tag);
    Ok(response)
}

fn json_bytes(value: &Value) -> Bytes {
    value.to_string().into()
}
