//! POST to `pods/{name}/eviction`: a delete that honours disruption budgets.

use http::StatusCode;
use longshore_engine::{DeleteOptions, Evict, Target};
use longshore_model::Status;

use super::{
    admission::{self, Place},
    plain_shape,
};
use crate::{
    call::Call,
    input::{self, RequestBody},
    params,
    reply::{self, Reply},
    status_error::StatusError,
    webhooks::Operation,
};

/// Supported versions of `Eviction`.
const VERSIONS: [&str; 2] = ["policy/v1", "policy/v1beta1"];

pub(super) async fn evict(call: Call, target: Target, body: RequestBody) -> Reply {
    let wanted = plain_shape(&call)?;
    let options = params::write_options(&call.query, "CreateOptions", None, call.user_agent())?;
    let (mut eviction, _) = input::object(&call.headers, body, "Eviction").await?;
    let word = |name: &str| eviction[name].as_str().unwrap_or_default();
    if !matches!(word("kind"), "" | "Eviction") {
        return Err(StatusError::bad_request(format!(
            "{} in version {:?} cannot be handled as a Eviction",
            word("kind"),
            word("apiVersion").rsplit('/').next().unwrap_or_default(),
        )));
    }
    let version = word("apiVersion");
    if !version.is_empty() && !VERSIONS.contains(&version) {
        return Err(StatusError::bad_request(format!(
            "the API version in the data ({version}) does not match the expected API version (policy/v1)"
        )));
    }
    if eviction["metadata"]["name"].as_str() != Some(target.name.as_str()) {
        return Err(StatusError::bad_request(
            "name in URL does not match name in Eviction object",
        ));
    }
    let namespace = target.namespace.clone().unwrap_or_default();
    let place = Place {
        kind: &target.kind,
        namespace: Some(&namespace),
        name: &target.name,
        subresource: "eviction",
    };
    let admission = admission::of(&call, &[Operation::Create], place, || {
        admission::write_options(&call.query, options.dry_run)
    });
    if let Some(admission) = &admission {
        let kind = ("policy/v1", "Eviction");
        admission::complete(&mut eviction, kind, &namespace, &target.name);
        eviction = admission.admit(Operation::Create, eviction).await?;
    }
    let mut delete = match &eviction["deleteOptions"] {
        serde_json::Value::Null => DeleteOptions::default(),
        body => DeleteOptions::from_body(body)?,
    };
    delete.dry_run |= options.dry_run;
    let evict = Evict {
        namespace: target.namespace.unwrap_or_default(),
        name: target.name,
        options: delete,
    };
    call.shared.engine.evict(evict).await?;
    let status = Status {
        code: 201,
        ..Status::success()
    };
    let status = serde_json::to_vec(&status).map_err(StatusError::internal)?;
    reply::document(StatusCode::CREATED, wanted.encoding, status.into())
}
