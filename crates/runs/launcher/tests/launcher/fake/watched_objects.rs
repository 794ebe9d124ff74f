//! The objects that watches have reported. Lists contain them, too, as on a server.

use std::collections::BTreeMap;

use serde_json::Value;

use super::ReceivedRequest;

#[derive(Debug, Default)]
pub(super) struct WatchedObjects {
    /// The last event of each object, by the path of its list and its uid.
    events: BTreeMap<(String, String), Value>,
}

fn uid(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap_or("").to_owned()
}

fn version(object: &Value) -> u64 {
    let version = object["metadata"]["resourceVersion"].as_str();
    version
        .and_then(|version| version.parse().ok())
        .unwrap_or(0)
}

impl WatchedObjects {
    /// Records the events of a watch that the client receives now.
    pub(super) fn see(&mut self, request: &ReceivedRequest, piece: &str) {
        if !request.query.contains("watch=") {
            return;
        }
        for line in piece.lines() {
            let event = serde_json::from_str::<Value>(line).unwrap_or_default();
            if let Some("ADDED" | "MODIFIED" | "DELETED") = event["type"].as_str() {
                let key = (request.path.clone(), uid(&event["object"]));
                self.events.insert(key, event);
            }
        }
    }

    /// Applies the recorded events to a list of the test.
    pub(super) fn update(&self, request: &ReceivedRequest, list: &mut Value) {
        let Some(items) = list["items"].as_array_mut() else {
            return;
        };
        for ((_, uid_seen), event) in self
            .events
            .iter()
            .filter(|((path, _), _)| *path == request.path)
        {
            let object = &event["object"];
            let known = items.iter().position(|item| uid(item) == *uid_seen);
            if known.is_some_and(|known| version(&items[known]) > version(object)) {
                continue;
            }
            known.map(|known| items.remove(known));
            if event["type"] != "DELETED" {
                items.push(object.clone());
            }
        }
    }
}
