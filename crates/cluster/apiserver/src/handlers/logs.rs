//! `pods/log`: selects the container and streams its log.

use futures::StreamExt as _;
use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use longshore_engine::{ReadVersion, Target};
use longshore_model::{StatusCause, StatusReason};
use longshore_node_api::{LogError, LogRequest, LogStream};
use serde_json::Value;

use super::kept_logs;
use crate::{
    body::Body,
    call::Call,
    query::Query,
    reply::{self, Reply},
    status_error::{StatusError, forbidden, invalid},
    stopping::stopped,
    streams::{self, Reading, Upgrade, is_websocket},
};

pub(super) async fn log(call: Call, target: Target) -> Reply {
    let namespace = target.namespace.clone().unwrap_or_default();
    let found = call.shared.engine.get(
        &target.kind,
        target.namespace.as_deref(),
        &target.name,
        ReadVersion::Latest,
    );
    let uid = call.query.get("uid").map(str::to_owned);
    let object = match (found.map_err(StatusError::from), uid) {
        (Err(missing), _) if target.name == kept_logs::ALL => {
            return kept_logs::list(call, &target, missing).await;
        }
        (Err(missing), Some(uid)) if missing.status().reason == StatusReason::NotFound => {
            return of_deleted_pod(call, target, uid).await;
        }
        (Ok(object), Some(uid)) if object.uid() != uid => {
            return of_deleted_pod(call, target, uid).await;
        }
        (found, _) => found?,
    };
    // Log lines have the node's time, which can differ from the engine's clock.
    let now = call.shared.engine.shared_clock().now();
    let pod: Value = object.value();
    let container = container(&pod, &target.name, call.query.get("container"))?;
    let mut request = request(&call.query, &target.name, now)?;
    request.namespace = namespace;
    request.pod = target.name;
    request.uid = object.uid().to_owned();
    request.container = container;
    // A pod that is not scheduled yet has no log.
    if pod["spec"]["nodeName"]
        .as_str()
        .unwrap_or_default()
        .is_empty()
    {
        return Ok(reply::with_type(
            StatusCode::NO_CONTENT,
            "text/plain",
            Body::empty(),
        ));
    }
    let opening = call.shared.node_logs.open(request);
    respond(call, opening).await
}

/// Reads the log of a pod whose object no longer exists.
async fn of_deleted_pod(call: Call, target: Target, uid: String) -> Reply {
    let now = call.shared.engine.shared_clock().now();
    let mut request = request(&call.query, &target.name, now)?;
    request.namespace = target.namespace.unwrap_or_default();
    request.pod = target.name;
    request.uid = uid;
    request.container = call.query.get("container").unwrap_or_default().to_owned();
    let opening = call.shared.node_logs.open_deleted(request);
    respond(call, opening).await
}

async fn respond(call: Call, opening: impl Future<Output = Result<LogStream, LogError>>) -> Reply {
    let stream = opening.await.map_err(|error| {
        let reason = match &error {
            LogError::NotFound(_) => StatusReason::NotFound,
            LogError::NotReady(_) => StatusReason::BadRequest,
            LogError::Failed(_) => StatusReason::InternalError,
        };
        StatusError::new(reason, error.to_string())
    })?;
    if is_websocket(&call.headers) {
        return streams::answer(call, Upgrade::Read(Reading(stream)));
    }
    let stream = stream.take_until(stopped(call.stopping)).boxed();
    Ok(reply::with_type(
        StatusCode::OK,
        "text/plain",
        Body::stream(stream),
    ))
}

/// Returns the requested container, or the only container if none is requested.
pub(super) fn container(
    pod: &Value,
    name: &str,
    requested: Option<&str>,
) -> Result<String, StatusError> {
    let names = |list: &str| -> Vec<String> {
        let list = pod["spec"][list].as_array();
        list.into_iter()
            .flatten()
            .filter_map(|container| container["name"].as_str().map(str::to_owned))
            .collect()
    };
    // The order in which Kubernetes lists them.
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    let all = || lists.iter().flat_map(|list| names(list));
    if let Some(requested) = requested {
        let error = || {
            StatusError::bad_request(format!("container {requested} is not valid for pod {name}"))
        };
        return if all().any(|name| name == requested) {
            Ok(requested.to_owned())
        } else {
            Err(error())
        };
    }
    match names("containers").as_slice() {
        [only] => Ok(only.clone()),
        [] => Err(StatusError::bad_request(format!(
            "a container name must be specified for pod {name}"
        ))),
        _ => Err(StatusError::bad_request(format!(
            "a container name must be specified for pod {name}, choose one of: [{}]",
            all().collect::<Vec<_>>().join(" ")
        ))),
    }
}

/// Parses the options of a log request, without its pod and container; `name`
/// is used in messages.
fn request(query: &Query, name: &str, now: Timestamp) -> Result<LogRequest, StatusError> {
    let mut causes: Vec<StatusCause> = Vec::new();
    let mut at_least = |field: &str, least: i64, why: &str| -> Result<Option<u64>, StatusError> {
        let Some(number) = query.number(field)? else {
            return Ok(None);
        };
        if number < least {
            causes.push(invalid(field, number, why));
        }
        Ok(u64::try_from(number).ok())
    };
    let tail_lines = at_least("tailLines", 0, "must be greater than or equal to 0")?;
    let limit_bytes = at_least("limitBytes", 1, "must be greater than 0")?;
    let since_seconds = at_least("sinceSeconds", 1, "must be greater than 0")?;
    let since_time = match query.get("sinceTime") {
        None => None,
        Some(text) => Some(longshore_model::time::parse(text).ok_or_else(|| {
            StatusError::bad_request(format!("sinceTime: {text:?} is not an RFC 3339 time"))
        })?),
    };
    if since_seconds.is_some() && since_time.is_some() {
        let why = "at most one of `sinceTime` or `sinceSeconds` may be specified";
        causes.push(forbidden("sinceSeconds", why));
    }
    // Kubernetes rejects `stream` unless an alpha feature gate is enabled.
    if query.first("stream").is_some() {
        causes.push(forbidden("stream", "may not be specified"));
    }
    if !causes.is_empty() {
        return Err(StatusError::invalid_log_options(name, causes));
    }
    let since_seconds = since_seconds.map(|seconds| {
        let seconds = SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX));
        now.checked_sub(seconds).unwrap_or(Timestamp::MIN)
    });
    Ok(LogRequest {
        namespace: String::new(),
        pod: String::new(),
        uid: String::new(),
        container: String::new(),
        follow: query.flag("follow") == Some(true),
        previous: query.flag("previous") == Some(true),
        tail_lines,
        since: since_time.or(since_seconds),
        timestamps: query.flag("timestamps") == Some(true),
        limit_bytes,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn which_container() {
        let pod = |names: &[&str]| {
            let named: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
            json!({"spec": {"containers": named, "initContainers": [{"name": "i"}]}})
        };
        assert_eq!(container(&pod(&["a"]), "p", None).unwrap(), "a");
        assert_eq!(container(&pod(&["a", "b"]), "p", Some("b")).unwrap(), "b");
        assert_eq!(container(&pod(&["a"]), "p", Some("i")).unwrap(), "i");
        let message = |names: &[&str], requested| {
            container(&pod(names), "p", requested)
                .unwrap_err()
                .status()
                .message
                .clone()
        };
        assert_eq!(
            message(&["a", "b"], None),
            "a container name must be specified for pod p, choose one of: [i a b]"
        );
        assert_eq!(
            message(&["a"], Some("x")),
            "container x is not valid for pod p"
        );
    }

    #[test]
    fn options() {
        let now: Timestamp = "2026-01-01T00:01:00Z".parse().unwrap();
        let parse = |text| request(&Query::parse(Some(text)).unwrap(), "p", now);
        let all =
            parse("follow=true&tailLines=0&sinceSeconds=60&timestamps=true&limitBytes=9").unwrap();
        assert_eq!(all.tail_lines, Some(0));
        assert_eq!(all.since, Some("2026-01-01T00:00:00Z".parse().unwrap()));
        assert!(all.follow && all.timestamps && !all.previous);
        for (text, code) in [
            ("tailLines=-1", 422),
            ("sinceSeconds=0", 422),
            ("limitBytes=0", 422),
            ("sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z", 422),
            ("sinceTime=noon", 400),
            ("tailLines=x", 400),
        ] {
            assert_eq!(parse(text).unwrap_err().status().code, code, "{text}");
        }
    }
}
