//! The client with canned responses.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod bad_input;
mod cache;
mod corpus;
mod fake;
mod limits;
mod lists;
mod objects;
mod requests;
mod typed;
mod watches;
