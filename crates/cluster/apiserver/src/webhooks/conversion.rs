//! Conversion webhooks: they convert custom objects between the versions of
//! their definition.

use std::{sync::Arc, time::Duration};

use longshore_engine::{Engine, Error, Ids as _, Object, RandomIds};
use longshore_model::KindInfo;
use serde_json::{Map, Value, json};

use super::{
    Webhooks,
    client::{Address, Client, size},
};

/// The time limit of a conversion (as in Kubernetes).
const TIMEOUT: Duration = Duration::from_secs(30);

/// The largest number of clients that are kept with their connections.
const MAX_CLIENTS: usize = 64;

/// The largest size in bytes of the objects of one call, unless it is a single
/// object. The response may be twice as large.
const MAX_CALL_BYTES: usize = 4 << 20;

/// Converts the objects of a definition.
#[derive(Debug, Clone)]
pub(crate) struct Converter {
    client: Arc<Client>,
    /// The version of `ConversionReview`; `None` if the webhook supports no version that this
    /// server supports.
    review: Option<&'static str>,
    engine: Engine,
}

impl Webhooks {
    /// Returns the converter that `spec.conversion.webhook` of a definition
    /// describes.
    pub(crate) fn converter(&self, engine: &Engine, webhook: &Value) -> Converter {
        let address = Address::read(webhook.get("clientConfig"));
        let mut clients = self.converters();
        if clients.len() >= MAX_CLIENTS && !clients.contains_key(&address) {
            clients.clear();
        }
        let client = clients
            .entry(address)
            .or_insert_with_key(|address| Arc::new(Client::new(address.clone())));
        let versions = webhook["conversionReviewVersions"].as_array();
        let mut versions = versions.into_iter().flatten().filter_map(Value::as_str);
        Converter {
            client: client.clone(),
            review: versions.find_map(|version| match version {
                "v1" => Some("apiextensions.k8s.io/v1"),
                "v1beta1" => Some("apiextensions.k8s.io/v1beta1"),
                _ => None,
            }),
            engine: engine.clone(),
        }
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    let text = object.pointer(pointer).and_then(Value::as_str);
    text.unwrap_or_default()
}

impl Converter {
    /// Presents stored objects in a version.
    ///
    /// # Errors
    /// The webhook cannot be called, or its response is not valid.
    pub(crate) async fn present(
        &self,
        info: &KindInfo,
        objects: &mut [Arc<Object>],
    ) -> Result<(), Error> {
        let mut rest = objects;
        while !rest.is_empty() {
            let mut bytes: usize = 0;
            let fits = |object: &&Arc<Object>| {
                bytes = bytes.saturating_add(object.bytes().len());
                bytes <= MAX_CALL_BYTES
            };
            let count = rest.iter().take_while(fits).count().max(1);
            let (part, others) = rest.split_at_mut(count);
            self.present_part(info, part).await?;
            rest = others;
        }
        Ok(())
    }

    async fn present_part(
        &self,
        info: &KindInfo,
        objects: &mut [Arc<Object>],
    ) -> Result<(), Error> {
        let version = info.api_version();
        let mut sent = Vec::new();
        let mut places = Vec::new();
        for object in objects {
            let value = object.value();
            if text(&value, "/apiVersion") != version {
                sent.push(value);
                places.push(object);
            }
        }
        let converted = self.convert(&sent, &version).await?;
        for (place, converted) in places.into_iter().zip(converted) {
            *place = self.engine.represented(place, converted, info)?;
        }
        Ok(())
    }

    /// Presents one stored object in a version.
    ///
    /// # Errors
    /// The errors of [`Converter::present`].
    pub(crate) async fn present_one(
        &self,
        info: &KindInfo,
        object: &mut Arc<Object>,
    ) -> Result<(), Error> {
        self.present(info, std::slice::from_mut(object)).await
    }

    /// Converts an object.
    ///
    /// # Errors
    /// The errors of [`Converter::present`].
    pub(super) async fn convert_one(&self, object: Value, version: &str) -> Result<Value, Error> {
        if text(&object, "/apiVersion") == version {
            return Ok(object);
        }
        let converted = self.convert(&[object], version).await?;
        Ok(converted.into_iter().next().unwrap_or_default())
    }

    /// Converts objects in one call. All of them have other versions.
    ///
    /// # Errors
    /// The errors of [`Converter::present`].
    async fn convert(&self, objects: &[Value], version: &str) -> Result<Vec<Value>, Error> {
        let Some(first) = objects.first() else {
            return Ok(Vec::new());
        };
        let converted = self.call(objects, version).await;
        converted.map_err(|problem| {
            Error::Untyped(format!(
                "conversion webhook for {}, Kind={} {problem}",
                text(first, "/apiVersion"),
                text(first, "/kind"),
            ))
        })
    }

    async fn call(&self, objects: &[Value], version: &str) -> Result<Vec<Value>, String> {
        let failed = |problem: String| format!("failed: {problem}");
        let unknown = || failed("no supported conversion review versions".into());
        let review = self.review.ok_or_else(unknown)?;
        let uid = RandomIds.uid();
        let room = self.client.room(size(objects), TIMEOUT).await;
        let room = room.map_err(failed)?;
        let request = json!({"uid": uid, "desiredAPIVersion": version, "objects": objects});
        let message = json!({"kind": "ConversionReview", "apiVersion": review, "request": request});
        let text = message.to_string();
        drop(message);
        let body = self
            .client
            .post(&self.engine, (text.into(), room), TIMEOUT)
            .await;
        let body = body.map_err(failed)?;
        read(&body, (review, &uid), (objects, version))
    }
}

/// Reads the response of a webhook, which is untrusted.
fn read(
    body: &[u8],
    (review, uid): (&str, &str),
    (objects, version): (&[Value], &str),
) -> Result<Vec<Value>, String> {
    let mut answer: Value = serde_json::from_slice(body).map_err(|error| {
        let problem = crate::input::json_problem(&error);
        format!("failed: couldn't get version/kind; json parse error: {problem}")
    })?;
    let (found, kind) = (text(&answer, "/apiVersion"), text(&answer, "/kind"));
    let is_v1 = review.ends_with("/v1");
    if is_v1 && (found != review || kind != "ConversionReview") {
        return Err(format!(
            "failed: expected webhook response of {review}, Kind=ConversionReview, got {found}, Kind={kind}"
        ));
    }
    if !answer["response"].is_object() {
        return Err("failed: no response provided".into());
    }
    let sent = text(&answer, "/response/uid");
    if is_v1 && sent != uid {
        return Err(format!(
            "failed: expected response.uid={uid:?}, got {sent:?}"
        ));
    }
    let status = text(&answer, "/response/result/status");
    if status != "Success" {
        return Err(match text(&answer, "/response/result/message") {
            "" => format!("failed: response.result.status was '{status}', not 'Success'"),
            message => format!("failed: {message}"),
        });
    }
    let converted = match answer["response"]["convertedObjects"].take() {
        Value::Array(converted) => converted,
        _ => Vec::new(),
    };
    if converted.len() != objects.len() {
        return Err(format!(
            "returned {} objects, expected {}",
            converted.len(),
            objects.len()
        ));
    }
    let pairs = objects.iter().zip(converted).enumerate();
    pairs
        .map(|(index, (object, converted))| {
            checked(object, converted, version).map_err(|problem| {
                format!("returned invalid converted object at index {index}: {problem}")
            })
        })
        .collect()
}

/// Checks a converted object, and restores its metadata: a webhook may change
/// only labels and annotations.
fn checked(object: &Value, mut converted: Value, version: &str) -> Result<Value, String> {
    let received = text(&converted, "/apiVersion");
    if received != version {
        return Err(format!(
            "invalid groupVersion (expected {version}, received {received})"
        ));
    }
    for (field, pointer) in [
        ("kind", "/kind"),
        ("name", "/metadata/name"),
        ("namespace", "/metadata/namespace"),
        ("UID", "/metadata/uid"),
    ] {
        let (expected, found) = (text(object, pointer), text(&converted, pointer));
        if expected != found {
            return Err(format!("must have the same {field}: {expected} != {found}"));
        }
    }
    let Some(Value::Object(changed)) = converted.get_mut("metadata") else {
        return Err("missing metadata in converted object".into());
    };
    let mut metadata: Map<String, Value> =
        object["metadata"].as_object().cloned().unwrap_or_default();
    for field in ["labels", "annotations"] {
        metadata.remove(field);
        match changed.remove(field) {
            None | Some(Value::Null) => {}
            Some(Value::Object(texts)) if texts.values().all(Value::is_string) => {
                metadata.insert(field.into(), Value::Object(texts));
            }
            Some(_) => return Err(format!("metadata.{field} is not a map of strings")),
        }
    }
    *changed = metadata;
    Ok(converted)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    const V1: &str = "apiextensions.k8s.io/v1";

    fn ship(version: &str) -> Value {
        json!({
            "apiVersion": format!("example.com/{version}"), "kind": "Ship",
            "metadata": {"name": "a", "uid": "u", "labels": {"a": "b"}, "generation": 2},
        })
    }

    fn answered(response: &Value) -> Result<Vec<Value>, String> {
        let answer = json!({"apiVersion": V1, "kind": "ConversionReview", "response": response});
        let objects = [ship("v1")];
        let bytes = answer.to_string().into_bytes();
        read(&bytes, (V1, "x"), (&objects, "example.com/v2"))
    }

    fn success(converted: Value) -> Value {
        json!({"uid": "x", "result": {"status": "Success"}, "convertedObjects": converted})
    }

    #[test]
    fn only_labels_and_annotations_of_the_metadata_change() {
        let mut converted = ship("v2");
        converted["metadata"] =
            json!({"name": "a", "uid": "u", "annotations": {"c": "d"}, "generation": 7});
        converted["spec"] = json!({"size": 1});
        let read = answered(&success(json!([converted]))).unwrap();
        assert_eq!(
            read[0]["metadata"],
            json!({"name": "a", "uid": "u", "annotations": {"c": "d"}, "generation": 2})
        );
        assert_eq!(read[0]["spec"]["size"], 1);
    }

    #[test]
    fn invalid_responses() {
        let mut other = ship("v2");
        other["metadata"]["name"] = "b".into();
        for (response, problem) in [
            (json!(null), "failed: no response provided"),
            (
                json!({"uid": "y"}),
                "failed: expected response.uid=\"x\", got \"y\"",
            ),
            (
                json!({"uid": "x", "result": {"status": "Failure", "message": "no"}}),
                "failed: no",
            ),
            (
                json!({"uid": "x"}),
                "failed: response.result.status was '', not 'Success'",
            ),
            (success(json!([])), "returned 0 objects, expected 1"),
            (
                success(json!([ship("v1")])),
                "returned invalid converted object at index 0: invalid groupVersion (expected example.com/v2, received example.com/v1)",
            ),
            (
                success(json!([other])),
                "returned invalid converted object at index 0: must have the same name: a != b",
            ),
        ] {
            assert_eq!(answered(&response).unwrap_err(), problem);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_cause_a_panic(body: Vec<u8>) {
            let _ = read(&body, (V1, "x"), (&[ship("v1")], "example.com/v2"));
        }

        #[test]
        fn no_metadata_causes_a_panic(text in "[a-z\\[\\]{}\":,0-9]{0,40}") {
            let metadata = serde_json::from_str(&text).unwrap_or(Value::String(text));
            let mut converted = ship("v2");
            converted["metadata"] = metadata;
            let _ = answered(&success(json!([converted])));
        }
    }
}
