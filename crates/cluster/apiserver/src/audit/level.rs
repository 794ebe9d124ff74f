//! Levels and stages of audit events.

use serde::Serialize;

/// The amount of data that is recorded about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) enum Level {
    None,
    Metadata,
    Request,
    RequestResponse,
}

impl Level {
    pub(super) const ALL: [(Self, &'static str); 4] = [
        (Self::None, "None"),
        (Self::Metadata, "Metadata"),
        (Self::Request, "Request"),
        (Self::RequestResponse, "RequestResponse"),
    ];
}

/// The stages of a request that have an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum Stage {
    RequestReceived,
    ResponseStarted,
    ResponseComplete,
    Panic,
}

impl Stage {
    pub(super) const ALL: [(Self, &'static str); 4] = [
        (Self::RequestReceived, "RequestReceived"),
        (Self::ResponseStarted, "ResponseStarted"),
        (Self::ResponseComplete, "ResponseComplete"),
        (Self::Panic, "Panic"),
    ];
}

/// A set of stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Stages(u8);

impl Stages {
    pub(super) fn contains(self, stage: Stage) -> bool {
        self.0 & (1 << stage as u8) != 0
    }

    pub(super) fn with(self, stage: Stage) -> Self {
        Self(self.0 | (1 << stage as u8))
    }

    pub(super) fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
