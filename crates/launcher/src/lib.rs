//! Pack a folder, launch it as Jobs, follow it to its end.
//!
//! The order of a run, and the modules that do it:
//!
//! 1. [`config`]: `longshore.toml` and flags become a [`RunSpec`]. Pure.
//!    `Settings::load(folder)?`, `Flags { .. }`,
//!    `config::resolve(&settings, &flags, &folder_name) -> Result<RunSpec, ConfigError>`.
//! 2. [`bundle`]: a folder becomes a deterministic archive.
//!    `bundle::pack(&folder, &PackOptions, |progress| ..) -> Result<Bundle, BundleError>`,
//!    or `bundle::scan(&folder, &PackOptions) -> Result<Scan, BundleError>`, which knows
//!    the files to pack, and then `Scan::pack`.
//! 3. [`store`]: delivers the archive.
//!    `store::deliver(&bundle, store.as_ref(), DeliverOptions::default()).await?`.
//! 4. [`plan`]: the objects to create, as plain values. Pure.
//!    The roles become Jobs, CronJobs or a JobSet, by `RunSpec::workload`.
//!    `plan::plan(&RunSpec, &RunName, &namespace, Option<&BundleInfo>) -> Result<Plan, PlanError>`,
//!    `Plan::to_yaml()`.
//! 5. [`preflight`]: `preflight::check(&Cluster, &Plan, Purpose::Follow).await? -> Report`:
//!    every problem of the plan, before anything is created; then [`submit`]:
//!    `submit::submit(&Cluster, &Plan).await? -> Run`.
//! 6. [`follow`]: `Follow::start(&Cluster, &Run, FollowOptions::default()).await?`,
//!    then `follow.next().await -> Option<Result<Event, follow::Error>>`, where
//!    `Event` is `Progress`, `Waiting`, `Log`, `Gap` or, last, `Finished(Outcome)`.
//!    [`terminal_text`] makes what tasks write safe to show. Pure.
//! 7. [`runs`]: `runs::list`, `runs::find`, `runs::cancel`, `runs::remove`; with
//!    a schedule (`RunSpec::workload`), `runs::find_made` gives its last run.
//! 8. [`bootstrap`]: inside the pod: `bootstrap::fetch()`,
//!    `bootstrap::exec(command)`, `bootstrap::install(target)`.
//!
//! [`caller`] records the environment of the caller's shell for runs on this machine.
//! [`explain`] turns evidence (pods, Jobs, events, nodes) into one cause and one
//! remedy, [`fit`] checks whether a node could ever run a task; both are pure.
//! [`why`] queries the cluster and explains: `why::why(&Cluster, &Run).await? -> Why`.
//! [`zenml`] launches ZenML's pipelines in this way, with ZenML's own names.
//!
//! A module imports only from those before it:
//!
//! - bundles: `bundle`, `store`
//! - names: `names`, `escape`, `suggest`
//! - diagnosis, pure: `evidence`, `fit`, `explain`
//! - a run as data: `run`, `outcome`, `progress`
//! - planning, pure: `caller`, `config`, `pod`, `jobset`, `plan`
//! - following, pure: `track`, `terminal_text`
//! - queries: `queries`, `kueue`, `around`
//! - actions: `preflight`, `submit`, `runs`, `lines`, `follow`, `why`
//! - in the pod and next to the cluster: `ready_note`, `bootstrap`, `kept`
//! - `zenml`

mod around;
pub mod bootstrap;
pub mod bundle;
pub mod caller;
pub mod config;
mod escape;
pub mod evidence;
pub mod explain;
pub mod fit;
pub mod follow;
mod jobset;
pub mod kept;
mod kueue;
mod lines;
pub mod names;
mod outcome;
pub mod plan;
pub mod pod;
pub mod preflight;
mod progress;
mod queries;
mod ready_note;
mod run;
pub mod runs;
pub mod store;
pub mod submit;
pub mod suggest;
pub mod terminal_text;
mod track;
pub mod why;
pub mod zenml;

pub use bundle::{Bundle, PackOptions};
pub use caller::Caller;
pub use config::{Flags, RoleSpec, RunOptions, RunSpec, Schedule, Settings, TaskOptions, Workload};
pub use follow::{Event, Follow, FollowOptions, Outcome};
pub use names::RunName;
pub use plan::Plan;
pub use runs::{Run, RunState, RunSummary};
pub use store::{BundleInfo, Store};
