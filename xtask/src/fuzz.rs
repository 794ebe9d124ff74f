//! `cargo xtask fuzz`: looks for inputs that break the properties in `fuzz/`.

use std::{fs, path::Path, process::Command};

use crate::run::{Outcome, finish, output, root, target};

/// What to fuzz, and how long.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only this target; all of them, one after the other, without.
    target: Option<String>,
    /// Minutes for each target.
    #[arg(long, default_value_t = 5)]
    minutes: u64,
    /// Only build the targets.
    #[arg(long)]
    build: bool,
}

/// Builds the targets and runs them; fails when one finds something.
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
        return Err(format!("no such target: there are {}", targets.join(", ")));
    }
    let work = target().join("fuzz");
    // No sanitizer: there is no unsafe code of ours to watch, and the pinned
    // toolchain can build without one.
    let common = ["--sanitizer", "none", "--fuzz-dir", "fuzz"];
    finish(
        cargo_fuzz(&["build"])
            .args(common)
            .env("CARGO_TARGET_DIR", &work),
    )?;
    if arguments.build {
        return Ok(());
    }
    for name in chosen {
        // What is found goes to the first folder, out of the way of the sources.
        let found = work.join("corpus").join(name);
        let broken = work.join("artifacts").join(name).join("");
        for folder in [&found, &broken] {
            fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        println!("\n{name}, {} minutes", arguments.minutes);
        finish(
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
            format!("{problem}\nthe input is in {}: mend the fault, and keep the input in fuzz/corpus/{name}", broken.display())
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

/// The targets, by the files there are.
fn targets(folder: &Path) -> Outcome<Vec<String>> {
    let entries = fs::read_dir(folder.join("fuzz_targets"))
        .map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| Some(entry.ok()?.path().file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    Ok(names)
}
