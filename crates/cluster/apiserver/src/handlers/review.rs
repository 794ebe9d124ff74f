//! POST of reviews.

use http::StatusCode;
use longshore_model::StatusCause;
use serde_json::{Value, json};

use super::{plain_shape, review_fields};
use crate::{
    auth,
    authorization::{Attributes, AuthorizationMode, Rule, joined},
    call::Call,
    input::{self, RequestBody},
    reply::{self, Reply},
    review::Review,
    status_error::{StatusError, invalid},
    user::User,
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
                decision(call, &call.user, &request["spec"])
            }
            "SelfSubjectRulesReview" => rules(call, &request["spec"])?,
            _ => self.access(call, namespace, &request)?,
        };
        Ok(request)
    }

    fn refused(self, causes: Vec<StatusCause>) -> StatusError {
        StatusError::invalid_review(self.kind, self.group, "", causes)
    }

    /// Reviews the access of another user.
    fn access(
        self,
        call: &Call,
        namespace: Option<&str>,
        request: &Value,
    ) -> Result<Value, StatusError> {
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
                return Err(self.refused(vec![invalid("spec.nonResourceAttributes", shown, why)]));
            }
            let about = &spec["resourceAttributes"]["namespace"];
            let about = about.as_str().unwrap_or_default();
            if !spec["resourceAttributes"].is_null() && about != namespace {
                let why = "must match metadata.namespace";
                let field = "spec.resourceAttributes.namespace";
                return Err(self.refused(vec![invalid(field, about, why)]));
            }
        }
        self.check_attributes(spec)?;
        let groups = spec["groups"].as_array().into_iter().flatten();
        let groups = groups.filter_map(Value::as_str).map(str::to_owned);
        let user = User {
            name: spec["user"].as_str().unwrap_or_default().to_owned(),
            groups: groups.collect(),
            ..User::default()
        };
        if user.name.is_empty() && user.groups.is_empty() {
            let why = "at least one of user or group must be specified";
            return Err(self.refused(vec![invalid("spec.user", "", why)]));
        }
        Ok(decision(call, &user, spec))
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
            _ => {
                let causes = review_fields::check(&spec["resourceAttributes"]["fieldSelector"]);
                return match causes.is_empty() {
                    true => Ok(()),
                    false => Err(self.refused(causes)),
                };
            }
        };
        let name = field.rsplit('.').next().unwrap_or_default();
        Err(self.refused(vec![invalid(field, spec[name].to_string(), why)]))
    }
}

/// Decides whether a user may send the request that a review describes.
fn decision(call: &Call, user: &User, spec: &Value) -> Value {
    let decision = call.shared.authorizer.decide(user, &attributes(spec));
    let mut status = json!({"allowed": decision.allowed});
    if !decision.reason.is_empty() {
        status["reason"] = decision.reason.into();
    }
    status
}

/// The attributes of the request that a review describes.
fn attributes(spec: &Value) -> Attributes {
    let text = |from: &Value, field: &str| from[field].as_str().unwrap_or_default().to_owned();
    let other = &spec["nonResourceAttributes"];
    if !other.is_null() {
        return Attributes {
            verb: text(other, "verb"),
            path: Some(text(other, "path")),
            ..Attributes::default()
        };
    }
    let of = &spec["resourceAttributes"];
    Attributes {
        verb: text(of, "verb"),
        group: text(of, "group"),
        resource: text(of, "resource"),
        subresource: text(of, "subresource"),
        namespace: text(of, "namespace"),
        name: text(of, "name"),
        path: None,
    }
}

/// Lists the permissions of the request's user in a namespace.
fn rules(call: &Call, spec: &Value) -> Result<Value, StatusError> {
    let namespace = spec["namespace"].as_str().unwrap_or_default();
    if namespace.is_empty() {
        return Err(StatusError::bad_request("no namespace on request"));
    }
    let authorizer = &call.shared.authorizer;
    if authorizer.mode() == AuthorizationMode::AlwaysAllow {
        return Ok(json!({
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": false,
        }));
    }
    let index = authorizer.index();
    let (rules, errors) = index.rules_for(&call.user, namespace);
    let of_resources = rules.iter().filter(|rule| !rule.resources.is_empty());
    let of_resources: Vec<Rule> = of_resources
        .map(|rule| Rule {
            non_resource_urls: Vec::new(),
            ..(*rule).clone()
        })
        .collect();
    let others = rules
        .iter()
        .filter(|rule| !rule.non_resource_urls.is_empty());
    let others: Vec<Rule> = others
        .map(|rule| Rule {
            verbs: rule.verbs.clone(),
            non_resource_urls: rule.non_resource_urls.clone(),
            ..Rule::default()
        })
        .collect();
    let mut status = json!({
        "resourceRules": of_resources,
        "nonResourceRules": others,
        "incomplete": false,
    });
    if let Some(errors) = joined(&errors) {
        status["evaluationError"] = errors.into();
    }
    Ok(status)
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
