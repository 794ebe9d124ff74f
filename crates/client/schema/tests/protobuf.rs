//! Bodies that a real kubectl (1.34) sent, compared with the JSON that the same kubectl
//! prints for the same objects; and invalid bodies.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use longshore_schema::protobuf::{DecodeError, decode, is_protobuf};
use proptest::prelude::*;
use serde_json::{Value, json};

fn body(name: &str) -> Vec<u8> {
    std::fs::read(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/data")
            .join(name),
    )
    .unwrap()
}

fn assert_decodes(name: &str) {
    let expected: Value = serde_json::from_slice(&body(&format!("{name}.json"))).unwrap();
    let bytes = body(&format!("{name}.bin"));
    assert!(is_protobuf(&bytes));
    let decoded = decode(&bytes).unwrap();
    assert_eq!(
        serde_json::to_string_pretty(&decoded).unwrap(),
        serde_json::to_string_pretty(&expected).unwrap(),
        "{name}"
    );
}

/// Every file of `tests/data` with an expected JSON.
#[test]
fn bodies_of_kubectl() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut count = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            assert_decodes(path.file_stem().unwrap().to_str().unwrap());
            count += 1;
        }
    }
    assert_eq!(count, 12);
}

/// Kinds that are only sent. kubectl prints no JSON for them.
#[test]
fn reviews_and_token_requests() {
    assert_eq!(
        decode(&body("review.bin")).unwrap(),
        json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "metadata": {}, "status": {"allowed": false},
            "spec": {"resourceAttributes": {"namespace": "default", "verb": "create", "resource": "pods"}},
        })
    );
    let token = decode(&body("token.bin")).unwrap();
    assert_eq!(token["kind"], "TokenRequest");
    assert_eq!(token["spec"]["expirationSeconds"], 600);
}

/// An envelope around a message, encoded by hand.
fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let mut types = Vec::new();
    field(&mut types, 1, api_version.as_bytes());
    field(&mut types, 2, kind.as_bytes());
    let mut body = b"k8s\0".to_vec();
    field(&mut body, 1, &types);
    field(&mut body, 2, raw);
    body
}

/// A field with bytes, whose number is below 16.
fn field(message: &mut Vec<u8>, number: u8, bytes: &[u8]) {
    message.push(number << 3 | 2);
    let mut length = bytes.len();
    while length > 0x7f {
        message.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
        length >>= 7;
    }
    message.push(u8::try_from(length).unwrap());
    message.extend_from_slice(bytes);
}

#[test]
fn options_are_decoded_under_any_group() {
    // gracePeriodSeconds 0, propagationPolicy, preconditions.uid
    let mut raw = vec![0x08, 0x00];
    field(&mut raw, 4, b"Foreground");
    field(&mut raw, 2, &[0x0a, 1, b'u']);
    for api_version in ["v1", "batch/v1", "meta.k8s.io/v1"] {
        assert_eq!(
            decode(&envelope(api_version, "DeleteOptions", &raw)).unwrap(),
            json!({
                "apiVersion": api_version, "kind": "DeleteOptions", "gracePeriodSeconds": 0,
                "propagationPolicy": "Foreground", "preconditions": {"uid": "u"},
            })
        );
    }
}

#[test]
fn a_repeated_field_is_merged() {
    let mut raw = Vec::new();
    field(&mut raw, 1, &[0x0a, 1, b'a']); // metadata.name
    field(&mut raw, 1, &[0x1a, 1, b'b']); // metadata.namespace
    field(&mut raw, 1, &[0x0a, 1, b'c']); // metadata.name
    assert_eq!(
        decode(&envelope("v1", "ConfigMap", &raw)).unwrap()["metadata"],
        json!({"name": "c", "namespace": "b"})
    );
}

#[test]
fn packed_numbers_are_decoded() {
    // spec.securityContext.supplementalGroups, packed: 1, 300
    let mut security = Vec::new();
    field(&mut security, 4, &[0x01, 0xac, 0x02]);
    let mut spec = Vec::new();
    field(&mut spec, 14, &security);
    let mut raw = Vec::new();
    field(&mut raw, 2, &spec);
    assert_eq!(
        decode(&envelope("v1", "Pod", &raw)).unwrap()["spec"]["securityContext"],
        json!({"supplementalGroups": [1, 300]})
    );
}

#[test]
fn schemas_that_may_be_a_boolean_are_decoded() {
    // JSONSchemaProps in CustomResourceDefinition: spec.versions[].schema.openAPIV3Schema,
    // whose `items` (24) is a schema and whose `additionalProperties` (30) is a boolean.
    let mut items = Vec::new();
    field(&mut items, 5, b"string");
    let mut or_array = Vec::new();
    field(&mut or_array, 1, &items);
    let mut schema = Vec::new();
    field(&mut schema, 5, b"object");
    schema.extend([0xc2, 0x01, u8::try_from(or_array.len()).unwrap()]);
    schema.extend(or_array);
    schema.extend([0xf2, 0x01, 2, 0x08, 0x01]);
    let mut validation = Vec::new();
    field(&mut validation, 1, &schema);
    let mut version = Vec::new();
    field(&mut version, 4, &validation);
    let mut spec = Vec::new();
    field(&mut spec, 7, &version);
    let mut raw = Vec::new();
    field(&mut raw, 2, &spec);
    let decoded = decode(&envelope(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        &raw,
    ))
    .unwrap();
    assert_eq!(
        decoded["spec"]["versions"][0]["schema"]["openAPIV3Schema"],
        json!({"type": "object", "items": {"type": "string"}, "additionalProperties": true})
    );
}

#[test]
fn errors_of_rejected_bodies_name_the_cause() {
    let error = |body: &[u8]| decode(body).unwrap_err().to_string();
    assert_eq!(decode(b"{}"), Err(DecodeError::NotProtobuf));
    assert_eq!(
        error(&envelope("a.com/v1", "Shoe", b"")),
        "no protobuf format is known for kind \"Shoe\" of apiVersion \"a.com/v1\": send it as JSON"
    );
    assert_eq!(
        error(&envelope("v1", "Pod", &[0x0a, 0x05, 0x00])),
        "the protobuf body is cut short or damaged, in field 1 of io.k8s.api.core.v1.Pod"
    );
    assert_eq!(
        error(&envelope("v1", "Pod", &[0x0a, 0x02, 0x08, 0x01])),
        "the protobuf field io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta.name does not hold \
         bytes"
    );
    let mut name = Vec::new();
    field(&mut name, 1, &[0xff]);
    let mut raw = Vec::new();
    field(&mut raw, 1, &name);
    assert!(
        error(&envelope("v1", "Pod", &raw)).ends_with("ObjectMeta.name does not hold UTF-8 text")
    );
}

#[test]
fn excessive_nesting_is_rejected() {
    // JSONSchemaProps.not (28) within itself.
    let mut schema = Vec::new();
    for _ in 0..500 {
        let mut outer = vec![0xe2, 0x01];
        let mut framed = Vec::new();
        field(&mut framed, 1, &schema);
        outer.extend(&framed[1..]);
        schema = outer;
    }
    let mut raw = Vec::new();
    let mut validation = Vec::new();
    field(&mut validation, 1, &schema);
    let mut version = Vec::new();
    field(&mut version, 4, &validation);
    let mut spec = Vec::new();
    field(&mut spec, 7, &version);
    field(&mut raw, 2, &spec);
    assert_eq!(
        decode(&envelope(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            &raw
        )),
        Err(DecodeError::TooDeep(100))
    );
}

proptest! {
    /// Neither random bytes …
    #[test]
    fn decode_never_panics(raw in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = decode(&raw);
        for (api_version, kind) in [("v1", "Pod"), ("batch/v1", "Job"), ("v1", "Event")] {
            let _ = decode(&envelope(api_version, kind, &raw));
        }
    }

    /// … nor real bodies with a few changed bytes cause a panic …
    #[test]
    fn damaged_bodies_never_panic(
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = body("job-of-everything.bin");
        for (index, byte) in damage {
            let index = index.index(bytes.len());
            bytes[index] = byte;
        }
        let _ = decode(&bytes);
    }
}

/// … and an object is never partially decoded. (The last four bytes of a body are two empty
/// fields without a meaning.)
#[test]
fn truncated_bodies_are_rejected() {
    let bytes = body("job-of-everything.bin");
    for length in 0..bytes.len() - 4 {
        assert!(decode(&bytes[..length]).is_err(), "cut to {length} bytes");
    }
}
