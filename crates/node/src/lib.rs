//! The node agent: registers a node and runs the pods bound to it as local
//! processes. A plain client of the Kubernetes API.
//!
//! **Images are not pulled.** A container's command runs on this machine's
//! files, in its own session and, where the kernel allows, in its own mount,
//! PID and UTS namespaces, with its volumes at their mount paths. `pause` is
//! the one image that needs no command. A folder that a mount path lacks on the
//! machine is made in the container's view only.
//!
//! **What containers get.** Their environment has the pod's variables, `POD_IP`
//! (each pod has an address of its own in 127.0.0.0/8: bind to it, not to
//! 0.0.0.0, or two pods collide on a port), `HOSTNAME`, and of the agent's own
//! environment only `PATH`, `HOME`, `LANG`, `LC_ALL`, `TZ`, `TMPDIR` and
//! `LD_LIBRARY_PATH`. `/etc/hosts` names the pods that have a subdomain. Where
//! mounts are possible and the agent was told how pods reach the API
//! ([`ApiAccess`]), clients find it as in every cluster; without
//! `automountServiceAccountToken` they lack the token.
//!
//! **Sessions.** [`Sessions`] runs commands in a container's namespaces, attaches
//! to its streams (`stdin`, `stdinOnce`, `tty`), and connects to its pod's ports.
//!
//! **Logs** go over several files of bounded size ([`LogLimits`]); who reads them
//! sees one, as far back as files are kept.
//!
//! **What is not enforced.** Requests and limits, probes (a running container
//! counts as ready), security contexts apart from `runAsUser` and `runAsGroup`
//! when the agent is root.
//!
//! **Nothing outlives the agent**: its end, even by SIGKILL, ends all its pods.

mod access;
mod address;
mod agent;
mod downward;
mod environment;
mod error;
mod events;
mod hosts;
mod logs;
mod machine;
mod node;
mod pod;
mod sandbox;
mod sources;
mod streams;
mod volumes;

pub use access::ApiAccess;
pub use agent::{NodeAgent, Options};
pub use error::Error;
pub use logs::{LogLimits, LogQuery, LogReadError, LogReader};
pub use streams::{Session, SessionError, SessionInput, SessionOutput, Sessions, Wanted};
