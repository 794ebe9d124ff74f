//! The OpenAPI documents that API servers publish: v3, a JSON document for each
//! group and version, and v2, a single document in protobuf or JSON.
//!
//! kubectl uses them to explain types, to compute patches for `apply`, and to
//! find out whether `PATCH` supports the parameters `dryRun` and
//! `fieldValidation`.

mod custom;
mod extension;
mod gnostic;
mod merge;
mod parameters;
mod paths;
mod schemas;
mod v2;
mod v2_json;
mod v2_paths;
mod v3;

pub use custom::Describe;
pub use merge::V2Part;
pub use v2::{V2_CONTENT_TYPE, v2_protobuf};
pub use v2_json::v2_json;
pub use v3::{v3_document, v3_index};
