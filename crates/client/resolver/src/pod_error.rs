//! Errors of pods that cannot become tasks.

/// The reason why pods cannot become tasks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PodError {
    /// The pod must be running, but it is not.
    #[error("Pod \"{name}\" is not running; phase: \"{phase}\"")]
    NotRunning {
        /// The pod's name.
        name: String,
        /// The pod's phase.
        phase: String,
    },
    /// The pod must be ready, but it is not.
    #[error(
        "Pod \"{name}\" is running but not ready; wait until it is ready, or do not require readiness"
    )]
    NotReady {
        /// The pod's name.
        name: String,
    },
    /// The pod is being deleted.
    #[error("Pod \"{name}\" is being deleted; wait until it is deleted, or skip terminating pods")]
    Terminating {
        /// The pod's name.
        name: String,
    },
    /// The running pod does not have the requested address.
    #[error(
        "Pod \"{name}\" has no {what}; wait until it has one, or choose another kind of address"
    )]
    NoAddress {
        /// The pod's name.
        name: String,
        /// The missing address.
        what: String,
    },
    /// The pod does not have the requested port.
    #[error("Pod \"{name}\" has no port named \"{port}\"; {}", known_ports(known))]
    NoPort {
        /// The pod's name.
        name: String,
        /// The requested port name.
        port: String,
        /// The names of the ports that the pod has.
        known: Vec<String>,
    },
    /// Two selectors match the pod.
    #[error(
        "Pod \"{name}\" is matched by two selectors, of role \"{first}\" and role \"{second}\"; make the selectors disjoint, or count each pod once"
    )]
    Doubled {
        /// The pod's name.
        name: String,
        /// The role whose selector matched first.
        first: String,
        /// The role whose selector matched second.
        second: String,
    },
    /// Two running pods have the same completion index.
    #[error(
        "Pods \"{first}\" and \"{second}\" both have completion index {index} in role \"{role}\"; select the pods of one Job only"
    )]
    SameIndex {
        /// The role.
        role: String,
        /// The completion index.
        index: u32,
        /// The first pod.
        first: String,
        /// The second pod.
        second: String,
    },
    /// The order needs a completion index, and the pod does not have one.
    #[error(
        "Pod \"{name}\" has no completion index; select pods of an Indexed Job, or order by name"
    )]
    NoIndex {
        /// The pod's name.
        name: String,
    },
}

fn known_ports(known: &[String]) -> String {
    if known.is_empty() {
        "its containers have no named ports: use the port number".to_owned()
    } else {
        format!("it has {}", known.join(", "))
    }
}
