//! Operations of pods: logs, bindings, evictions, exec and attach, file copies, and port
//! forwarding.

mod binding;
#[cfg(feature = "exec")]
mod copy;
mod eviction;
mod logs;
#[cfg(feature = "exec")]
mod port_forward;
#[cfg(feature = "exec")]
mod session;

#[cfg(feature = "exec")]
pub use copy::{Copied, CopyOptions, Progress};
pub use logs::LogLine;
#[cfg(feature = "exec")]
pub use port_forward::{PortForward, PortStream};
#[cfg(feature = "exec")]
pub use session::{ExecOptions, Input, Output, Reader, Session};
