//! Descriptions of the built-in Kubernetes types: fields, patch and list rules,
//! protobuf field numbers, and OpenAPI documents.
//!
//! The schemas are from `k8s-openapi`. Properties that they lack (merge keys, list types, protobuf
//! numbers) are in the tables under `src/facts`. The crate does no I/O and needs no clock. All
//! tables are built on first use.

mod complete;
mod definitions;
mod duplicates;
mod facts;
mod fields;
mod go_types;
mod graph;
pub mod openapi;
mod ownership;
mod packages;
mod parse;
pub mod protobuf;
mod registry;
pub mod strategic;
pub mod structural;
mod zeros;

pub use complete::complete;
pub use duplicates::strict_mistakes;
pub use facts::{ListType, PatchRule, Strategy};
pub use fields::{prune, unknown_fields};
pub use graph::{Shape, TypeRef};
pub use ownership::{DeclaredType, OwnedType, Ownership};
pub use parse::parse;
pub use registry::{Registry, registry};
pub use structural::Structural;
pub use zeros::is_zero;
