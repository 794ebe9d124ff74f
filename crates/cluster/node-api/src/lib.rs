//! The interface between the API server and the node that runs the containers: their logs
//! ([`NodeLogs`]), and sessions with them and their resource usage ([`NodeStreams`]). The API
//! server calls it and the node implements it, so the two do not depend on each other. Both connect
//! to ports of pods without verifying certificates ([`AnyCertificate`]).

mod certificates;
mod logs;
mod sessions;
mod usage;

pub use certificates::AnyCertificate;
pub use logs::{
    ContainerLogs, InstanceLog, LogError, LogOwner, LogRequest, LogStream, NodeLogs, PodLogs,
};
pub use sessions::{
    BoxedConnection, BoxedRead, BoxedWrite, ContainerRef, Duplex, NodeStreams, Opening, Session,
    SessionError, StreamsWanted,
};
pub use usage::{ContainerUsage, Measuring, NodeUsage, Usage};
