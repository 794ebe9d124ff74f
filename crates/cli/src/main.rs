//! The program `longshore`. It alone prints and picks exit codes; what it does
//! is in the library.

mod app;
mod commands;
mod config;
mod embedded;
mod env;
mod error;
mod follow;
mod output;
mod progress;
mod target;
mod ui;

fn main() -> std::process::ExitCode {
    app::main()
}
