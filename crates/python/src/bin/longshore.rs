//! The program `longshore`, as `longshore-cli` builds it, for the wheel.

fn main() -> std::process::ExitCode {
    longshore_cli::main()
}
