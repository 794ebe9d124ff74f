//! Faults over HTTP, for programs in other languages: a path that Kubernetes
//! does not have, there only when the server was told so.
//!
//! `GET`, `POST`, `DELETE` of `/longshore.dev/v1/faults`; `GET`, `DELETE` of
//! `/longshore.dev/v1/faults/{id}`; `POST` of `/longshore.dev/v1/expire`.

use http::{Method, StatusCode};
use longshore_model::{Status, StatusDetails, StatusReason};
use serde_json::{Value, json};

use super::{FaultError, FaultRule, Faults};
use crate::{
    fault::Fault,
    input::{self, RequestBody},
    reply::{self, Reply},
};

/// What comes under `/longshore.dev/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Path {
    /// All rules.
    Faults,
    /// One rule.
    Fault(String),
    /// The watch history.
    Expire,
}

impl Path {
    /// The path behind `/longshore.dev`.
    pub(crate) fn parse(parts: &[&str]) -> Option<Self> {
        match parts {
            ["v1", "faults"] => Some(Self::Faults),
            ["v1", "faults", id] => Some(Self::Fault((*id).to_owned())),
            ["v1", "expire"] => Some(Self::Expire),
            _ => None,
        }
    }
}

/// Lists, adds and removes rules. None of them applies to this.
pub(crate) async fn handle(
    faults: &Faults,
    method: &Method,
    path: &Path,
    body: RequestBody,
) -> Reply {
    match (method, path) {
        (&Method::GET, Path::Faults) => Ok(ok(&json!({
            "kind": "FaultList",
            "apiVersion": "longshore.dev/v1",
            "items": faults.list(),
        }))),
        (&Method::POST, Path::Faults) => {
            let rule = rule(&input::read(body).await?)?;
            let id = faults.add(rule).map_err(|error| match error {
                FaultError::TooMany => Fault::new(StatusReason::TooManyRequests, error.to_string()),
                error => Fault::bad_request(error.to_string()),
            })?;
            Ok(reply::value(StatusCode::CREATED, &json!(faults.get(&id))))
        }
        (&Method::DELETE, Path::Faults) => {
            faults.clear();
            success(StatusDetails::default())
        }
        (&Method::GET, Path::Fault(id)) => {
            let report = faults.get(id).ok_or_else(|| unknown(id))?;
            Ok(ok(&json!(report)))
        }
        (&Method::DELETE, Path::Fault(id)) => {
            let report = faults.remove(id).ok_or_else(|| unknown(id))?;
            Ok(ok(&json!(report)))
        }
        (&Method::POST, Path::Expire) => {
            faults.expire_history().await;
            success(StatusDetails::default())
        }
        (_, Path::Faults) => Err(Fault::wrong_method(&["GET", "POST", "DELETE"])),
        (_, Path::Fault(_)) => Err(Fault::wrong_method(&["GET", "DELETE"])),
        (_, Path::Expire) => Err(Fault::wrong_method(&["POST"])),
    }
}

/// A rule in JSON or YAML, whatever the client calls it.
fn rule(body: &[u8]) -> Result<FaultRule, Fault> {
    let (value, _) = crate::yaml::read(body).map_err(Fault::bad_request)?;
    serde_json::from_value(value)
        .map_err(|error| Fault::bad_request(format!("this is no fault: {error}")))
}

fn unknown(id: &str) -> Fault {
    let mut fault = Fault::new(
        StatusReason::NotFound,
        format!("faults.longshore.dev {id:?} not found"),
    );
    fault.set_details(StatusDetails {
        name: id.to_owned(),
        group: "longshore.dev".into(),
        kind: "faults".into(),
        ..StatusDetails::default()
    });
    fault
}

fn ok(value: &Value) -> http::Response<crate::body::Body> {
    reply::value(StatusCode::OK, value)
}

fn success(details: StatusDetails) -> Reply {
    let status = Status {
        details: Some(details),
        ..Status::success()
    };
    Ok(ok(&serde_json::to_value(status).map_err(Fault::internal)?))
}
