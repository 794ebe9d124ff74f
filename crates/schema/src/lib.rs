//! What Kubernetes' built-in types look like: their fields, the rules of
//! patches and lists, the numbers of their protobuf encoding, and the OpenAPI
//! documents that describe them.
//!
//! The types themselves come from `k8s-openapi`; what its schemas do not say
//! (merge keys, list types, protobuf numbers) stands in the tables under
//! `src/facts`. Pure: no I/O, no clock. Everything is built once, when first
//! used.

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
mod roots;
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
