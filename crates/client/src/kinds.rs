//! The kinds that have a type of their own, and [`Any`] for all others.

use std::sync::Arc;

use longshore_model::KindInfo;

/// A kind of object: what a [`View`](crate::View) is a view of.
pub trait Kind: Clone + Send + Sync + 'static {
    /// Its type and its place in the API.
    fn info(&self) -> &KindInfo;
}

/// A kind known only at run time: by discovery, or by an object's own words.
#[derive(Debug, Clone)]
pub struct Any(pub(crate) Arc<KindInfo>);

impl Any {
    /// A view's kind from its description.
    #[must_use]
    pub fn new(info: Arc<KindInfo>) -> Self {
        Self(info)
    }
}

impl Kind for Any {
    fn info(&self) -> &KindInfo {
        &self.0
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident in $group:literal;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
            pub struct $name;

            impl Kind for $name {
                fn info(&self) -> &KindInfo {
                    static INFO: std::sync::LazyLock<&'static KindInfo> =
                        std::sync::LazyLock::new(|| {
                            longshore_model::kind::builtin($group, stringify!($name))
                                .expect("every marker stands in the table of built-in kinds")
                        });
                    *INFO
                }
            }
        )*

        #[cfg(test)]
        mod tests {
            use super::*;

            #[test]
            fn every_marker_is_in_the_table() {
                let names = [$($name.info().gvk.kind.as_ref(),)*];
                assert_eq!(names, [$(stringify!($name),)*]);
            }
        }
    };
}

kinds! {
    /// A set of configuration values.
    ConfigMap in "";
    /// Something that happened to an object.
    Event in "";
    /// A room for names.
    Namespace in "";
    /// A machine.
    Node in "";
    /// Containers that run together.
    Pod in "";
    /// Confidential values.
    Secret in "";
    /// A stable name for a set of pods.
    Service in "";
    /// Who a pod is, to the API.
    ServiceAccount in "";
    /// Pods that run to completion.
    Job in "batch";
    /// Who leads, until when.
    Lease in "coordination.k8s.io";
}
