//! The rule that users can grant only permissions that they have, for writes of roles and bindings.

use std::sync::Arc;

use longshore_engine::{Dependency, Error, ReviewStage};
use longshore_model::KindInfo;
use serde_json::Value;

use crate::{authorization::EscalationCheck, call::Shared, user::User, webhooks::WriteRule};

/// Checks the writes of a role or a binding by a user.
pub(super) struct RoleRules {
    shared: Arc<Shared>,
    user: Arc<User>,
    kind: Arc<KindInfo>,
    namespace: String,
    /// The name in the path; empty for a create.
    name: String,
}

impl RoleRules {
    /// Returns the rules of a write, if the user may not grant everything and the
    /// kind grants permissions.
    pub(super) fn of_write(
        (shared, user): (&Arc<Shared>, &Arc<User>),
        kind: &KindInfo,
        (namespace, name): (Option<&str>, &str),
    ) -> Option<Self> {
        let is_needed =
            EscalationCheck::concerns(kind) && !shared.authorizer.allows_everything(user);
        is_needed.then(|| Self {
            shared: shared.clone(),
            user: user.clone(),
            kind: Arc::new(kind.clone()),
            namespace: namespace.unwrap_or_default().to_owned(),
            name: name.to_owned(),
        })
    }
}

impl std::fmt::Debug for RoleRules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RoleRules")
            .field("user", &self.user)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

impl WriteRule for RoleRules {
    fn stage(&self) -> ReviewStage {
        // After the changes of webhooks and policies.
        ReviewStage::Mutating
    }

    fn dependency(&self) -> Dependency {
        self.shared.authorizer.dependency()
    }

    fn check(&self, before: Option<&Value>, after: &Value) -> Result<(), Error> {
        let check = EscalationCheck {
            index: self.shared.authorizer.index(),
            user: &self.user,
            kind: &self.kind,
            namespace: &self.namespace,
            name: &self.name,
        };
        Ok(check.check(before, after)?)
    }
}
