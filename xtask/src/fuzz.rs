//! `cargo xtask fuzz`: searches for inputs that break the properties in `fuzz/`.

use std::{fs, path::Path, process::Command};

use crate::run::{Outcome, output, root, run_command, target};

/// The targets, and the time for each.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Run only this target; default: all, one after another.
    target: Option<String>,
    /// Minutes for each target.
    #[arg(long, default_value_t = 5)]
    minutes: u64,
    /// Build the targets and do not run them.
    #[arg(long)]
    build: bool,
}

/// Builds and runs the targets; fails if one finds an input that breaks a property.
pub(crate) fn run(arguments: &Arguments) -> Outcome {
    output(&mut cargo_fuzz(&["--version"]))
        .map_err(|_| "cargo-fuzz is not installed: `cargo install cargo-fuzz`".to_owned())?;
    let folder = root().join("fuzz");
    let targets = targets(&folder)?;
    let chosen: Vec<_> = targets
        .iter()
        .filter(|name| {
            arguments
                .target
                .as_ref()
                .is_none_or(|wanted| wanted == *name)
        })
        .collect();
    if chosen.is_empty() {
        return Err(format!(
            "unknown target; the targets are {}",
            targets.join(", ")
        ));
    }
    let work = target().join("fuzz");
    // No sanitizer: the code under test has no unsafe code, and sanitizers require a nightly
    // toolchain.
    let common = ["--sanitizer", "none", "--fuzz-dir", "fuzz"];
    run_command(
        cargo_fuzz(&["build"])
            .args(common)
            .env("CARGO_TARGET_DIR", &work),
    )?;
    if arguments.build {
        return Ok(());
    }
    for name in chosen {
        // libFuzzer writes new inputs to the first folder, which is outside of the sources.
        let found = work.join("corpus").join(name);
        let broken = work.join("artifacts").join(name).join("");
        for folder in [&found, &broken] {
            fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        println!("\n{name}, {} minutes", arguments.minutes);
        run_command(
            cargo_fuzz(&["run"])
                .args(common)
                .arg(name)
                .arg(&found)
                .arg(folder.join("corpus").join(name))
                .arg("--")
                .arg(format!("-artifact_prefix={}", broken.display()))
                .arg(format!("-max_total_time={}", arguments.minutes * 60))
                .args(["-rss_limit_mb=4096", "-timeout=20", "-print_final_stats=1"])
                .env("CARGO_TARGET_DIR", &work),
        )
        .map_err(|problem| {
            format!("{problem}\nthe input is in {}: fix the fault, and add the input to fuzz/corpus/{name}", broken.display())
        })?;
    }
    Ok(())
}

/// `cargo fuzz` with the toolchain of the repository.
fn cargo_fuzz(arguments: &[&str]) -> Command {
    let mut command = crate::run::cargo();
    command.arg("fuzz").args(arguments);
    command
}

/// The names of the targets, from their files.
fn targets(folder: &Path) -> Outcome<Vec<String>> {
    let entries = fs::read_dir(folder.join("fuzz_targets"))
        .map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| Some(entry.ok()?.path().file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    Ok(names)
}
