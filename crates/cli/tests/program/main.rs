//! The program as its users meet it: the real binary, each test with an
//! embedded cluster's folder of its own.

#![allow(clippy::unwrap_used)]

mod again;
mod all_containers;
mod bad_input;
mod command;
mod completion;
mod cutter;
mod documents;
mod down;
mod examples;
mod gaps;
mod help;
mod hints;
mod history;
mod interrupt;
mod jobset;
mod kept;
mod kills;
mod left_out;
mod lifecycle;
mod machine;
mod names;
mod objects;
mod outlives;
mod pods;
mod private;
mod refusals;
mod resolve;
mod run;
#[path = "../../../launcher/tests/s3/mod.rs"]
mod s3;
mod schedules;
mod shell;
mod stores;
mod surroundings;
mod survival;
mod terminal;
mod why;
mod window;
mod zenml;
