//! The HTTP API, through the service and over the network.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod anything;
mod attacks;
mod bad_bodies;
mod bad_options;
mod bad_requests;
mod common;
mod corpus;
mod crowd;
mod discovery;
mod faults;
mod floods;
mod idle;
mod lists;
mod logs;
mod named_twice;
mod network;
mod objects;
mod raw;
mod streams;
mod tokens;
mod turns;
mod watches;
mod wire;
