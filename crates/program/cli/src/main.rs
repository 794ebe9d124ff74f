//! The program `longshore`.

fn main() -> std::process::ExitCode {
    longshore_cli::main()
}
