//! The reason why a volume cannot be prepared.

use std::io;

use super::trust::TrustError;
use crate::{certificates::CertificateError, downward::FieldError};

/// The reason why a volume cannot be prepared. The pod waits and the agent retries.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum VolumeError {
    #[error("MountVolume.SetUp failed for volume \"{volume}\" : {kind} \"{name}\" not found")]
    Missing {
        volume: String,
        kind: &'static str,
        name: String,
    },
    #[error(
        "MountVolume.SetUp failed for volume \"{volume}\" : references non-existent config key: {key}"
    )]
    NoKey { volume: String, key: String },
    #[error(
        "MountVolume.SetUp failed for volume \"{volume}\" : path {path:?} must be relative and without \"..\""
    )]
    BadPath { volume: String, path: String },
    #[error("MountVolume.SetUp failed for volume \"{volume}\" : hostPath {path:?}: {reason}")]
    HostPath {
        volume: String,
        path: String,
        reason: String,
    },
    #[error("failed to prepare subPath {path:?} of volume {volume:?}: {reason}")]
    SubPath {
        volume: String,
        path: String,
        reason: String,
    },
    #[error("MountVolume.SetUp failed for volume \"{volume}\" : {source}")]
    Field { volume: String, source: FieldError },
    #[error("MountVolume.SetUp failed for volume \"{volume}\" : {source}")]
    Trust { volume: String, source: TrustError },
    #[error("MountVolume.SetUp failed for volume \"{volume}\" : {source}")]
    Certificate {
        volume: String,
        source: CertificateError,
    },
    #[error("MountVolume.SetUp failed for volume \"{volume}\" : no token was fetched")]
    NoToken { volume: String },
    #[error(
        "volume \"{volume}\" is of a type that this node does not offer; use configMap, secret, emptyDir, hostPath, downwardAPI, projected, persistentVolumeClaim or ephemeral"
    )]
    Unsupported { volume: String },
    #[error(
        "volume \"{volume}\": PersistentVolume \"{name}\" is of a type that this node does not offer; use local or hostPath"
    )]
    UnsupportedClaim { volume: String, name: String },
    #[error(
        "MountVolume.NewMounter initialization failed for volume \"{volume}\" : path \"{path}\" does not exist"
    )]
    NoLocalPath { volume: String, path: String },
    #[error("MountVolume.SetUp failed for volume \"{volume}\" : {source}")]
    System { volume: String, source: io::Error },
}
