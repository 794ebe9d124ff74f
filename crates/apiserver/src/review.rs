//! Reviews: questions about the asker's own rights. There is one user, who
//! may do everything.

use serde_json::{Value, json};

/// A review that can be asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Review {
    pub(crate) group: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) kind: &'static str,
}

/// The reviews served, all of version `v1`.
pub(crate) const REVIEWS: &[Review] = &[
    Review {
        group: "authentication.k8s.io",
        plural: "selfsubjectreviews",
        kind: "SelfSubjectReview",
    },
    Review {
        group: "authorization.k8s.io",
        plural: "selfsubjectaccessreviews",
        kind: "SelfSubjectAccessReview",
    },
    Review {
        group: "authorization.k8s.io",
        plural: "selfsubjectrulesreviews",
        kind: "SelfSubjectRulesReview",
    },
];

/// The review at a path.
pub(crate) fn find(group: &str, version: &str, plural: &str) -> Option<Review> {
    REVIEWS
        .iter()
        .copied()
        .find(|r| version == "v1" && r.group == group && r.plural == plural)
}

impl Review {
    /// Answers the review: its body with a status.
    pub(crate) fn answer(self, mut asked: Value) -> Value {
        asked["apiVersion"] = format!("{}/v1", self.group).into();
        asked["kind"] = self.kind.into();
        if !asked["metadata"].is_object() {
            asked["metadata"] = json!({});
        }
        asked["status"] = match self.kind {
            "SelfSubjectReview" => json!({"userInfo": {
                "username": "longshore-admin",
                "groups": ["system:masters", "system:authenticated"],
            }}),
            "SelfSubjectAccessReview" => {
                json!({"allowed": true, "reason": "the only user may do everything"})
            }
            _ => json!({
                "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                "incomplete": false,
            }),
        };
        asked
    }
}
