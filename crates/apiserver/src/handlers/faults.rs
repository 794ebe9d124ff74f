//! Faults over HTTP, for programs in other languages: a path that Kubernetes
//! does not have, there only when the server was started with it.
//!
//! `GET`, `POST`, `DELETE` of `/longshore.dev/v1/faults`; `GET`, `DELETE` of
//! `/longshore.dev/v1/faults/{id}`; `POST` of `/longshore.dev/v1/expire`.

use http::{Method, Response, StatusCode};
use longshore_model::{Status, StatusDetails, StatusReason};
use serde_json::{Value, json};

use crate::{
    body::Body,
    fault::Fault,
    inject::{FaultError, FaultRule, Faults},
    input::{self, RequestBody},
    reply::{self, Reply},
    route::FaultPath,
    yaml,
};

/// Lists, adds and removes rules. None of them applies to this.
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
                FaultError::TooMany => Fault::new(StatusReason::TooManyRequests, error.to_string()),
                error => Fault::bad_request(error.to_string()),
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
        (_, FaultPath::Faults) => Err(Fault::wrong_method(&["GET", "POST", "DELETE"])),
        (_, FaultPath::Fault(_)) => Err(Fault::wrong_method(&["GET", "DELETE"])),
        (_, FaultPath::Expire) => Err(Fault::wrong_method(&["POST"])),
    }
}

/// A rule in JSON or YAML, whatever the client calls it.
fn rule(body: &[u8]) -> Result<FaultRule, Fault> {
    let (value, _) = yaml::read(body).map_err(Fault::bad_request)?;
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

fn ok(value: &Value) -> Response<Body> {
    reply::value(StatusCode::OK, value)
}

fn success(details: StatusDetails) -> Reply {
    let status = Status {
        details: Some(details),
        ..Status::success()
    };
    Ok(ok(&serde_json::to_value(status).map_err(Fault::internal)?))
}
