//! Decides which requests are approved automatically.

use super::{
    facts::Request,
    rules::{self, KUBELET_CLIENT},
    signer::CertificateFacts,
};

/// A reason to approve a request: the subresource that its user must be permitted to create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Approval {
    pub(super) subresource: &'static str,
    pub(super) message: &'static str,
}

const SELF: Approval = Approval {
    subresource: "selfnodeclient",
    message: "Auto approving self kubelet client certificate after SubjectAccessReview.",
};
const ANY: Approval = Approval {
    subresource: "nodeclient",
    message: "Auto approving kubelet client certificate after SubjectAccessReview.",
};

/// Returns true if a decision about a request is still to be made.
pub(super) fn is_pending(request: &Request) -> bool {
    !request.is_issued && !request.has("Approved") && !request.has("Denied")
}

/// Returns the possible reasons to approve a request, in order.
pub(super) fn approvals(request: &Request, facts: &CertificateFacts) -> Vec<Approval> {
    if request.signer != KUBELET_CLIENT || rules::check(request, facts).is_err() {
        return Vec::new();
    }
    match request.username == facts.common_name {
        true => vec![SELF, ANY],
        false => vec![ANY],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubelets_are_recognized() {
        let facts = CertificateFacts {
            common_name: "system:node:a".into(),
            organizations: vec!["system:nodes".into()],
            ..CertificateFacts::default()
        };
        let mut request = Request {
            signer: KUBELET_CLIENT.into(),
            username: "bootstrap".into(),
            usages: vec!["client auth".into(), "digital signature".into()],
            ..Request::default()
        };
        assert_eq!(approvals(&request, &facts), [ANY]);
        request.username = "system:node:a".into();
        assert_eq!(approvals(&request, &facts), [SELF, ANY]);
        request.signer = rules::CLIENT.into();
        assert_eq!(approvals(&request, &facts), []);
    }
}
