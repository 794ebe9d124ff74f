//! The resolver on an embedded API server, whose pods are as a test says.
#![allow(clippy::unwrap_used)]

mod asks;
mod common;
mod rights;
mod waits;
mod watches;
