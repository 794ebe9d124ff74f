//! The client against answers that are made up.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod fake;
mod requests;
mod typed;
mod watches;
