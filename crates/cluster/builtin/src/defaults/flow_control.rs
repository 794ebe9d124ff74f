//! Defaults of FlowSchemas and PriorityLevelConfigurations.

use serde_json::Value;

use crate::json::{self, Object};

pub(crate) fn schema(schema: &mut Object) {
    number(json::child(schema, "spec"), "matchingPrecedence", 1000);
}

pub(crate) fn level(level: &mut Object) {
    let spec = json::child(level, "spec");
    if let Some(Value::Object(exempt)) = spec.get_mut("exempt") {
        json::default(exempt, "nominalConcurrencyShares", 0);
        json::default(exempt, "lendablePercent", 0);
    }
    if let Some(Value::Object(limited)) = spec.get_mut("limited") {
        json::default(limited, "nominalConcurrencyShares", 30);
        json::default(limited, "lendablePercent", 0);
        let response = json::child(limited, "limitResponse");
        if let Some(Value::Object(queuing)) = response.get_mut("queuing") {
            number(queuing, "handSize", 8);
            number(queuing, "queues", 64);
            number(queuing, "queueLengthLimit", 50);
        }
    }
}

/// Sets a number that is absent or 0.
fn number(object: &mut Object, name: &str, value: i64) {
    if json::number(object, name).unwrap_or_default() == 0 {
        object.insert(name.to_owned(), value.into());
    }
}
