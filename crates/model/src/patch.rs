//! The four kinds of patch and their media types.

use std::fmt;

/// How a patch body is to be read.
///
/// ```
/// use longshore_model::PatchKind;
/// assert_eq!(PatchKind::Merge.media_type(), "application/merge-patch+json");
/// assert_eq!(PatchKind::from_media_type("application/json-patch+json"), Some(PatchKind::Json));
/// assert_eq!(PatchKind::from_media_type("text/plain"), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PatchKind {
    /// A list of operations (RFC 6902).
    Json,
    /// A document merged in, `null` deletes (RFC 7386).
    Merge,
    /// Kubernetes' own merge: lists of objects merge by key.
    Strategic,
    /// Server-side apply: the fields a manager wants to own.
    Apply,
}

impl PatchKind {
    /// Every kind, for messages and tests.
    pub const ALL: [PatchKind; 4] = [Self::Json, Self::Merge, Self::Strategic, Self::Apply];

    /// The media type to send.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json-patch+json",
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
            Self::Apply => "application/apply-patch+yaml",
        }
    }

    /// The kind a media type names; parameters (`; charset=…`) are passed over.
    #[must_use]
    pub fn from_media_type(media_type: &str) -> Option<Self> {
        let essence = media_type.split(';').next().unwrap_or_default().trim();
        Self::ALL
            .into_iter()
            .find(|kind| kind.media_type().eq_ignore_ascii_case(essence))
    }
}

impl fmt::Display for PatchKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.media_type())
    }
}
