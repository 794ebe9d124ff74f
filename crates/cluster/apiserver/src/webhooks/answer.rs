//! The response of a webhook, which is untrusted.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use longshore_model::{Status, StatusDetails, StatusReason};
use serde::Deserialize as _;
use serde_json::Value;

use super::{message::ReviewVersion, refusal::CallError};

/// The decision of a webhook.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answer {
    /// The `Status` of a refusal; `None` if the request is allowed.
    pub(super) refusal: Option<Box<Status>>,
    /// The JSON patch; empty if the object is not changed.
    pub(super) patch: Vec<u8>,
    /// The type of the patch, which must be `JSONPatch`.
    pub(super) patch_type: String,
    pub(super) warnings: Vec<String>,
    /// Annotations for the audit log.
    pub(super) annotations: Vec<(String, String)>,
}

/// Bytes of a body that an error message contains.
const SHOWN_BYTES: usize = 256;

/// Reads a response. It must have the uid of the request.
pub(super) fn read(
    body: &[u8],
    (version, uid, is_mutating): (ReviewVersion, &str, bool),
    webhook: &str,
) -> Result<Answer, CallError> {
    let shown = || String::from_utf8_lossy(&body[..body.len().min(SHOWN_BYTES)]);
    let review: Value = serde_json::from_slice(body).map_err(|error| {
        let problem = crate::input::json_problem(&error);
        CallError::call(format!(
            "couldn't get version/kind; json parse error: {problem}"
        ))
    })?;
    let word = |field: &str| review[field].as_str().unwrap_or_default();
    if word("kind").is_empty() {
        return Err(CallError::call(format!(
            "Object 'Kind' is missing in '{}'",
            shown()
        )));
    }
    let response = &review["response"];
    if !response.is_object() {
        return Err(CallError::answer("webhook response was absent"));
    }
    let text = |field: &str| response[field].as_str().unwrap_or_default();
    if version == ReviewVersion::V1 {
        if text("uid") != uid {
            return Err(CallError::answer(format!(
                "expected response.uid={uid:?}, got {:?}",
                text("uid")
            )));
        }
        let expected = version.api_version();
        if word("apiVersion") != expected || word("kind") != "AdmissionReview" {
            return Err(CallError::answer(format!(
                "expected webhook response of {expected}, Kind=AdmissionReview, got {}, Kind={}",
                word("apiVersion"),
                word("kind"),
            )));
        }
        check_patch(response, is_mutating)?;
    }
    let patch = STANDARD.decode(text("patch")).map_err(|error| {
        CallError::call(format!("response.patch is not encoded as base64: {error}"))
    })?;
    let is_beta = version == ReviewVersion::V1Beta1;
    let patch_type = match text("patchType") {
        _ if is_beta && !patch.is_empty() => "JSONPatch",
        named => named,
    };
    let annotations = response["auditAnnotations"]
        .as_object()
        .into_iter()
        .flatten();
    let annotations = annotations
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect();
    let warnings = response["warnings"].as_array().into_iter().flatten();
    let is_allowed = response["allowed"].as_bool() == Some(true);
    Ok(Answer {
        refusal: (!is_allowed).then(|| Box::new(refusal(webhook, &response["status"]))),
        patch: if is_mutating { patch } else { Vec::new() },
        patch_type: patch_type.to_owned(),
        annotations,
        warnings: warnings
            .filter_map(|warning| warning.as_str().map(str::to_owned))
            .collect(),
    })
}

/// Checks that a patch and its type are both set or both absent, and set only if the webhook may
/// change the object.
fn check_patch(response: &Value, is_mutating: bool) -> Result<(), CallError> {
    let has_patch = response["patch"].as_str().is_some_and(|p| !p.is_empty());
    let patch_type = response["patchType"].as_str();
    let problem = match (is_mutating, has_patch, patch_type) {
        (true, true, None) => "webhook returned response.patch but not response.patchType",
        (true, false, Some(_)) => "webhook returned response.patchType but not response.patch",
        (true, _, Some("")) => "webhook returned invalid response.patchType of \"\"",
        (false, true, _) => "validating webhook may not return response.patch",
        (false, _, Some(_)) => "validating webhook may not return response.patchType",
        _ => return Ok(()),
    };
    Err(CallError::answer(problem))
}

/// Returns the `Status` of a refused request.
fn refusal(webhook: &str, result: &Value) -> Status {
    let text = |field: &str| result[field].as_str().unwrap_or_default();
    let denied = format!("admission webhook {webhook:?} denied the request");
    let message = match (text("message"), text("reason")) {
        ("", "") => format!("{denied} without explanation"),
        ("", reason) => format!("{denied}: {reason}"),
        (message, _) => format!("{denied}: {message}"),
    };
    let mut status = Status::failure(StatusReason::from_word(text("reason")), message);
    // A refused request fails even if the webhook sends a code of success.
    let code = result["code"].as_i64().unwrap_or_default().max(400);
    status.code = u16::try_from(code)
        .ok()
        .filter(|code| *code < 600)
        .unwrap_or(500);
    if !result["details"].is_null() {
        status.details = StatusDetails::deserialize(&result["details"]).ok();
    }
    status
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn v1(response: &Value, is_mutating: bool) -> Result<Answer, CallError> {
        let review = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response,
        });
        let expected = (ReviewVersion::V1, "u", is_mutating);
        read(review.to_string().as_bytes(), expected, "a.b.c")
    }

    #[test]
    fn valid_responses() {
        let answer = v1(&json!({"uid": "u", "allowed": true}), true).unwrap();
        assert_eq!((answer.refusal, answer.patch.len()), (None, 0));
        let response = json!({
            "uid": "u", "allowed": true, "patch": "W10=", "patchType": "JSONPatch",
            "warnings": ["a", 1, "b"], "auditAnnotations": {"k": "v"},
        });
        let answer = v1(&response, true).unwrap();
        assert_eq!(
            (&*answer.patch, &*answer.patch_type),
            (&b"[]"[..], "JSONPatch")
        );
        assert_eq!(answer.warnings, ["a", "b"]);
    }

    #[test]
    fn refusals() {
        for (status, code, reason, message) in [
            (json!(null), 400, "", " without explanation"),
            (json!({"message": "no", "code": 403}), 403, "", ": no"),
            (
                json!({"reason": "Forbidden"}),
                400,
                "Forbidden",
                ": Forbidden",
            ),
            (json!({"code": 200, "message": "x"}), 400, "", ": x"),
            (json!({"code": 70_000, "message": "x"}), 500, "", ": x"),
            (json!({"code": -1, "message": "x"}), 400, "", ": x"),
            (
                json!({"code": "1", "message": 5}),
                400,
                "",
                " without explanation",
            ),
        ] {
            let response = json!({"uid": "u", "allowed": false, "status": status});
            let status = *v1(&response, false).unwrap().refusal.unwrap();
            let expected = format!("admission webhook \"a.b.c\" denied the request{message}");
            assert_eq!(
                (status.code, status.reason.as_str(), status.message),
                (code, reason, expected)
            );
        }
    }

    #[test]
    fn invalid_responses() {
        for (response, is_mutating, problem) in [
            (json!(null), true, "webhook response was absent"),
            (
                json!({"uid": "x"}),
                true,
                "expected response.uid=\"u\", got \"x\"",
            ),
            (
                json!({"uid": "u", "patch": "W10="}),
                true,
                "webhook returned response.patch but not response.patchType",
            ),
            (
                json!({"uid": "u", "patchType": "JSONPatch"}),
                true,
                "webhook returned response.patchType but not response.patch",
            ),
            (
                json!({"uid": "u", "patch": "W10="}),
                false,
                "validating webhook may not return response.patch",
            ),
            (
                json!({"uid": "u", "patchType": "JSONPatch"}),
                false,
                "validating webhook may not return response.patchType",
            ),
        ] {
            let error = v1(&response, is_mutating).unwrap_err();
            let expected = format!("received invalid webhook response: {problem}");
            assert_eq!(error.0, expected);
        }
        let other = json!({"apiVersion": "v1", "kind": "Pod", "response": {"uid": "u"}});
        let expected = (ReviewVersion::V1, "u", true);
        let error = read(other.to_string().as_bytes(), expected, "w").unwrap_err();
        assert_eq!(
            error.0,
            "received invalid webhook response: expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got v1, Kind=Pod"
        );
        let error = read(b"{}", expected, "w").unwrap_err();
        assert_eq!(
            error.0,
            "failed to call webhook: Object 'Kind' is missing in '{}'"
        );
    }

    #[test]
    fn beta_reviews_may_omit_uid_and_patch_type() {
        let review =
            json!({"kind": "AdmissionReview", "response": {"allowed": true, "patch": "W10="}});
        let expected = (ReviewVersion::V1Beta1, "u", true);
        let answer = read(review.to_string().as_bytes(), expected, "w").unwrap();
        assert_eq!(answer.patch_type, "JSONPatch");
    }

    /// Any JSON value with the field names of a response.
    fn reviews() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-zA-Z0-9+/=]{0,8}".prop_map(Value::from),
            Just(json!("JSONPatch")),
            Just(json!("u")),
            Just(json!("admission.k8s.io/v1")),
            Just(json!("AdmissionReview")),
        ];
        let field = prop_oneof![
            Just("apiVersion"),
            Just("kind"),
            Just("response"),
            Just("uid"),
            Just("allowed"),
            Just("status"),
            Just("patch"),
            Just("patchType"),
            Just("warnings"),
            Just("code"),
            Just("message"),
            Just("details"),
        ];
        leaf.prop_recursive(4, 64, 12, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map(field.clone().prop_map(str::to_owned), inner, 0..12)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_response_causes_a_panic(review in reviews(), is_mutating: bool, beta: bool) {
            let version = if beta { ReviewVersion::V1Beta1 } else { ReviewVersion::V1 };
            let answer = read(review.to_string().as_bytes(), (version, "u", is_mutating), "w");
            if let Ok(Answer { refusal: Some(status), .. }) = answer {
                prop_assert!((400..600).contains(&status.code));
            }
        }

        #[test]
        fn no_bytes_cause_a_panic(body: Vec<u8>) {
            let _ = read(&body, (ReviewVersion::V1, "u", true), "w");
        }
    }
}
