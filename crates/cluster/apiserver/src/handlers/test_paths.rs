//! Fault injection, snapshots and the clock over HTTP, for programs in other languages.
//! Kubernetes does not have these paths; they exist only if the server was
//! started with fault injection.
//!
//! `GET`, `POST`, `DELETE` of `/longshore.dev/v1/faults`; `GET`, `DELETE` of
//! `/longshore.dev/v1/faults/{id}`; `POST` of `/longshore.dev/v1/expire`; `GET`,
//! `POST` of `/longshore.dev/v1/snapshots`; `DELETE` of
//! `/longshore.dev/v1/snapshots/{id}`; `POST` of
//! `/longshore.dev/v1/snapshots/{id}/restore`; `GET`, `PUT` of `/longshore.dev/v1/clock`;
//! `POST` of `/longshore.dev/v1/clock/advance`; `POST` of `/longshore.dev/v1/clock/settle`.

use std::time::Duration;

use http::{Method, Response, StatusCode};
use jiff::Timestamp;
use longshore_engine::SettleError;
use longshore_model::{Status, StatusDetails, StatusReason};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    body::Body,
    call::Shared,
    inject::{FaultError, FaultRule},
    input::{self, RequestBody},
    reply::{self, Reply},
    route::TestPath,
    snapshots,
    status_error::StatusError,
    yaml,
};

/// Default timeout of a request that waits for the controllers.
const DEFAULT_SETTLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Handles a request for tests. Fault rules do not apply to these requests.
pub(crate) async fn handle(
    shared: &Shared,
    method: &Method,
    path: &TestPath,
    body: RequestBody,
) -> Reply {
    let (faults, snapshots) = (&shared.faults, &shared.snapshots);
    match (method, path) {
        (&Method::GET, TestPath::Faults) => Ok(ok(&json!({
            "kind": "FaultList",
            "apiVersion": "longshore.dev/v1",
            "items": faults.list(),
        }))),
        (&Method::POST, TestPath::Faults) => {
            let rule = rule(&input::read(body).await?)?;
            let id = faults.add(rule).map_err(|error| match error {
                FaultError::TooMany => {
                    StatusError::new(StatusReason::TooManyRequests, error.to_string())
                }
                error => StatusError::bad_request(error.to_string()),
            })?;
            Ok(reply::value(StatusCode::CREATED, &json!(faults.get(&id))))
        }
        (&Method::DELETE, TestPath::Faults) => {
            faults.clear();
            success(StatusDetails::default())
        }
        (&Method::GET, TestPath::Fault(id)) => {
            let report = faults.get(id).ok_or_else(|| unknown("faults", id))?;
            Ok(ok(&json!(report)))
        }
        (&Method::DELETE, TestPath::Fault(id)) => {
            let report = faults.remove(id).ok_or_else(|| unknown("faults", id))?;
            Ok(ok(&json!(report)))
        }
        (&Method::POST, TestPath::Expire) => {
            faults.expire_history().await;
            success(StatusDetails::default())
        }
        (&Method::GET, TestPath::Snapshots) => Ok(ok(&json!({
            "kind": "SnapshotList",
            "apiVersion": "longshore.dev/v1",
            "items": snapshots.list(),
        }))),
        (&Method::POST, TestPath::Snapshots) => {
            let taken = snapshots.take(&shared.engine).ok_or_else(|| {
                let problem = format!(
                    "there are {} snapshots, as many as the server keeps: remove one first",
                    snapshots::MAX_SNAPSHOTS
                );
                StatusError::new(StatusReason::TooManyRequests, problem)
            })?;
            Ok(reply::value(StatusCode::CREATED, &json!(taken)))
        }
        (&Method::DELETE, TestPath::Snapshot(id)) => {
            snapshots
                .remove(id)
                .ok_or_else(|| unknown("snapshots", id))?;
            success(StatusDetails::default())
        }
        (&Method::POST, TestPath::Restore(id)) => {
            let snapshot = snapshots.get(id).ok_or_else(|| unknown("snapshots", id))?;
            shared.engine.restore(&snapshot).await?;
            success(StatusDetails::default())
        }
        (&Method::GET, TestPath::Clock) => Ok(clock(shared)),
        (&Method::PUT, TestPath::Clock) => {
            let Time { time } = field(&input::read(body).await?)?;
            let set = shared.engine.clock().set(time).await;
            set.map_err(|error| StatusError::bad_request(error.to_string()))?;
            Ok(clock(shared))
        }
        (&Method::POST, TestPath::Advance) => {
            let Step { seconds } = field(&input::read(body).await?)?;
            let step = duration("seconds", seconds)?;
            let advanced = shared.engine.clock().advance(step).await;
            advanced.map_err(|error| StatusError::bad_request(error.to_string()))?;
            Ok(clock(shared))
        }
        (&Method::POST, TestPath::Settle) => {
            let Wait { timeout_seconds } = field(&input::read(body).await?)?;
            let timeout = duration("timeoutSeconds", timeout_seconds)?;
            let settled = shared.engine.clock().settle(timeout).await;
            settled.map_err(|error| match error {
                SettleError::Timeout { .. } => {
                    StatusError::new(StatusReason::Timeout, error.to_string())
                }
                error => StatusError::bad_request(error.to_string()),
            })?;
            Ok(clock(shared))
        }
        (_, TestPath::Clock) => Err(StatusError::wrong_method(&["GET", "PUT"])),
        (_, TestPath::Advance | TestPath::Settle) => Err(StatusError::wrong_method(&["POST"])),
        (_, TestPath::Snapshots) => Err(StatusError::wrong_method(&["GET", "POST"])),
        (_, TestPath::Snapshot(_)) => Err(StatusError::wrong_method(&["DELETE"])),
        (_, TestPath::Restore(_)) => Err(StatusError::wrong_method(&["POST"])),
        (_, TestPath::Faults) => Err(StatusError::wrong_method(&["GET", "POST", "DELETE"])),
        (_, TestPath::Fault(_)) => Err(StatusError::wrong_method(&["GET", "DELETE"])),
        (_, TestPath::Expire) => Err(StatusError::wrong_method(&["POST"])),
    }
}

/// The time to set the clock to.
#[derive(Deserialize)]
#[serde(expecting = r#"an object such as {"time": "2026-01-01T00:00:00Z"}"#)]
struct Time {
    time: Timestamp,
}

/// The duration by which to advance the clock.
#[derive(Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = r#"an object such as {"seconds": 60}"#
)]
struct Step {
    seconds: f64,
}

/// The duration to wait for the controllers.
#[derive(Deserialize)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    expecting = r#"an object such as {"timeoutSeconds": 30}"#
)]
struct Wait {
    #[serde(default = "default_timeout")]
    timeout_seconds: f64,
}

fn default_timeout() -> f64 {
    DEFAULT_SETTLE_TIMEOUT.as_secs_f64()
}

/// The value of a field as a duration.
fn duration(field: &str, seconds: f64) -> Result<Duration, StatusError> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        StatusError::bad_request(format!(
            "{field} must be a number of seconds, 0 or above, but is {seconds}"
        ))
    })
}

/// Parses a small object from JSON or YAML.
fn field<T: DeserializeOwned>(body: &[u8]) -> Result<T, StatusError> {
    let (value, _) = yaml::read(body).map_err(StatusError::bad_request)?;
    serde_json::from_value(value).map_err(|error| StatusError::bad_request(error.to_string()))
}

fn clock(shared: &Shared) -> Response<Body> {
    let clock = shared.engine.clock();
    ok(&json!({
        "kind": "Clock",
        "apiVersion": "longshore.dev/v1",
        "time": clock.now(),
        "manual": clock.is_manual(),
    }))
}

/// Parses a rule from JSON or YAML, regardless of the content type.
fn rule(body: &[u8]) -> Result<FaultRule, StatusError> {
    let (value, _) = yaml::read(body).map_err(StatusError::bad_request)?;
    serde_json::from_value(value)
        .map_err(|error| StatusError::bad_request(format!("this is no fault: {error}")))
}

fn unknown(plural: &str, id: &str) -> StatusError {
    let mut error = StatusError::new(
        StatusReason::NotFound,
        format!("{plural}.longshore.dev {id:?} not found"),
    );
    error.set_details(StatusDetails {
        name: id.to_owned(),
        group: "longshore.dev".into(),
        kind: plural.into(),
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
