//! What only pods have: logs, bindings and evictions, sessions in containers, copies
//! of files, and ports.

mod binding;
mod copy;
mod eviction;
mod logs;
mod port_forward;
mod session;

pub use copy::{Copied, CopyOptions, Progress};
pub use logs::LogLine;
pub use port_forward::{PortForward, PortStream};
pub use session::{ExecOptions, Input, Output, Reader, Session};
