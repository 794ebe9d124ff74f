//! Properties that must hold for any input, with one module per fuzz target. Each module
//! has a function `check` that panics if the property does not hold. `cargo xtask fuzz`
//! searches for such inputs, and a test replays the inputs in `fuzz/corpus`.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    missing_docs,
    unreachable_pub,
    reason = "a property that does not hold must panic"
)]

pub mod bodies;
pub mod certificates;
pub mod crds;
pub mod merges;
pub mod patches;
pub mod policies;
pub mod protobuf;
pub mod requests;
pub mod selectors;
pub mod server;
pub mod streams;
pub mod tokens;
pub mod yaml;

/// The check of a property.
pub type Check = fn(&[u8]);

/// All targets: their names and checks.
pub const TARGETS: &[(&str, Check)] = &[
    ("bodies", bodies::check),
    ("certificates", certificates::check),
    ("crds", crds::check),
    ("merges", merges::check),
    ("patches", patches::check),
    ("policies", policies::check),
    ("protobuf", protobuf::check),
    ("requests", requests::check),
    ("selectors", selectors::check),
    ("streams", streams::check),
    ("tokens", tokens::check),
    ("yaml", yaml::check),
];
