//! The four patch types and their media types.

use std::fmt;

/// The type of a patch body.
///
/// ```
/// use longshore_model::PatchKind;
/// assert_eq!(PatchKind::Merge.media_type(), "application/merge-patch+json");
/// assert_eq!(PatchKind::from_media_type("application/json-patch+json"), Some(PatchKind::Json));
/// assert_eq!(PatchKind::from_media_type("text/plain"), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PatchKind {
    /// JSON patch: a list of operations (RFC 6902).
    Json,
    /// JSON merge patch: a document that is merged; `null` deletes (RFC 7386).
    Merge,
    /// Strategic merge patch: the merge of Kubernetes, which merges lists of
    /// objects by key.
    Strategic,
    /// Server-side apply: the fields that a manager applies and then owns.
    Apply,
}

impl PatchKind {
    /// All patch types.
    pub const ALL: [PatchKind; 4] = [Self::Json, Self::Merge, Self::Strategic, Self::Apply];

    /// The media type of request bodies.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json-patch+json",
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
            Self::Apply => "application/apply-patch+yaml",
        }
    }

    /// Returns the patch type of a media type. Parameters (`; charset=…`) are
    /// ignored.
    #[must_use]
    pub fn from_media_type(media_type: &str) -> Option<Self> {
        let without_parameters = media_type.split(';').next().unwrap_or_default().trim();
        Self::ALL
            .into_iter()
            .find(|kind| kind.media_type().eq_ignore_ascii_case(without_parameters))
    }
}

impl fmt::Display for PatchKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.media_type())
    }
}
