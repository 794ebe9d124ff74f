//! Who is measured.

/// A client, or a way to use one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contender {
    Ours,
    OursByPages,
    /// kube-rs, the text of the answer only.
    Bytes,
    Typed,
    Dynamic,
    Metadata,
    /// The floor: curl of the same bytes, thrown away.
    Curl,
}

const ALL: [(Contender, &str); 7] = [
    (Contender::Ours, "ours"),
    (Contender::OursByPages, "ours, by pages"),
    (Contender::Bytes, "kube-rs, text only"),
    (Contender::Typed, "kube-rs, typed"),
    (Contender::Dynamic, "kube-rs, dynamic"),
    (Contender::Metadata, "kube-rs, metadata only"),
    (Contender::Curl, "curl, thrown away"),
];

impl Contender {
    pub(super) fn name(self) -> &'static str {
        let found = ALL.iter().find(|(contender, _)| *contender == self);
        found.map_or("", |(_, name)| name)
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        let found = ALL.iter().find(|(_, known)| *known == name);
        found.map(|(contender, _)| *contender)
    }
}
