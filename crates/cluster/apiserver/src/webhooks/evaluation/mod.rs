//! Evaluates the admission policies that a request matches.

mod audited;
mod bindings;
mod denial;
mod evaluated;
mod mutation;
mod permission;
mod validation;

pub(super) use mutation::Reinvocation;
