//! Records the requests of a program to a Kubernetes cluster with their responses, and replays
//! the responses without a cluster, for tests of programs in any language.
//!
//! A [`Recorder`] is a proxy in front of a cluster, and writes a file. A [`Replay`] is a server
//! that answers the same requests with the responses of the file. `docs/recording.md` describes
//! the format of the file. It contains no credentials, no data of Secrets and no tokens.

// Each module imports only from those to its left: error, json, resource · secrets · accept,
// content · request · line · recording · difference · player · listen · record, replay.
mod accept;
mod content;
mod difference;
mod error;
mod json;
mod kubeconfig;
mod line;
mod listen;
mod player;
mod record;
mod recording;
mod replay;
mod request;
mod resource;
mod secrets;

pub use error::{Error, FormatError};
pub use player::{NotRecorded, Report};
pub use record::{MAX_BODY_LIMIT, RecordOptions, Recorder, Summary};
pub use recording::Recording;
pub use replay::{Replay, ReplayOptions};
pub use secrets::MARKER;
