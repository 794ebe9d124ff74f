//! The node agent registers a node and runs the pods bound to it as local processes. The agent is
//! an ordinary client of the Kubernetes API.
//!
//! **Images are not pulled.** A container runs its command, or the entrypoint that
//! [`Options::image_entrypoints`] assigns to its image, with its args, on this machine's files. It
//! has its own session and, where the kernel allows, its own mount, PID and UTS namespaces, in
//! which its volumes appear at their mount paths. `pause` needs no command. A container without a
//! `workingDir` starts in its own empty directory. If a mount path does not exist on the machine,
//! it is created only in the container's view.
//!
//! **Environment.** Containers get the pod's variables, `POD_IP`, `HOSTNAME`, and from the agent's
//! own environment only `PATH`, `HOME`, `LANG`, `LC_ALL`, `TZ`, `TMPDIR` and `LD_LIBRARY_PATH`.
//! Each pod has its own address in 127.0.0.0/8. A server that binds 0.0.0.0 gets the pod's address
//! where the kernel allows it. Elsewhere, servers must bind the pod's address, or pods that use the
//! same port conflict. `/etc/hosts` names the Services and the pods that have a subdomain. If
//! mounts are possible and the agent has the address of the API ([`ApiAccess`]), clients find it as
//! in every cluster, with a token of the pod's service account. The agent requests the token, binds
//! it to the pod, and renews it.
//!
//! **Sessions.** [`Sessions`] runs commands in a container's namespaces, attaches to its streams
//! (`stdin`, `stdinOnce`, `tty`), and connects to its pod's ports.
//!
//! **Logs** consist of several files of limited size ([`LogLimits`]). A reader sees them as one log
//! that begins with the oldest file. A container waits for slow readers, for a limited time.
//!
//! **GPUs** of the machine are offered as `nvidia.com/gpu` and `amd.com/gpu`. A container gets
//! whole devices, and the variables that frameworks read.
//!
//! **Security contexts** are enforced as far as the agent's privileges permit. A field that cannot
//! be enforced prevents the container from starting, with an event that names the field;
//! `docs/security-context.md` lists all fields. The same applies to other fields that this node
//! does not support (`fields`): no field is ignored.
//!
//! **Probes and hooks** work as in Kubernetes: probes decide whether a container is started and
//! ready, and whether it restarts.
//!
//! **Limits** of CPU and memory are enforced by cgroups (`cgroups`) if the agent may create them.
//!
//! **Not enforced** are limits of other resources. Pods share the machine's network: every user of
//! the machine can reach their ports, and can bind a port at a pod's address before the pod does.
//!
//! **No pod survives the agent**: when the agent ends, even by SIGKILL, all its pods end.

mod access;
mod address;
mod agent;
mod allocations;
mod certificates;
mod cgroups;
mod claims;
mod collect;
mod data_folder;
mod devices;
mod dns;
mod downward;
mod environment;
mod error;
mod events;
mod fields;
mod fill;
mod host_ports;
mod hosts;
mod images;
mod last_end;
mod logs;
mod lookup;
mod machine;
mod memory;
mod node;
mod pem;
mod pod;
mod pod_threads;
mod probes;
mod remover;
mod sandbox;
mod security;
mod sessions;
mod sources;
mod streams;
mod sysctls;
mod tokens;
mod usage;
mod volumes;

pub use access::ApiAccess;
pub use agent::{NodeAgent, Options};
pub use collect::{CollectFiles, EndedPod};
pub use error::Error;
pub use fill::{FillVolumes, NewVolume};
pub use images::{ImageEntrypoint, ImageEntrypointError, ImageUser, ImageUserError};
pub use last_end::LastEnd;
pub use logs::{KEPT_LOGS_LIMIT, LogLimits, LogReader, kept_log_bytes};
pub use longshore_model::network::MAX_NODES;
pub use sessions::Sessions;
