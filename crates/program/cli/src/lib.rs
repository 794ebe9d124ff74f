//! The command line of Longshore: arguments, output and exit codes. The crate `longshore`
//! implements the functionality. It is a library, so that the package of the Python wheel, which
//! contains the program, can depend on it.

mod app;
mod bootstrap_program;
mod child;
mod claim_reader;
mod clock;
mod commands;
mod complete;
mod config;
mod copy_outputs;
mod dev;
mod embedded;
mod env;
mod error;
mod fetch_outputs;
mod finished_runs;
mod follow;
mod forward;
mod help_groups;
mod hints;
mod interrupt;
mod last_event;
mod log_lines;
mod metric_columns;
mod output;
mod owners;
mod place;
mod printer;
mod progress;
mod ready;
mod select;
mod several_runs;
mod show;
mod ssh;
mod stdin;
mod target;
mod task_container;
mod task_outputs;
mod terminal;
mod ui;
mod upload;
mod usage;
mod verbs;

pub use app::main;

/// The allocator of the program. An API server allocates constantly, in many threads and
/// sizes. With glibc's allocator, allocation took a third of the time of a write.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
