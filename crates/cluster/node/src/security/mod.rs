//! Security contexts. Computes the settings that the node enforces for a container, or an error
//! that names the field that it cannot enforce. Pure.
//!
//! No field is ignored: `docs/security-context.md` lists all fields.

mod accounts;
mod agent_privileges;
mod capabilities;
mod profiles;
mod users;

#[cfg(test)]
mod tests;

use k8s_openapi::api::core::v1::{Container, Pod, PodSecurityContext, PodSpec, SecurityContext};

pub(crate) use accounts::Accounts;
pub(crate) use agent_privileges::AgentPrivileges;
pub(crate) use users::{Owner, owner};

use crate::{
    images::{ImageUsers, UserIds},
    sandbox::Privileges,
};

/// The settings that the node enforces on a container's processes and files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Enforced {
    pub(crate) privileges: Privileges,
    /// True if all files except the volumes' files are read-only.
    pub(crate) read_only_root: bool,
    /// True if parts of `/proc` that expose or change the machine are hidden or read-only.
    pub(crate) masks_proc: bool,
}

/// The reason why a container cannot start: the node does not support a requirement of the pod.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Refusal {
    /// A field that this node does not enforce.
    #[error("{field}: {reason}")]
    Field {
        /// The path of the field in the pod.
        field: String,
        /// The reason and the remedy.
        reason: String,
    },
    /// The container would run as root. The message is the kubelet's, with a remedy.
    #[error("{reason} (pod: \"{pod}\", container: {container}); {remedy}")]
    Root {
        /// The rule that is violated.
        reason: &'static str,
        /// The pod's name, namespace and UID.
        pod: String,
        /// The container's name.
        container: String,
        /// The remedy.
        remedy: String,
    },
}

/// A container's security context, its pod, and the agent's privileges.
struct ContextRequest<'a> {
    pod: &'a Pod,
    spec: &'a PodSpec,
    container: &'a Container,
    of_pod: &'a PodSecurityContext,
    own: &'a SecurityContext,
    agent_privileges: &'a AgentPrivileges,
    /// The user of the container's image, if the agent can run processes as this user.
    image_user: Option<UserIds>,
}

impl ContextRequest<'_> {
    /// Creates the error for a field of the container's own context.
    fn refuse(&self, field: &str, reason: impl Into<String>) -> Refusal {
        Refusal::Field {
            field: format!(
                "container {:?} securityContext.{field}",
                self.container.name
            ),
            reason: reason.into(),
        }
    }

    /// Creates the error for a field of the container's context or, if not
    /// `own`, of the pod's.
    fn refuse_either(&self, own: bool, field: &str, reason: impl Into<String>) -> Refusal {
        if own {
            return self.refuse(field, reason);
        }
        refuse_of_pod(&format!("securityContext.{field}"), reason)
    }
}

fn refuse_of_pod(field: &str, reason: impl Into<String>) -> Refusal {
    Refusal::Field {
        field: format!("pod {field}"),
        reason: reason.into(),
    }
}

/// Returns the settings to enforce for a container of `pod`, or the reason why that is impossible.
pub(crate) fn enforce(
    pod: &Pod,
    container: &Container,
    agent_privileges: &AgentPrivileges,
    accounts: &Accounts,
    image_users: &ImageUsers,
) -> Result<Enforced, Refusal> {
    let (no_spec, no_pod, no_own) = Default::default();
    let spec: &PodSpec = pod.spec.as_ref().unwrap_or(&no_spec);
    let request = ContextRequest {
        pod,
        spec,
        container,
        of_pod: spec.security_context.as_ref().unwrap_or(&no_pod),
        own: container.security_context.as_ref().unwrap_or(&no_own),
        agent_privileges,
        image_user: image_users
            .find(container.image.as_deref())
            .filter(|_| agent_privileges.may_choose_user()),
    };
    refuse_pod_fields(&request)?;
    profiles::refuse_labels(&request)?;
    let privileged = request.own.privileged == Some(true);
    if privileged && !agent_privileges.is_root() {
        let reason = "the node agent does not run as root of the machine; \
                      run it as root, or leave the field out";
        return Err(request.refuse("privileged", reason));
    }
    let mut privileges = Privileges::default();
    users::apply(&request, accounts, &mut privileges)?;
    privileges.no_new_privileges = request.own.allow_privilege_escalation == Some(false);
    capabilities::apply(&request, privileged, &mut privileges)?;
    if !privileged {
        profiles::apply_system_calls(&request, &mut privileges)?;
    }
    let read_only_root = request.own.read_only_root_filesystem == Some(true);
    if read_only_root && !agent_privileges.read_only_views {
        let reason = "the kernel does not let the node agent make the container's files read-only; \
                      that needs mount namespaces and Linux 5.12";
        return Err(request.refuse("readOnlyRootFilesystem", reason));
    }
    let unmasked = privileged || request.own.proc_mount.as_deref() == Some("Unmasked");
    Ok(Enforced {
        privileges,
        read_only_root,
        masks_proc: agent_privileges.namespaces && !unmasked,
    })
}

/// Rejects pod-level fields that this node does not enforce.
fn refuse_pod_fields(request: &ContextRequest<'_>) -> Result<(), Refusal> {
    let ContextRequest {
        spec,
        of_pod,
        agent_privileges,
        ..
    } = request;
    if of_pod.sysctls.as_ref().is_some_and(|list| !list.is_empty()) {
        let reason = "pods share the machine's network and IPC namespaces, whose settings are \
                      the machine's; set them there";
        return Err(refuse_of_pod("securityContext.sysctls", reason));
    }
    if spec.host_users == Some(false) && !agent_privileges.user_namespace {
        let reason = "containers of a node agent that runs as root have no user namespace";
        return Err(refuse_of_pod("hostUsers: false", reason));
    }
    if spec.host_pid == Some(true) && agent_privileges.namespaces {
        let reason = "each container of this node has a PID namespace of its own";
        return Err(refuse_of_pod("hostPID", reason));
    }
    if spec.share_process_namespace == Some(true) && agent_privileges.namespaces {
        let reason = "each container of this node has a PID namespace of its own";
        return Err(refuse_of_pod("shareProcessNamespace", reason));
    }
    Ok(())
}
