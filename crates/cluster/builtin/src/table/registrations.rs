//! Table rows of webhook configurations, APIServices, certificate requests and
//! runtime classes.

use jiff::Timestamp;
use longshore_model::{LabelSelector, selector::StructuredSelector};
use serde::Deserialize as _;
use serde_json::Value;

use super::{
    Column, age_cell,
    columns::{AGE, NAME, column},
    condition, count, duration, labels, name, or, text,
};

#[rustfmt::skip]
pub(crate) const WEBHOOKS: &[Column] = &[
    NAME,
    column("Webhooks", "integer", "", 0, "How many webhooks it has."),
    AGE,
];

const PARAM_KIND: Column = column(
    "ParamKind",
    "string",
    "",
    0,
    "The kind of the policy's parameters.",
);

#[rustfmt::skip]
pub(crate) const VALIDATING_POLICY: &[Column] = &[
    NAME,
    column("Validations", "integer", "", 0, "How many validations it has."),
    PARAM_KIND,
    AGE,
];

#[rustfmt::skip]
pub(crate) const MUTATING_POLICY: &[Column] = &[
    NAME,
    column("Mutations", "integer", "", 0, "How many mutations it has."),
    PARAM_KIND,
    AGE,
];

#[rustfmt::skip]
pub(crate) const POLICY_BINDING: &[Column] = &[
    NAME,
    column("PolicyName", "string", "", 0, "The policy that it puts into effect."),
    column("ParamRef", "string", "", 0, "The parameters of the policy."),
    AGE,
];

#[rustfmt::skip]
pub(crate) const SERVICE: &[Column] = &[
    NAME,
    column("Service", "string", "", 0, "The Service that serves the version."),
    column("Available", "string", "", 0, "Whether it is available."),
    AGE,
];

#[rustfmt::skip]
pub(crate) const REQUEST: &[Column] = &[
    NAME,
    AGE,
    column("SignerName", "string", "", 0, "The signer that is asked."),
    column("Requestor", "string", "", 0, "The user who asks."),
    column("RequestedDuration", "string", "", 0, "How long the certificate should be valid."),
    column("Condition", "string", "", 0, "Whether it is approved and issued."),
];

#[rustfmt::skip]
pub(crate) const BUNDLE: &[Column] = &[
    NAME,
    column("SignerName", "string", "", 0, "The signer whose certificates it has."),
];

#[rustfmt::skip]
pub(crate) const POD_REQUEST: &[Column] = &[
    NAME,
    column("PodName", "string", "", 0, "The pod that gets the certificate."),
    column("ServiceAccountName", "string", "", 0, "The service account of the pod."),
    column("NodeName", "string", "", 0, "The node of the pod."),
    column("SignerName", "string", "", 0, "The signer of the certificate."),
    column("State", "string", "", 0, "Is the request Pending, Issued, Denied, or Failed?"),
    column("UnverifiedUserAnnotations", "string", "", 0, "What the author of the pod tells the signer."),
];

#[rustfmt::skip]
pub(crate) const RUNTIME: &[Column] = &[
    NAME,
    column("Handler", "string", "", 0, "What a node calls the runtime."),
    AGE,
];

pub(crate) fn service(object: &Value, now: Timestamp) -> Vec<Value> {
    let part = |field: &str| text(object, &format!("/spec/service/{field}"));
    let service = match (part("namespace"), part("name")) {
        ("", "") => "Local".to_owned(),
        (namespace, name) => format!("{namespace}/{name}"),
    };
    let available = condition(object, "Available").map_or("Unknown".to_owned(), |known| {
        match (text(known, "/status"), text(known, "/reason")) {
            (status @ "True", _) | (status, "") => status.to_owned(),
            (status, reason) => format!("{status} ({reason})"),
        }
    });
    vec![
        name(object),
        service.into(),
        available.into(),
        age_cell(object, now),
    ]
}

pub(crate) fn bundle(object: &Value, _: Timestamp) -> Vec<Value> {
    let signer = or(text(object, "/spec/signerName"), "<none>");
    vec![name(object), signer.into()]
}

pub(crate) fn pod_request(object: &Value, _: Timestamp) -> Vec<Value> {
    let field = |name: &str| text(object, &format!("/spec/{name}")).into();
    let mut known = ["Issued", "Denied", "Failed"].into_iter();
    let state = known.find(|kind| condition(object, kind).is_some());
    vec![
        name(object),
        field("podName"),
        field("serviceAccountName"),
        field("nodeName"),
        field("signerName"),
        state.unwrap_or("Pending").into(),
        labels(object, "/spec/unverifiedUserAnnotations").into(),
    ]
}

pub(crate) fn request(object: &Value, now: Timestamp) -> Vec<Value> {
    let has = |kind| condition(object, kind).is_some();
    let mut state = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (_, true) => "Approved",
        _ => "Pending",
    }
    .to_owned();
    if has("Failed") {
        state.push_str(",Failed");
    }
    if !text(object, "/status/certificate").is_empty() {
        state.push_str(",Issued");
    }
    let duration = object.pointer("/spec/expirationSeconds");
    let duration = duration.and_then(Value::as_i64);
    let duration = duration.map_or("<none>".to_owned(), duration::human);
    vec![
        name(object),
        age_cell(object, now),
        or(text(object, "/spec/signerName"), "<none>").into(),
        text(object, "/spec/username").into(),
        duration.into(),
        state.into(),
    ]
}

pub(crate) fn webhooks(object: &Value, now: Timestamp) -> Vec<Value> {
    let webhooks = count(object, "/webhooks");
    vec![name(object), webhooks.into(), age_cell(object, now)]
}

pub(crate) fn validating_policy(object: &Value, now: Timestamp) -> Vec<Value> {
    policy(object, "/spec/validations", now)
}

pub(crate) fn mutating_policy(object: &Value, now: Timestamp) -> Vec<Value> {
    policy(object, "/spec/mutations", now)
}

fn policy(object: &Value, expressions: &str, now: Timestamp) -> Vec<Value> {
    let kind = object.pointer("/spec/paramKind").map(|_| {
        let part = |field: &str| text(object, &format!("/spec/paramKind/{field}"));
        format!("{}/{}", part("apiVersion"), part("kind"))
    });
    vec![
        name(object),
        count(object, expressions).into(),
        kind.unwrap_or_else(|| "<unset>".to_owned()).into(),
        age_cell(object, now),
    ]
}

pub(crate) fn policy_binding(object: &Value, now: Timestamp) -> Vec<Value> {
    let part = |field: &str| text(object, &format!("/spec/paramRef/{field}"));
    let params = match (part("name"), part("namespace")) {
        ("", _) => object
            .pointer("/spec/paramRef/selector")
            .and_then(|selector| {
                let selector = StructuredSelector::deserialize(selector).ok()?;
                Some(LabelSelector::try_from(selector).ok()?.to_string())
            })
            .unwrap_or_else(|| "<unset>".to_owned()),
        (name, "") => format!("*/{name}"),
        (name, namespace) => format!("{namespace}/{name}"),
    };
    vec![
        name(object),
        text(object, "/spec/policyName").into(),
        params.into(),
        age_cell(object, now),
    ]
}

pub(crate) fn runtime_class(object: &Value, now: Timestamp) -> Vec<Value> {
    let handler = text(object, "/handler");
    vec![name(object), handler.into(), age_cell(object, now)]
}
