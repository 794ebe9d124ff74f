//! `pods/exec`, `pods/attach`, `pods/portforward`: validates the request and selects the container.
//! A session does the rest.

use longshore_engine::{ReadVersion, Target};
use longshore_model::StatusReason;
use longshore_node_api::{ContainerRef, SessionError, StreamsWanted};
use serde_json::{Value, json};

use super::{
    admission::{self, Place, RequestOptions},
    logs::container,
};
use crate::{
    authorization::{Attributes, forbidden},
    call::Call,
    query::Query,
    reply::Reply,
    status_error::StatusError,
    streams::{self, Command, Forward, Upgrade},
    webhooks::Operation,
};

/// Checks that the user may create the subresource. Sessions require this permission also with GET.
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

pub(super) async fn exec(mut call: Call, target: Target) -> Reply {
    check_may_create(&call, &target, "exec")?;
    admit(&mut call, &target, "exec", "PodExecOptions").await?;
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

pub(super) async fn attach(mut call: Call, target: Target) -> Reply {
    check_may_create(&call, &target, "attach")?;
    admit(&mut call, &target, "attach", "PodAttachOptions").await?;
    let command = Command {
        container: find(&call, target)?,
        words: None,
        wanted: wanted(&call.query)?,
    };
    check(&call, &command.container)?;
    streams::answer(call, Upgrade::Command(command))
}

pub(super) async fn port_forward(mut call: Call, target: Target) -> Reply {
    check_may_create(&call, &target, "portforward")?;
    let kind = "PodPortForwardOptions";
    admit(&mut call, &target, "portforward", kind).await?;
    let ports = call.query.all("ports").into_iter().flat_map(|ports| {
        let ports: Vec<String> = ports.split(',').map(str::to_owned).collect();
        ports
    });
    let ports = ports.map(|port| match port.parse() {
        Ok(port @ 1_u16..) => Ok(port),
        _ => Err(StatusError::bad_request(format!(
            "ports: {port:?} is not a port: give numbers from 1 to 65535"
        ))),
    });
    let ports = ports.collect::<Result<Vec<u16>, StatusError>>()?;
    let (pod, _) = pod(&call, target)?;
    streams::answer(call, Upgrade::Forward(Forward { pod, ports }))
}

/// Executes admission on the options of a session, which webhooks can change.
async fn admit(
    call: &mut Call,
    target: &Target,
    subresource: &str,
    kind: &str,
) -> Result<(), StatusError> {
    const FLAGS: [&str; 4] = ["stdin", "stdout", "stderr", "tty"];
    let place = Place {
        kind: &target.kind,
        namespace: target.namespace.as_deref(),
        name: &target.name,
        subresource,
    };
    let admission = admission::of(call, &[Operation::Connect], place, RequestOptions::default);
    let Some(admission) = admission else {
        return Ok(());
    };
    let mut options = json!({"kind": kind, "apiVersion": "v1"});
    for flag in FLAGS {
        if call.query.flag(flag) == Some(true) {
            options[flag] = true.into();
        }
    }
    if let Some(container) = call.query.get("container") {
        options["container"] = container.into();
    }
    let command = call.query.all("command");
    if !command.is_empty() {
        options["command"] = command.into();
    }
    let ports = call.query.all("ports");
    let ports = ports.iter().flat_map(|ports| ports.split(','));
    let ports: Vec<u16> = ports.filter_map(|port| port.parse().ok()).collect();
    if !ports.is_empty() {
        options["ports"] = ports.into();
    }
    let admitted = admission.admit(Operation::Connect, options.clone()).await?;
    if admitted == options {
        return Ok(());
    }
    for flag in FLAGS {
        let value = admitted[flag] == true;
        call.query.set(flag, vec![value.to_string()]);
    }
    let words = |field: &str| {
        let words = admitted[field].as_array().into_iter().flatten();
        let words = words.map(|word| match word {
            Value::String(word) => word.clone(),
            other => other.to_string(),
        });
        words.collect()
    };
    let container = admitted["container"].as_str().map(str::to_owned);
    call.query.set("container", container.into_iter().collect());
    call.query.set("command", words("command"));
    call.query.set("ports", words("ports"));
    Ok(())
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
