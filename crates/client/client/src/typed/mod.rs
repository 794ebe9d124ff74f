//! Methods of the items of common kinds, which read single fields of the status. An absent
//! count is 0; another absent field is an [`Error::Status`](crate::Error::Status).
//! [`Item::object`](crate::Item::object) has all fields.

mod condition;
mod container;
mod event;
mod node;
mod pod;
mod resources;
mod simple;
mod workloads;

pub use condition::Condition;
pub use container::{Container, ContainerState};
pub use event::{EventType, ObjectReference};
pub use node::{Address, AddressType};
pub use resources::Resources;
pub use simple::{IngressPoint, SecretType};

/// An enum of strings that preserves unknown values, because a newer server may have additional
/// values.
macro_rules! open_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
            /// A value that this version does not know.
            Other(String),
        }

        impl $name {
            /// The value in the API.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)*
                    Self::Other(word) => word,
                }
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                match word {
                    $($word => Self::$variant,)*
                    other => Self::Other(other.to_owned()),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Word;

                impl serde::de::Visitor<'_> for Word {
                    type Value = $name;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("a word")
                    }

                    fn visit_str<E>(self, word: &str) -> Result<$name, E> {
                        Ok($name::from(word))
                    }
                }

                deserializer.deserialize_str(Word)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}
use open_enum;

open_enum! {
    /// The phase of a pod.
    PodPhase {
        /// Accepted; not all containers have started.
        Pending = "Pending",
        /// Bound to a node; at least one container runs.
        Running = "Running",
        /// All containers terminated with exit code 0.
        Succeeded = "Succeeded",
        /// All containers terminated, and at least one failed.
        Failed = "Failed",
        /// The node does not report the pod.
        Unknown = "Unknown",
    }
}

/// ```
/// # longshore_embedded::example(async |cluster| {
/// # use longshore_client::Patch;
/// # use serde_json::json;
/// use longshore_client::typed::PodPhase;
///
/// # let pods = cluster.pods().in_namespace("default")?;
/// # let containers = json!([{"name": "main", "image": "busybox"}]);
/// # let web = json!({"metadata": {"name": "web"}, "spec": {"containers": containers}});
/// # pods.create(&web).await?;
/// # let status = json!({"status": {"phase": "Failed", "reason": "Evicted"}});
/// # pods.patch_status("web", &Patch::merge(status)).await?;
/// let phase = pods.fetch("web").await?.phase()?;
/// assert!(phase.is_final());
/// assert_eq!(phase, PodPhase::Failed);
/// assert_eq!(phase.as_str(), "Failed");
/// // An unknown value is preserved.
/// assert_eq!(PodPhase::from("Paused"), PodPhase::Other("Paused".to_owned()));
/// # Ok(()) });
/// ```
impl PodPhase {
    /// Returns true if the pod has succeeded or failed.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

open_enum! {
    /// The phase of a namespace.
    NamespacePhase {
        /// In use.
        Active = "Active",
        /// Being deleted with its objects.
        Terminating = "Terminating",
    }
}
