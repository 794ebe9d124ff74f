//! `longshore.toml` and flags, merged into a [`RunSpec`].
//!
//! Raw values first: [`RunOptions`] and [`TaskOptions`] declare each option once, for the
//! file ([`Settings`]) and for the command line ([`Flags`]). Then their meaning
//! ([`resolve()`]). Nothing here reads the environment or the clock.

mod command;
mod env_file;
mod env_from;
mod error;
mod flags;
mod keys;
mod layers;
mod located;
mod options;
mod pod_spec;
mod resolve;
mod resources;
mod role;
mod settings;
mod source;
mod spec;
mod template;
mod toleration;
mod values;
mod variable;
mod volume;
mod workload;

pub use command::Command;
pub use env_file::{EnvFile, pass_through};
pub use env_from::EnvFrom;
pub use error::{ConfigError, Position};
pub use flags::Flags;
pub use located::{Located, Text};
pub use options::{RunOptions, TaskOptions};
pub use pod_spec::PodSpec;
pub use resolve::resolve;
pub use settings::{RoleSettings, Settings};
pub use source::Source;
pub use spec::{Input, RoleSpec, RunSpec};
pub use template::Template;
pub use toleration::Toleration;
pub use values::{Scalar, duration};
pub use variable::{Variable, VariableSource};
pub use volume::Volume;
pub use workload::{Schedule, Workload};

/// The file's name.
pub const FILE: &str = "longshore.toml";
/// The default image.
pub const DEFAULT_IMAGE: &str = "python:3-slim";
/// The published image that contains the program, for tasks whose images do not: the
/// `launcher_image` when none is given. A release that publishes one is built with
/// `LONGSHORE_LAUNCHER_IMAGE` set to its name; other builds have none.
pub const PUBLISHED_LAUNCHER_IMAGE: Option<&str> = option_env!("LONGSHORE_LAUNCHER_IMAGE");
/// The default port of the first task.
pub const DEFAULT_PORT: u16 = 8470;
