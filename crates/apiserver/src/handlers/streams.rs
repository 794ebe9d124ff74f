//! `pods/exec`, `pods/attach`, `pods/portforward`: validates the request and
//! selects the container. A session does the rest.

use longshore_engine::{ReadVersion, Target};
use longshore_model::StatusReason;
use longshore_node_api::{ContainerRef, SessionError, StreamsWanted};
use serde_json::Value;

use super::logs::container;
use crate::{
    authorization::{Attributes, forbidden},
    call::Call,
    query::Query,
    reply::Reply,
    status_error::StatusError,
    streams::{self, Command, Forward, Upgrade},
};

/// Opening a session requires the permission to create it, also with GET.
fn check_may_create(call: &Call, target: &Target, subresource: &str) -> Result<(), StatusError> {
    let create = Attributes {
        verb: "create".to_owned(),
        resource: "pods".to_owned(),
        subresource: subresource.to_owned(),
        namespace: target.namespace.clone().unwrap_or_default(),
        name: target.name.clone(),
        ..Attributes::default()
    };
    let decision = call.shared.authorizer.decide(&call.user, &create);
    match decision.allowed {
        true => Ok(()),
        // As in Kubernetes, the message does not repeat the request.
        false => Err(forbidden("", "pods", &target.name, &decision.reason)),
    }
}

pub(super) fn exec(call: Call, target: Target) -> Reply {
    check_may_create(&call, &target, "exec")?;
    let words = call.query.all("command");
    let container = find(&call, target)?;
    let wanted = wanted(&call.query)?;
    if words.is_empty() {
        return Err(StatusError::bad_request(
            "you must specify at least one command for the container",
        ));
    }
    let command = Command {
        container,
        words: Some(words),
        wanted,
    };
    check(&call, &command.container)?;
    streams::answer(call, Upgrade::Command(command))
}

pub(super) fn attach(call: Call, target: Target) -> Reply {
    check_may_create(&call, &target, "attach")?;
    let command = Command {
        container: find(&call, target)?,
        words: None,
        wanted: wanted(&call.query)?,
    };
    check(&call, &command.container)?;
    streams::answer(call, Upgrade::Command(command))
}

pub(super) fn port_forward(call: Call, target: Target) -> Reply {
    check_may_create(&call, &target, "portforward")?;
    let ports = call.query.all("ports").into_iter().flat_map(|ports| {
        let ports: Vec<String> = ports.split(',').map(str::to_owned).collect();
        ports
    });
    let ports = ports.map(|port| match port.parse() {
        Ok(port @ 1_u16..) => Ok(port),
        _ => Err(StatusError::bad_request(format!(
            "ports: {port:?} is no port: give numbers from 1 to 65535"
        ))),
    });
    let ports = ports.collect::<Result<Vec<u16>, StatusError>>()?;
    let (pod, _) = pod(&call, target)?;
    streams::answer(call, Upgrade::Forward(Forward { pod, ports }))
}

/// Returns the pod, which must be assigned to a node.
fn pod(call: &Call, target: Target) -> Result<(ContainerRef, Value), StatusError> {
    let object = call.shared.engine.get(
        &target.kind,
        target.namespace.as_deref(),
        &target.name,
        ReadVersion::Latest,
    )?;
    let pod: Value = object.value();
    let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    if node.is_empty() {
        return Err(StatusError::bad_request(format!(
            "pod {} does not have a host assigned",
            target.name
        )));
    }
    let found = ContainerRef {
        namespace: target.namespace.unwrap_or_default(),
        pod: target.name,
        uid: object.uid().to_owned(),
        container: String::new(),
    };
    Ok((found, pod))
}

fn find(call: &Call, target: Target) -> Result<ContainerRef, StatusError> {
    let requested = call.query.get("container");
    let object = call.shared.engine.get(
        &target.kind,
        target.namespace.as_deref(),
        &target.name,
        ReadVersion::Latest,
    )?;
    let named = container(&object.value(), &target.name, requested)?;
    let (found, _) = pod(call, target)?;
    Ok(ContainerRef {
        container: named,
        ..found
    })
}

fn wanted(query: &Query) -> Result<StreamsWanted, StatusError> {
    let is = |name| query.flag(name) == Some(true);
    let terminal = is("tty");
    let wanted = StreamsWanted {
        input: is("stdin"),
        output: is("stdout"),
        // A terminal has only one output.
        errors: is("stderr") && !terminal,
        terminal,
    };
    if !wanted.input && !wanted.output && !wanted.errors {
        return Err(StatusError::bad_request(
            "you must specify at least 1 of stdin, stdout, stderr",
        ));
    }
    Ok(wanted)
}

/// Rejects a container that is not running, while the response can still carry
/// a status code.
fn check(call: &Call, container: &ContainerRef) -> Result<(), StatusError> {
    let checked = call.shared.node_streams.check(container);
    checked.map_err(|error| match error {
        SessionError::NotRunning(text) => StatusError::new(StatusReason::InternalError, text),
        error => StatusError::internal(error),
    })
}
