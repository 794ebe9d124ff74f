//! The resolver on an embedded API server, with pods that the tests define.
#![allow(clippy::unwrap_used)]

mod common;
mod rights;
mod single_requests;
mod waits;
mod watches;
