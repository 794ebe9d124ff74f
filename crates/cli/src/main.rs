//! The program `longshore`. It alone prints and picks exit codes; what it does
//! is in the library.

mod app;
mod commands;
mod complete;
mod config;
mod embedded;
mod env;
mod error;
mod follow;
mod hints;
mod interrupt;
mod leftovers;
mod log_lines;
mod output;
mod place;
mod printer;
mod progress;
mod ready;
mod select;
mod show;
mod stdin;
mod target;
mod terminal;
mod ui;
mod upload;
mod usage;

/// An API server allocates all the time, in many threads and many sizes: glibc's
/// allocator took a third of the time of a write.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    app::main()
}
