//! Describes how the embedded cluster acts on the objects of a kind. The warnings of its API server
//! and `docs/kinds.md` are based on it.

use longshore_model::KindInfo;

/// The actions of the embedded cluster on the objects of a kind, in addition to storing them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    /// A component acts on the objects, as the string describes.
    Acts(&'static str),
    /// The kind is pure data: no component acts on it in any Kubernetes cluster.
    Data,
    /// The embedded cluster does not act on the objects. The string describes the missing behavior.
    Stored(&'static str),
}

impl Behaviour {
    /// The warning for clients that create an object of `kind`, if the embedded
    /// cluster does not act on it.
    ///
    /// ```
    /// use longshore_model::kind::builtin;
    /// let warning = |group, kind| {
    ///     let behaviour = longshore_builtin::find(group, kind)?.behaviour;
    ///     behaviour.warning(builtin(group, kind)?)
    /// };
    /// let text = warning("networking.k8s.io", "Ingress").unwrap();
    /// assert!(text.starts_with("ingresses.networking.k8s.io are stored, but"), "{text}");
    /// assert_eq!(warning("batch", "Job"), None);
    /// ```
    #[must_use]
    pub fn warning(self, kind: &KindInfo) -> Option<String> {
        match self {
            Self::Acts(_) | Self::Data => None,
            Self::Stored(missing) => Some(format!(
                "{} are stored, but this cluster does not act on them: {missing}; see docs/kinds.md",
                kind.qualified()
            )),
        }
    }
}
