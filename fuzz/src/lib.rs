//! Properties that must hold for any input, one module a fuzz target. Each has
//! a `check` that panics when the property is broken; `cargo xtask fuzz` looks
//! for such inputs, and a test replays the inputs in `fuzz/corpus`.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    missing_docs,
    unreachable_pub,
    reason = "a panic is how a broken property shows"
)]

pub mod bodies;
pub mod crds;
pub mod merges;
pub mod patches;
pub mod protobuf;
pub mod requests;
pub mod selectors;
pub mod server;
pub mod streams;
pub mod tokens;
pub mod yaml;

/// A property, by the name of its target.
pub type Check = fn(&[u8]);

/// Every target.
pub const TARGETS: &[(&str, Check)] = &[
    ("bodies", bodies::check),
    ("crds", crds::check),
    ("merges", merges::check),
    ("patches", patches::check),
    ("protobuf", protobuf::check),
    ("requests", requests::check),
    ("selectors", selectors::check),
    ("streams", streams::check),
    ("tokens", tokens::check),
    ("yaml", yaml::check),
];
