//! The HTTP API, called through the service and over the network.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod arbitrary_requests;
mod attacks;
mod audit;
mod authorization;
mod bad_bodies;
mod bad_options;
mod bad_requests;
mod common;
mod connections;
mod corpus;
mod discovery;
mod duplicate_fields;
mod expensive;
mod faults;
mod http1_bytes;
mod http2_frames;
mod lists;
mod logs;
mod long_answers;
mod long_responses;
mod network;
mod objects;
mod proxy;
mod restore;
mod streams;
mod subresources;
mod tokens;
mod unsupported_kinds;
mod users;
mod watches;
mod websocket_floods;
