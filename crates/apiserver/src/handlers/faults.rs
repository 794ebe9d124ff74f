//! Fault injection over HTTP, for programs in other languages. Kubernetes does
//! not have these paths; they exist only if the server was started with fault
//! injection.
//!
//! `GET`, `POST`, `DELETE` of `/longshore.dev/v1/faults`; `GET`, `DELETE` of
//! `/longshore.dev/v1/faults/{id}`; `POST` of `/longshore.dev/v1/expire`.

use http::{Method, Response, StatusCode};
use longshore_model::{Status, StatusDetails, StatusReason};
use serde_json::{Value, json};

use crate::{
    body::Body,
    inject::{FaultError, FaultRule, Faults},
    input::{self, RequestBody},
    reply::{self, Reply},
    route::FaultPath,
    status_error::StatusError,
    yaml,
};

/// Lists, adds and removes rules. No rule applies to these requests.
pub(crate) async fn handle(
    faults: &Faults,
    method: &Method,
    path: &FaultPath,
    body: RequestBody,
) -> Reply {
    match (method, path) {
        (&Method::GET, FaultPath::Faults) => Ok(ok(&json!({
            "kind": "FaultList",
            "apiVersion": "longshore.dev/v1",
            "items": faults.list(),
        }))),
        (&Method::POST, FaultPath::Faults) => {
            let rule = rule(&input::read(body).await?)?;
            let id = faults.add(rule).map_err(|error| match error {
                FaultError::TooMany => {
                    StatusError::new(StatusReason::TooManyRequests, error.to_string())
                }
                error => StatusError::bad_request(error.to_string()),
            })?;
            Ok(reply::value(StatusCode::CREATED, &json!(faults.get(&id))))
        }
        (&Method::DELETE, FaultPath::Faults) => {
            faults.clear();
            success(StatusDetails::default())
        }
        (&Method::GET, FaultPath::Fault(id)) => {
            let report = faults.get(id).ok_or_else(|| unknown(id))?;
            Ok(ok(&json!(report)))
        }
        (&Method::DELETE, FaultPath::Fault(id)) => {
            let report = faults.remove(id).ok_or_else(|| unknown(id))?;
            Ok(ok(&json!(report)))
        }
        (&Method::POST, FaultPath::Expire) => {
            faults.expire_history().await;
            success(StatusDetails::default())
        }
        (_, FaultPath::Faults) => Err(StatusError::wrong_method(&["GET", "POST", "DELETE"])),
        (_, FaultPath::Fault(_)) => Err(StatusError::wrong_method(&["GET", "DELETE"])),
        (_, FaultPath::Expire) => Err(StatusError::wrong_method(&["POST"])),
    }
}

/// Parses a rule from JSON or YAML, regardless of its content type.
fn rule(body: &[u8]) -> Result<FaultRule, StatusError> {
    let (value, _) = yaml::read(body).map_err(StatusError::bad_request)?;
    serde_json::from_value(value)
        .map_err(|error| StatusError::bad_request(format!("this is no fault: {error}")))
}

fn unknown(id: &str) -> StatusError {
    let mut error = StatusError::new(
        StatusReason::NotFound,
        format!("faults.longshore.dev {id:?} not found"),
    );
    error.set_details(StatusDetails {
        name: id.to_owned(),
        group: "longshore.dev".into(),
        kind: "faults".into(),
        ..StatusDetails::default()
    });
    error
}

fn ok(value: &Value) -> Response<Body> {
    reply::value(StatusCode::OK, value)
}

fn success(details: StatusDetails) -> Reply {
    let status = Status {
        details: Some(details),
        ..Status::success()
    };
    Ok(ok(
        &serde_json::to_value(status).map_err(StatusError::internal)?
    ))
}
