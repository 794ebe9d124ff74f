//! Table rows of FlowSchemas and PriorityLevelConfigurations.

use jiff::Timestamp;
use serde_json::Value;

use super::{
    Column, age_cell,
    columns::{AGE, NAME, column},
    condition, name, or, text,
};

#[rustfmt::skip]
pub(crate) const SCHEMA: &[Column] = &[
    NAME,
    column("PriorityLevel", "string", "", 0, "The level of its requests."),
    column("MatchingPrecedence", "string", "", 0, "The lowest number decides."),
    column("DistinguisherMethod", "string", "", 0, "How its requests are divided into flows."),
    AGE,
    column("MissingPL", "string", "", 0, "Whether its level does not exist."),
];

#[rustfmt::skip]
pub(crate) const LEVEL: &[Column] = &[
    NAME,
    column("Type", "string", "", 0, "Whether its requests are limited."),
    column("NominalConcurrencyShares", "string", "", 0, "Its share of the requests at a time."),
    column("Queues", "string", "", 0, "The number of its queues."),
    column("HandSize", "string", "", 0, "The number of queues of a flow."),
    column("QueueLengthLimit", "string", "", 0, "The number of requests in a queue."),
    AGE,
];

pub(crate) fn schema(object: &Value, now: Timestamp) -> Vec<Value> {
    let missing = condition(object, "Dangling").map_or("?", |found| text(found, "/status"));
    vec![
        name(object),
        text(object, "/spec/priorityLevelConfiguration/name").into(),
        number(&object["spec"]["matchingPrecedence"], 0.into()),
        or(text(object, "/spec/distinguisherMethod/type"), "<none>").into(),
        age_cell(object, now),
        missing.into(),
    ]
}

pub(crate) fn level(object: &Value, now: Timestamp) -> Vec<Value> {
    let limited = &object["spec"]["limited"];
    let queuing = &limited["limitResponse"]["queuing"];
    let number = |value: &Value| number(value, "<none>".into());
    vec![
        name(object),
        text(object, "/spec/type").into(),
        number(&limited["nominalConcurrencyShares"]),
        number(&queuing["queues"]),
        number(&queuing["handSize"]),
        number(&queuing["queueLengthLimit"]),
        age_cell(object, now),
    ]
}

fn number(value: &Value, absent: Value) -> Value {
    match value {
        Value::Null => absent,
        value => value.clone(),
    }
}
