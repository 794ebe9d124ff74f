//! The node agent: registers a node and runs the pods bound to it as local
//! processes. A plain client of the Kubernetes API.
//!
//! **Images are not pulled.** A container's command, or without one the
//! entrypoint that [`Options::image_entrypoints`] gives its image and its args,
//! runs on this machine's files, in its own session and, where the kernel allows,
//! in its own mount, PID and UTS namespaces, with its volumes at their mount
//! paths. `pause` needs no command. A container without a `workingDir` starts in
//! an empty folder of its own. A folder that a mount path lacks on the
//! machine is made in the container's view only.
//!
//! **What containers get.** Their environment has the pod's variables, `POD_IP`
//! (each pod has an address of its own in 127.0.0.0/8: bind to it, not to
//! 0.0.0.0, or two pods collide on a port), `HOSTNAME`, and of the agent's own
//! environment only `PATH`, `HOME`, `LANG`, `LC_ALL`, `TZ`, `TMPDIR` and
//! `LD_LIBRARY_PATH`. `/etc/hosts` names the pods that have a subdomain. Where
//! mounts are possible and the agent knows how pods reach the API
//! ([`ApiAccess`]), clients find it as in every cluster: with a token of the pod's
//! service account, which the agent requests, bound to the pod, and renews.
//!
//! **Sessions.** [`Sessions`] runs commands in a container's namespaces, attaches
//! to its streams (`stdin`, `stdinOnce`, `tty`), and connects to its pod's ports.
//!
//! **Logs** go over several files of bounded size ([`LogLimits`]); a reader sees
//! one, as far back as files are kept. A container waits for a reader that is
//! too slow, for a bounded time.
//!
//! **GPUs** of the machine are offered as `nvidia.com/gpu` and `amd.com/gpu`; a
//! container gets whole ones, and the variables that frameworks read.
//!
//! **Security contexts** are enforced as far as the agent's own rights go; a field
//! that cannot be enforced refuses the container, with an event that names it.
//! `docs/security-context.md` lists all fields. So do other fields that this node
//! cannot honour (`fields`): none is ignored.
//!
//! **What is not enforced.** Requests and limits, probes (a running container
//! counts as ready). Pods share the machine's network: every user of the machine can
//! reach their ports, and can bind a port at a pod's address before the pod does.
//!
//! **Nothing outlives the agent**: its end, even by SIGKILL, ends all its pods.

mod access;
mod address;
mod agent;
mod devices;
mod downward;
mod environment;
mod error;
mod events;
mod fields;
mod fill;
mod hosts;
mod images;
mod last_end;
mod logs;
mod machine;
mod node;
mod pod;
mod remover;
mod sandbox;
mod security;
mod sessions;
mod sources;
mod streams;
mod tokens;
mod volumes;

pub use access::ApiAccess;
pub use agent::{NodeAgent, Options};
pub use error::Error;
pub use fill::{FillVolumes, NewVolume};
pub use images::{ImageEntrypoint, ImageEntrypointError};
pub use last_end::LastEnd;
pub use logs::{LogLimits, LogQuery, LogReadError, LogReader};
pub use sessions::Sessions;
pub use streams::{Session, SessionError, SessionInput, SessionOutput, Wanted};
