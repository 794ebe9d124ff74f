//! The questions that expressions ask the authorizer, and its answers.

use std::fmt::Debug;

/// A question to the authorizer: may a user do something? `path` is empty for requests for
/// resources.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccessRequest {
    /// Namespace and name of the service account that the question is about; `None` for the user of
    /// the request.
    pub service_account: Option<(String, String)>,
    /// The verb.
    pub verb: String,
    /// The API group.
    pub group: String,
    /// The version; empty unless the check is about the request itself.
    pub version: String,
    /// The resource.
    pub resource: String,
    /// The subresource.
    pub subresource: String,
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The path of a request that is not for a resource.
    pub path: String,
}

/// The answer of an authorizer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccessDecision {
    /// True if the request is allowed.
    pub allowed: bool,
    /// The reason.
    pub reason: String,
}

/// Decides whether users may send requests.
pub trait Authorizer: Debug + Send + Sync {
    /// Decides about a request.
    fn decide(&self, request: &AccessRequest) -> AccessDecision;
}
