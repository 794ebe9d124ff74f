//! Why pods do not make tasks.

/// Why pods do not make tasks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PodError {
    /// A pod that must run does not.
    #[error("Pod \"{name}\" is not running; phase: \"{phase}\"")]
    NotRunning {
        /// The pod's name.
        name: String,
        /// The phase it is in.
        phase: String,
    },
    /// A pod that must be ready is not.
    #[error("Pod \"{name}\" is running and not ready; wait for it, or do without readiness")]
    NotReady {
        /// The pod's name.
        name: String,
    },
    /// A pod that is going away.
    #[error("Pod \"{name}\" is being deleted; wait until it is gone, or leave out pods that end")]
    Terminating {
        /// The pod's name.
        name: String,
    },
    /// A running pod without the address asked for.
    #[error(
        "Pod \"{name}\" has no {what}; wait until it has one, or choose another kind of address"
    )]
    NoAddress {
        /// The pod's name.
        name: String,
        /// What is missing.
        what: String,
    },
    /// A pod without the port asked for.
    #[error("Pod \"{name}\" has no port named \"{port}\"; {}", known_ports(known))]
    NoPort {
        /// The pod's name.
        name: String,
        /// The port's name.
        port: String,
        /// The names of the ports it has.
        known: Vec<String>,
    },
    /// A pod that two selectors match.
    #[error(
        "Pod \"{name}\" is matched by two selectors, of role \"{first}\" and role \"{second}\"; make the selectors disjoint, or count each pod once"
    )]
    Doubled {
        /// The pod's name.
        name: String,
        /// The role that had it first.
        first: String,
        /// The role that matched it again.
        second: String,
    },
    /// Two running pods with one completion index.
    #[error(
        "Pods \"{first}\" and \"{second}\" both have completion index {index} in role \"{role}\"; select the pods of one Job only"
    )]
    SameIndex {
        /// The role.
        role: String,
        /// The index that both carry.
        index: u32,
        /// One pod.
        first: String,
        /// The other.
        second: String,
    },
    /// A pod without the completion index that is to order it.
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
        "its containers name none: give the number".to_owned()
    } else {
        format!("it has {}", known.join(", "))
    }
}
