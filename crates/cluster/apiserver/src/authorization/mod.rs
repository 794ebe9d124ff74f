//! Authorization: decides whether an authenticated user may send a request. Members of
//! `system:masters` may send all requests; for nodes, the node authorizer decides first; roles and
//! role bindings (RBAC) decide for all others.

mod attributes;
mod escalation;
mod impersonation;
mod index;
mod node;
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
pub(crate) use node::claim_of;
pub(crate) use policy::ensure as ensure_default_policy;
pub(crate) use rule::Rule;

use index::Stored;
use node::{NodeAuthorizer, Verdict};

use crate::{offload::offload, status_error::StatusError, user::User};

/// The API group of roles and role bindings.
const GROUP: &str = "rbac.authorization.k8s.io";

/// The authorization mode, with the names of kube-apiserver's option `--authorization-mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AuthorizationMode {
    /// The node authorizer decides about the requests of nodes, and roles and role bindings about
    /// all others, like `Node,RBAC` in Kubernetes. Requests without credentials belong to the user
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
    nodes: Arc<NodeAuthorizer>,
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
            nodes: Arc::new(NodeAuthorizer::new(engine.clone())),
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
        let node = match user.node() {
            Some(node) => match self.nodes.decide(node, request) {
                Verdict::Allowed => return Decision::allowed(String::new()),
                Verdict::NoOpinion(reason) => reason,
            },
            None => "".into(),
        };
        let mut decision = self.index().decide(user, request);
        if !decision.allowed {
            decision.reason = refusal(&node, &decision.reason);
        }
        decision
    }

    /// Reads the data that [`Authorizer::decide`] needs for a request of a node. This takes longer
    /// after many changes, and would otherwise delay other requests.
    pub(crate) async fn prepare(
        &self,
        user: &User,
        request: &Attributes,
    ) -> Result<(), StatusError> {
        if user.node().is_none() || !self.nodes.is_behind(request) {
            return Ok(());
        }
        let nodes = self.nodes.clone();
        offload(move || nodes.catch_up()).await
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

/// The reasons of the authorizers that did not allow a request, in the form of Kubernetes.
fn refusal(node: &str, roles: &str) -> String {
    let reasons = [("node", node), ("rbac", roles)];
    let reasons = reasons.iter().filter(|(_, reason)| !reason.is_empty());
    let reasons: Vec<String> = reasons
        .map(|(authorizer, reason)| format!("{authorizer}: {reason}"))
        .collect();
    reasons.join("\n")
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

    #[test]
    fn reasons_name_their_authorizers() {
        for (node, roles, expected) in [
            ("", "", ""),
            ("a", "", "node: a"),
            ("", "b", "rbac: b"),
            ("a", "b", "node: a\nrbac: b"),
        ] {
            assert_eq!(refusal(node, roles), expected);
        }
    }
}
