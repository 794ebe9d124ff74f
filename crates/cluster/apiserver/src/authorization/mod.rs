//! Authorization: decides whether an authenticated user may send a request. Members of
//! `system:masters` may send all requests; roles and role bindings (RBAC) decide for all others.

mod attributes;
mod escalation;
mod impersonation;
mod index;
mod policy;
mod rule;

use std::{
    str::FromStr,
    sync::{Arc, Mutex, PoisonError},
};

use longshore_engine::{Dependency, Engine, ListRequest, Object};
use longshore_model::KindInfo;

pub(crate) use attributes::{Attributes, forbidden};
pub(crate) use escalation::EscalationCheck;
pub(crate) use impersonation::impersonated;
pub(crate) use index::{Index, joined};
pub(crate) use policy::ensure as ensure_default_policy;
pub(crate) use rule::Rule;

use index::Stored;

use crate::{status_error::StatusError, user::User};

/// The API group of roles and role bindings.
const GROUP: &str = "rbac.authorization.k8s.io";

/// The authorization mode, with the names of kube-apiserver's option `--authorization-mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AuthorizationMode {
    /// Roles and role bindings decide about requests, like `RBAC` in Kubernetes. The name
    /// `Node,RBAC` has the same effect. Requests without credentials belong to the user
    /// `system:anonymous`.
    #[default]
    Rbac,
    /// Every authenticated user may send all requests.
    AlwaysAllow,
}

impl AuthorizationMode {
    /// The name of the mode: `RBAC` or `AlwaysAllow`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rbac => "RBAC",
            Self::AlwaysAllow => "AlwaysAllow",
        }
    }
}

impl std::fmt::Display for AuthorizationMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The name of an authorization mode is unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown authorization mode {0:?}: use RBAC or AlwaysAllow")]
pub struct UnknownMode(String);

impl FromStr for AuthorizationMode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        if text == "Node,RBAC" {
            return Ok(Self::Rbac);
        }
        [Self::Rbac, Self::AlwaysAllow]
            .into_iter()
            .find(|mode| mode.as_str() == text)
            .ok_or_else(|| UnknownMode(text.to_owned()))
    }
}

/// A decision and its reason, which may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) allowed: bool,
    pub(crate) reason: String,
}

impl Decision {
    fn allowed(reason: String) -> Self {
        Self {
            allowed: true,
            reason,
        }
    }
}

/// Decides about requests by the current roles and bindings.
pub(crate) struct Authorizer {
    engine: Engine,
    mode: AuthorizationMode,
    /// Roles and ClusterRoles.
    roles: Vec<Arc<KindInfo>>,
    /// RoleBindings and ClusterRoleBindings.
    bindings: Vec<Arc<KindInfo>>,
    /// All four kinds.
    kinds: Vec<Arc<KindInfo>>,
    index: Mutex<Arc<Index>>,
}

impl Authorizer {
    pub(crate) fn new(engine: Engine, mode: AuthorizationMode) -> Self {
        let find = |plurals: &[&str]| {
            let found = plurals
                .iter()
                .filter_map(|plural| engine.find(GROUP, "v1", plural));
            found.collect::<Vec<_>>()
        };
        let roles = find(&["clusterroles", "roles"]);
        let bindings = find(&["clusterrolebindings", "rolebindings"]);
        Self {
            mode,
            kinds: roles.iter().chain(&bindings).cloned().collect(),
            roles,
            bindings,
            index: Mutex::default(),
            engine,
        }
    }

    pub(crate) fn mode(&self) -> AuthorizationMode {
        self.mode
    }

    /// Decides whether a user may send a request.
    pub(crate) fn decide(&self, user: &User, request: &Attributes) -> Decision {
        if self.allows_everything(user) {
            return Decision::allowed(String::new());
        }
        let mut decision = self.index().decide(user, request);
        if !decision.allowed && !decision.reason.is_empty() {
            decision.reason = format!("rbac: {}", decision.reason);
        }
        decision
    }

    /// Returns true if decisions about a user do not depend on roles.
    pub(crate) fn allows_everything(&self, user: &User) -> bool {
        self.mode == AuthorizationMode::AlwaysAllow || user.is_master()
    }

    /// Returns 403 if a user may not send a request.
    pub(crate) fn check(&self, user: &User, request: &Attributes) -> Result<(), StatusError> {
        let decision = self.decide(user, request);
        match decision.allowed {
            true => Ok(()),
            false => Err(request.forbidden(&user.name, &decision.reason)),
        }
    }

    /// The roles and bindings on which decisions depend from now on.
    pub(crate) fn dependency(&self) -> Dependency {
        Dependency::Kinds(self.kinds.clone(), self.engine.last_change(&self.kinds))
    }

    /// The index of the current roles and bindings. It is built again if a role or binding has
    /// changed.
    pub(crate) fn index(&self) -> Arc<Index> {
        // Read before the objects: a change in between only means that the next call builds the
        // index once more.
        let version = self.engine.last_change(&self.kinds);
        let mut current = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        if current.version < version {
            let (roles, bindings) = (self.objects(&self.roles), self.objects(&self.bindings));
            *current = Arc::new(Index::build(
                version,
                &current,
                roles.iter().map(|object| stored(object)),
                bindings.iter().map(|object| stored(object)),
            ));
        }
        current.clone()
    }

    fn objects(&self, kinds: &[Arc<KindInfo>]) -> Vec<Arc<Object>> {
        let lists = kinds.iter().map(|kind| {
            let list = self.engine.list(&ListRequest::of(kind.clone()));
            list.map(|page| page.items).unwrap_or_else(|error| {
                tracing::error!(%error, "cannot list the objects of RBAC");
                Vec::new()
            })
        });
        lists.flatten().collect()
    }
}

fn stored(object: &Object) -> Stored<'_> {
    Stored {
        namespace: object.namespace().unwrap_or_default(),
        name: object.name(),
        revision: object.revision(),
        json: object.bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_have_the_names_of_kubernetes() {
        for (text, mode) in [
            ("RBAC", Some(AuthorizationMode::Rbac)),
            ("Node,RBAC", Some(AuthorizationMode::Rbac)),
            ("AlwaysAllow", Some(AuthorizationMode::AlwaysAllow)),
            ("Node", None),
            ("rbac", None),
            ("", None),
        ] {
            assert_eq!(text.parse().ok(), mode, "{text:?}");
        }
    }
}
