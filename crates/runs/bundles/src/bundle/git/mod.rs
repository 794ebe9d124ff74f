//! Finds the files of a folder that git tracks or ignores, like `git ls-files --cached --others
//! --exclude-standard`.
//!
//! Reads the repository and git's configuration without a git program. A machine without git
//! therefore packs the same files, and the settings of a repository cannot start a program.

mod bitmap;
mod config;
mod index;
mod layout;
mod patterns;
mod scope;
mod settings;

pub(super) use layout::Repository;
pub(super) use patterns::{Patterns, Verdict};
pub(super) use scope::Scope;
pub(super) use settings::Variables;
