//! The clients that are measured.

/// A client and a way to use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contender {
    Ours,
    OursByPages,
    /// kube-rs, without decoding the text of the response.
    Bytes,
    Typed,
    Dynamic,
    Metadata,
    /// The lower bound: curl receives the same bytes and discards them.
    Curl,
    GoJson,
    GoJsonByPages,
    GoProtobuf,
    GoProtobufByPages,
    /// client-go's defaults: protobuf, compressed if the server compresses.
    GoDefault,
}

const ALL: [(Contender, &str); 12] = [
    (Contender::Ours, "ours"),
    (Contender::OursByPages, "ours, by pages"),
    (Contender::Bytes, "kube-rs, text only"),
    (Contender::Typed, "kube-rs, typed"),
    (Contender::Dynamic, "kube-rs, dynamic"),
    (Contender::Metadata, "kube-rs, metadata only"),
    (Contender::Curl, "curl, discarded"),
    (Contender::GoJson, "client-go, JSON"),
    (Contender::GoJsonByPages, "client-go, JSON, by pages"),
    (Contender::GoProtobuf, "client-go, protobuf"),
    (
        Contender::GoProtobufByPages,
        "client-go, protobuf, by pages",
    ),
    (Contender::GoDefault, "client-go, protobuf and gzip"),
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
