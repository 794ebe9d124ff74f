//! The served reviews: questions about the identity and access of a user.

/// A served review.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Review {
    pub(crate) group: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) namespaced: bool,
}

const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";

const fn review(group: &'static str, plural: &'static str, kind: &'static str) -> Review {
    Review {
        group,
        plural,
        kind,
        namespaced: false,
    }
}

/// The served reviews, all of version `v1`.
pub(crate) const REVIEWS: &[Review] = &[
    review(AUTHENTICATION, "selfsubjectreviews", "SelfSubjectReview"),
    review(AUTHENTICATION, "tokenreviews", "TokenReview"),
    Review {
        namespaced: true,
        ..review(
            AUTHORIZATION,
            "localsubjectaccessreviews",
            "LocalSubjectAccessReview",
        )
    },
    review(
        AUTHORIZATION,
        "selfsubjectaccessreviews",
        "SelfSubjectAccessReview",
    ),
    review(
        AUTHORIZATION,
        "selfsubjectrulesreviews",
        "SelfSubjectRulesReview",
    ),
    review(AUTHORIZATION, "subjectaccessreviews", "SubjectAccessReview"),
];

impl Review {
    /// Returns the review at a path.
    pub(crate) fn find(group: &str, version: &str, plural: &str) -> Option<Self> {
        REVIEWS
            .iter()
            .copied()
            .find(|r| version == "v1" && r.group == group && r.plural == plural)
    }
}
