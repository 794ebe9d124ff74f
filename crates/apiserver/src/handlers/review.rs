//! POST of reviews. There is no authorization yet: every authenticated user may
//! do everything.

use http::StatusCode;
use longshore_model::StatusCause;
use serde_json::{Value, json};

use super::plain_shape;
use crate::{
    auth,
    call::Call,
    input::{self, RequestBody},
    reply::{self, Reply},
    review::Review,
    route::Route,
    status_error::{StatusError, invalid},
    user::{AUTHENTICATED, UNAUTHENTICATED, User},
};

pub(super) async fn create(
    call: Call,
    review: Review,
    namespace: Option<String>,
    body: RequestBody,
) -> Reply {
    let wanted = plain_shape(&call)?;
    let (request, _) = input::object(&call.headers, body, review.kind).await?;
    let answer = review.answer(&call, namespace.as_deref(), request)?;
    reply::document(
        StatusCode::CREATED,
        wanted.encoding,
        reply::ordered(&answer),
    )
}

impl Review {
    /// Responds with the review from the request body, completed with a status.
    fn answer(
        self,
        call: &Call,
        namespace: Option<&str>,
        mut request: Value,
    ) -> Result<Value, StatusError> {
        let given = request["kind"].as_str().unwrap_or_default();
        if !given.is_empty() && given != self.kind {
            return Err(StatusError::bad_request(format!(
                "{given} in version \"v1\" cannot be handled as a {}",
                self.kind
            )));
        }
        request["apiVersion"] = format!("{}/v1", self.group).into();
        request["kind"] = self.kind.into();
        if !request["metadata"].is_object() {
            request["metadata"] = json!({});
        }
        request["status"] = match self.kind {
            "SelfSubjectReview" => json!({"userInfo": call.user.info()}),
            "TokenReview" => token(call, &request["spec"])?,
            "SelfSubjectAccessReview" => {
                self.check_attributes(&request["spec"])?;
                decision(
                    call.user.groups.iter().map(String::as_str),
                    &request["spec"],
                )
            }
            "SelfSubjectRulesReview" => {
                if request["spec"]["namespace"]
                    .as_str()
                    .unwrap_or_default()
                    .is_empty()
                {
                    return Err(StatusError::bad_request("no namespace on request"));
                }
                json!({
                    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
                    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                    "incomplete": false,
                })
            }
            _ => self.access(namespace, &request)?,
        };
        Ok(request)
    }

    fn refused(self, cause: StatusCause) -> StatusError {
        StatusError::invalid_review(self.kind, self.group, "", vec![cause])
    }

    /// Reviews the access of another user.
    fn access(self, namespace: Option<&str>, request: &Value) -> Result<Value, StatusError> {
        let spec = &request["spec"];
        if let Some(namespace) = namespace {
            let given = request["metadata"]["namespace"]
                .as_str()
                .unwrap_or_default();
            if !given.is_empty() && given != namespace {
                return Err(StatusError::bad_request(format!(
                    "namespace in URL does not match namespace in {} object",
                    self.kind
                )));
            }
            if !spec["nonResourceAttributes"].is_null() {
                let shown = spec["nonResourceAttributes"].to_string();
                let why = "disallowed on this kind of request";
                return Err(self.refused(invalid("spec.nonResourceAttributes", shown, why)));
            }
            let about = &spec["resourceAttributes"]["namespace"];
            let about = about.as_str().unwrap_or_default();
            if !spec["resourceAttributes"].is_null() && about != namespace {
                let why = "must match metadata.namespace";
                let field = "spec.resourceAttributes.namespace";
                return Err(self.refused(invalid(field, about, why)));
            }
        }
        self.check_attributes(spec)?;
        let user = spec["user"].as_str().unwrap_or_default();
        let groups = spec["groups"].as_array().into_iter().flatten();
        let groups: Vec<&str> = groups.filter_map(Value::as_str).collect();
        if user.is_empty() && groups.is_empty() {
            let why = "at least one of user or group must be specified";
            return Err(self.refused(invalid("spec.user", "", why)));
        }
        let is_anonymous = user == User::anonymous().name || groups.contains(&UNAUTHENTICATED);
        let group = if is_anonymous {
            UNAUTHENTICATED
        } else {
            AUTHENTICATED
        };
        Ok(decision([group].into_iter(), spec))
    }

    fn check_attributes(self, spec: &Value) -> Result<(), StatusError> {
        let given = ["resourceAttributes", "nonResourceAttributes"];
        let given = given.map(|name| !spec[name].is_null());
        let (field, why) = match given {
            [true, true] => (
                "spec.nonResourceAttributes",
                "cannot be specified in combination with resourceAttributes",
            ),
            [false, false] => (
                "spec.resourceAttributes",
                "exactly one of nonResourceAttributes or resourceAttributes must be specified",
            ),
            _ => return Ok(()),
        };
        let name = field.rsplit('.').next().unwrap_or_default();
        Err(self.refused(invalid(field, spec[name].to_string(), why)))
    }
}

/// Decides whether a user in these groups may do what a review asks for.
fn decision<'a>(mut groups: impl Iterator<Item = &'a str>, spec: &Value) -> Value {
    let path = spec["nonResourceAttributes"]["path"].as_str();
    let is_open = path
        .is_some_and(|path| matches!(Route::parse(path), Ok(Route::Health(..) | Route::Version)));
    if is_open || !groups.any(|group| group == UNAUTHENTICATED) {
        json!({"allowed": true, "reason": "every authenticated user may do everything"})
    } else {
        json!({"allowed": false, "reason": "requests without credentials may do nothing"})
    }
}

/// Reviews a token.
fn token(call: &Call, spec: &Value) -> Result<Value, StatusError> {
    let token = spec["token"].as_str().unwrap_or_default();
    if token.is_empty() {
        return Err(StatusError::bad_request(
            "token is required for TokenReview in authentication",
        ));
    }
    let audiences = spec["audiences"].as_array().into_iter().flatten();
    let audiences = audiences.filter_map(Value::as_str).map(str::to_owned);
    let mut audiences: Vec<String> = audiences.collect();
    if audiences.is_empty() {
        audiences = auth::own_audience().to_vec();
    }
    Ok(match call.shared.authenticator.user_of(token, &audiences) {
        Ok((user, common)) => {
            json!({"authenticated": true, "user": user.info(), "audiences": common})
        }
        Err(refusal) => {
            let error = format!("[invalid bearer token, {refusal}]");
            json!({"user": {}, "error": error})
        }
    })
}
