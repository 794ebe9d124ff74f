//! A container's security context: what the node enforces of it, and a refusal
//! that names the field for what it cannot enforce. Pure.
//!
//! Nothing is ignored: `docs/security-context.md` has the table of all fields.

mod accounts;
mod capabilities;
mod powers;
mod profiles;
mod users;

#[cfg(test)]
mod tests;

use k8s_openapi::api::core::v1::{Container, Pod, PodSecurityContext, PodSpec, SecurityContext};

pub(crate) use accounts::Accounts;
pub(crate) use powers::Powers;
pub(crate) use users::{Owner, owner};

use crate::sandbox::Privileges;

/// What is done to a container's processes and files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Enforced {
    pub(crate) privileges: Privileges,
    /// All files but those of volumes are read-only.
    pub(crate) read_only_root: bool,
    /// Parts of `/proc` that tell of the machine, or change it, are hidden or
    /// read-only.
    pub(crate) masks_proc: bool,
}

/// Why a container may not start: the node cannot do what its pod asks for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Refusal {
    /// A field that this node does not enforce.
    #[error("{field}: {reason}")]
    Field {
        /// The field's path in the pod.
        field: String,
        /// Why not, and what to do.
        reason: String,
    },
    /// It would run as root; worded as by the kubelet.
    #[error("{reason} (pod: \"{pod}\", container: {container})")]
    Root {
        /// Which rule is broken.
        reason: &'static str,
        /// Name, namespace and uid.
        pod: String,
        /// Its name.
        container: String,
    },
}

/// What a container asks for, and who asks.
struct Asked<'a> {
    pod: &'a Pod,
    spec: &'a PodSpec,
    container: &'a Container,
    of_pod: &'a PodSecurityContext,
    own: &'a SecurityContext,
    powers: &'a Powers,
}

impl Asked<'_> {
    /// The refusal of a field of the container's own context.
    fn refuse(&self, field: &str, reason: impl Into<String>) -> Refusal {
        Refusal::Field {
            field: format!(
                "container {:?} securityContext.{field}",
                self.container.name
            ),
            reason: reason.into(),
        }
    }

    /// The refusal of a field that the container has from its pod, or its own.
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

/// What is enforced for a container of `pod`, or why that is impossible here.
pub(crate) fn enforce(
    pod: &Pod,
    container: &Container,
    powers: &Powers,
    accounts: &Accounts,
) -> Result<Enforced, Refusal> {
    let (no_spec, no_pod, no_own) = Default::default();
    let spec: &PodSpec = pod.spec.as_ref().unwrap_or(&no_spec);
    let asked = Asked {
        pod,
        spec,
        container,
        of_pod: spec.security_context.as_ref().unwrap_or(&no_pod),
        own: container.security_context.as_ref().unwrap_or(&no_own),
        powers,
    };
    refuse_of_the_pod(&asked)?;
    profiles::refuse_labels(&asked)?;
    let privileged = asked.own.privileged == Some(true);
    if privileged && !powers.is_root() {
        let reason = "the node agent does not run as root of the machine; \
                      run it as root, or leave the field out";
        return Err(asked.refuse("privileged", reason));
    }
    let mut privileges = Privileges::default();
    users::apply(&asked, accounts, &mut privileges)?;
    privileges.no_new_privileges = asked.own.allow_privilege_escalation == Some(false);
    capabilities::apply(&asked, privileged, &mut privileges)?;
    if !privileged {
        profiles::apply_system_calls(&asked, &mut privileges)?;
    }
    let read_only_root = asked.own.read_only_root_filesystem == Some(true);
    if read_only_root && !powers.read_only_views {
        let reason = "the kernel does not let the node agent make the container's files read-only; \
                      that needs mount namespaces and Linux 5.12";
        return Err(asked.refuse("readOnlyRootFilesystem", reason));
    }
    let unmasked = privileged || asked.own.proc_mount.as_deref() == Some("Unmasked");
    Ok(Enforced {
        privileges,
        read_only_root,
        masks_proc: powers.namespaces && !unmasked,
    })
}

/// What a pod may ask for its containers together.
fn refuse_of_the_pod(asked: &Asked<'_>) -> Result<(), Refusal> {
    let Asked {
        spec,
        of_pod,
        powers,
        ..
    } = asked;
    if of_pod.sysctls.as_ref().is_some_and(|list| !list.is_empty()) {
        let reason = "pods share the machine's network and IPC namespaces, whose settings are \
                      the machine's; set them there";
        return Err(refuse_of_pod("securityContext.sysctls", reason));
    }
    if spec.host_users == Some(false) && !powers.user_namespace {
        let reason = "containers of a node agent that runs as root have no user namespace";
        return Err(refuse_of_pod("hostUsers: false", reason));
    }
    if spec.host_pid == Some(true) && powers.namespaces {
        let reason = "each container of this node has a PID namespace of its own";
        return Err(refuse_of_pod("hostPID", reason));
    }
    if spec.share_process_namespace == Some(true) && powers.namespaces {
        let reason = "each container of this node has a PID namespace of its own";
        return Err(refuse_of_pod("shareProcessNamespace", reason));
    }
    Ok(())
}
