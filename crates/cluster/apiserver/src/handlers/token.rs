//! POST to `serviceaccounts/{name}/token`: issues a token for a service
//! account.

use http::StatusCode;
use longshore_engine::{Error, Object, ReadVersion, Subject, Target};
use longshore_model::{StatusCause, kind::builtin, time};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    admission::{self, Place},
    plain_shape,
};
use crate::{
    call::Call,
    input::{self, RequestBody},
    limits, params,
    reply::{self, Reply},
    status_error::{StatusError, invalid},
    tokens::{Claims, ISSUER, Kubernetes, Reference},
    webhooks::Operation,
};

const API_VERSION: &str = "authentication.k8s.io/v1";
const KIND: &str = "TokenRequest";
/// Default validity of a token in seconds (as in Kubernetes).
const DEFAULT_SECONDS: i64 = 3600;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    audiences: Option<Vec<String>>,
    expiration_seconds: Option<i64>,
    bound_object_ref: Option<Bound>,
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            audiences: None,
            expiration_seconds: Some(DEFAULT_SECONDS),
            bound_object_ref: None,
        }
    }
}

/// The object that a token is bound to.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Bound {
    api_version: String,
    kind: String,
    name: String,
    uid: String,
}

pub(super) async fn request(call: Call, target: Target, body: RequestBody) -> Reply {
    let wanted = plain_shape(&call)?;
    let options = params::write_options(&call.query, "CreateOptions", None, call.user_agent())?;
    let key = call.shared.authenticator.token_key.clone();
    let key = key.ok_or_else(StatusError::unknown_path)?;
    let (mut token_request, _) = input::object(&call.headers, body, KIND).await?;
    check_type(&token_request)?;
    let namespace = target.namespace.clone().unwrap_or_default();
    check_names(&token_request, &target.name, &namespace)?;
    let engine = &call.shared.engine;
    engine.check_namespace(&target.kind, &namespace, &target.name)?;
    let place = Place {
        kind: &target.kind,
        namespace: Some(&namespace),
        name: &target.name,
        subresource: "token",
    };
    let admission = admission::of(&call, &[Operation::Create], place, || {
        admission::write_options(&call.query, options.dry_run)
    });
    if let Some(admission) = &admission {
        admission::complete(
            &mut token_request,
            (API_VERSION, KIND),
            &namespace,
            &target.name,
        );
        token_request = admission.admit(Operation::Create, token_request).await?;
    }
    let spec = read_spec(&token_request)?;

    let get = |kind: &str, namespace: Option<&str>, name: &str| {
        let info = builtin("", kind).ok_or_else(StatusError::unknown_path)?;
        let found = engine.get(info, namespace, name, ReadVersion::Latest);
        found.map_err(StatusError::from)
    };
    let account = get("ServiceAccount", Some(&namespace), &target.name)?;
    let seconds = lifetime(spec.expiration_seconds)?;
    let mut named = Kubernetes {
        namespace: namespace.clone(),
        serviceaccount: reference(&account),
        ..Kubernetes::default()
    };
    if let Some(bound) = &spec.bound_object_ref {
        bind(bound, &target.name, &mut named, get)?;
    }
    let audiences = spec.audiences.filter(|audiences| !audiences.is_empty());
    let audiences = audiences.unwrap_or_else(|| vec![ISSUER.to_owned()]);
    let now = engine.now();
    let id = longshore_engine::Ids::uid(&longshore_engine::RandomIds);
    let claims = Claims::new(named, audiences.clone(), (now, seconds), id);
    let token = key
        .sign(&claims)
        .ok_or_else(|| StatusError::internal("no token could be signed"))?;
    let expires = jiff::Timestamp::from_second(claims.exp).map_err(StatusError::internal)?;

    token_request["kind"] = KIND.into();
    token_request["apiVersion"] = API_VERSION.into();
    if !token_request["metadata"].is_object() {
        token_request["metadata"] = json!({});
    }
    token_request["metadata"]["name"] = target.name.into();
    token_request["metadata"]["namespace"] = namespace.into();
    token_request["metadata"]["creationTimestamp"] = time::seconds(now).into();
    if !token_request["spec"].is_object() {
        token_request["spec"] = json!({"boundObjectRef": null});
    }
    token_request["spec"]["audiences"] = audiences.into();
    token_request["spec"]["expirationSeconds"] = seconds.into();
    token_request["status"] =
        json!({"token": token, "expirationTimestamp": time::seconds(expires)});
    let answer = reply::ordered(&token_request);
    reply::document(StatusCode::CREATED, wanted.encoding, answer)
}

fn reference(object: &Object) -> Reference {
    Reference {
        name: object.name().to_owned(),
        uid: object.uid().to_owned(),
    }
}

fn check_type(token_request: &Value) -> Result<(), StatusError> {
    let word = |name: &str| token_request[name].as_str().unwrap_or_default();
    if !matches!(word("kind"), "" | KIND) {
        return Err(StatusError::bad_request(format!(
            "{} in version {:?} cannot be handled as a {KIND}",
            word("kind"),
            word("apiVersion").rsplit('/').next().unwrap_or_default(),
        )));
    }
    if !matches!(word("apiVersion"), "" | API_VERSION) {
        return Err(StatusError::bad_request(format!(
            "the API version in the data ({}) does not match the expected API version ({API_VERSION})",
            word("apiVersion"),
        )));
    }
    Ok(())
}

/// Checks that a name or namespace in the body matches the path.
fn check_names(token_request: &Value, name: &str, namespace: &str) -> Result<(), StatusError> {
    for (field, expected) in [("name", name), ("namespace", namespace)] {
        let given = token_request["metadata"][field]
            .as_str()
            .unwrap_or_default();
        if !given.is_empty() && given != expected {
            let why = format!("must match the service account {field} if specified");
            let cause = invalid(&format!("metadata.{field}"), given, &why);
            return Err(refused(name, cause));
        }
    }
    Ok(())
}

fn refused(name: &str, cause: StatusCause) -> StatusError {
    StatusError::invalid_review(KIND, "authentication.k8s.io", name, vec![cause])
}

fn read_spec(token_request: &Value) -> Result<Spec, StatusError> {
    if token_request["spec"].is_null() {
        return Ok(Spec::default());
    }
    Spec::deserialize(&token_request["spec"]).map_err(|error| {
        StatusError::bad_request(format!(
            "{KIND} in version \"v1\" cannot be handled as a {KIND}: spec: {error}"
        ))
    })
}

/// Returns the validity of the token in seconds.
fn lifetime(requested: Option<i64>) -> Result<i64, StatusError> {
    let seconds = requested.unwrap_or(DEFAULT_SECONDS);
    let why = if seconds < limits::TOKEN_LEAST_SECONDS {
        "may not specify a duration less than 10 minutes"
    } else if seconds > limits::TOKEN_MOST_SECONDS {
        "may not specify a duration larger than 2^32 seconds"
    } else {
        return Ok(seconds);
    };
    Err(refused("", invalid("spec.expirationSeconds", seconds, why)))
}

/// Resolves the object that the token is bound to.
fn bind(
    bound: &Bound,
    account: &str,
    named: &mut Kubernetes,
    get: impl Fn(&str, Option<&str>, &str) -> Result<std::sync::Arc<Object>, StatusError>,
) -> Result<(), StatusError> {
    let namespace = named.namespace.clone();
    let namespace = Some(namespace.as_str());
    let found = match (bound.api_version.as_str(), bound.kind.as_str()) {
        ("v1", "Pod") => {
            let pod = get("Pod", namespace, &bound.name)?;
            let spec = &pod.value()["spec"];
            if spec["serviceAccountName"].as_str().unwrap_or_default() != account {
                return Err(StatusError::bad_request(format!(
                    "cannot bind token for serviceaccount {account:?} to pod running with different serviceaccount name."
                )));
            }
            // A node that does not exist is omitted.
            let node = spec["nodeName"].as_str().filter(|name| !name.is_empty());
            let node = node.and_then(|name| get("Node", None, name).ok());
            named.node = node.map(|node| reference(&node));
            named.pod = Some(reference(&pod));
            pod
        }
        ("v1", "Secret") => {
            let secret = get("Secret", namespace, &bound.name)?;
            named.secret = Some(reference(&secret));
            secret
        }
        ("v1", "Node") => {
            let node = get("Node", None, &bound.name)?;
            named.node = Some(reference(&node));
            node
        }
        (version, kind) => {
            let (group, version) = version.split_once('/').unwrap_or(("", version));
            let of = format!("{group}/{version}, Kind={kind}");
            let text = format!("cannot bind token to object of type {of}");
            return Err(StatusError::bad_request(text));
        }
    };
    if bound.uid.is_empty() || bound.uid == found.uid() {
        return Ok(());
    }
    let info = builtin("", &bound.kind).ok_or_else(StatusError::unknown_path)?;
    let mut subject = Subject::new(info, &bound.name);
    subject.resource = bound.kind.as_str().into();
    Err(Error::Conflict {
        subject,
        reason: format!(
            "the UID in the bound object reference ({}) does not match the UID in record. The object might have been deleted and then recreated",
            bound.uid
        ),
    }
    .into())
}
