//! `cargo xtask tidy`: checks the dependencies between crates, and conventions that the
//! compiler does not check. Each message says what to do.

mod cycles;
mod dialect;
mod examples;
mod houses;
mod layout;
mod modules;
mod paths;
mod source;
mod user_build;
mod words;

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::{
    conformance,
    run::{Outcome, cargo, output, root},
};

/// The permitted dependencies between crates. Each row has a crate, its dependencies, and the
/// additional dependencies of its tests.
#[rustfmt::skip]
const MAP: &[(&str, &[&str], &[&str])] = &[
    ("model", &[], &[]),
    ("schema", &["model"], &[]),
    ("cel", &["model", "schema"], &[]),
    ("archive", &[], &[]),
    ("clock", &[], &[]),
    ("files", &[], &[]),
    ("snapshots", &["model"], &[]),
    ("ssh", &["files"], &[]),
    ("client", &["archive", "files", "model", "snapshots"], &["embedded"]),
    ("resolver", &["client", "model"], &["embedded"]),
    ("bundles", &["archive", "files"], &[]),
    ("diagnosis", &["model"], &[]),
    ("launcher", &["archive", "bundles", "client", "diagnosis", "files", "resolver", "schema", "ssh", "model"], &[]),
    ("zenml", &["client", "launcher", "model"], &[]),
    ("ui", &["client", "launcher", "model"], &["embedded"]),
    ("builtin", &["cel", "model", "schema"], &[]),
    ("engine", &["builtin", "cel", "clock", "files", "model", "schema"], &[]),
    ("node-api", &[], &[]),
    ("apiserver", &["builtin", "cel", "engine", "node-api", "schema", "model"], &[]),
    ("controllers", &["client", "clock", "files", "model"], &["engine", "apiserver"]),
    ("services", &["client", "clock", "model"], &["engine", "apiserver"]),
    ("node", &["client", "clock", "files", "model", "node-api", "services"], &["engine", "apiserver"]),
    ("embedded", &["apiserver", "clock", "engine", "controllers", "files", "node", "node-api", "client", "model"], &[]),
    ("recording", &["client", "files", "model", "schema"], &["engine", "apiserver"]),
    ("longshore", &["client", "recording", "resolver", "launcher", "zenml", "model", "embedded"], &[]),
    ("testing", &[], &[]),
    ("cli", &["longshore", "embedded", "files", "ssh", "ui"], &[]),
    ("extension", &["longshore", "embedded"], &[]),
    ("python", &["extension", "cli"], &["longshore"]),
    ("conformance", &["longshore", "embedded", "node-api"], &["model", "node"]),
    ("bench", &["longshore", "embedded"], &[]),
];

/// The only crate that may depend on the kube-rs libraries, and these libraries.
const TRANSPORT: (&str, &[&str]) = ("client", &["kube-client", "kube-core", "kube"]);

/// Further crates that may depend on the kube-rs libraries: they compare Longshore with kube-rs.
const TRANSPORT_EXCEPTIONS: &[&str] = &["bench", "conformance"];

/// The crate whose helpers all tests may use.
const TESTING: &str = "longshore-testing";

/// Runs the checks; the error lists every problem.
pub(crate) fn run() -> Outcome {
    let mut problems = Vec::new();
    let metadata = output(cargo().args(["metadata", "--format-version=1", "--no-deps"]))?;
    let metadata: Value = serde_json::from_str(&metadata).map_err(|error| error.to_string())?;
    user_build::check(&mut problems)?;
    let sizes = check_sources(&metadata, &mut problems)?;
    conformance::check(&mut problems);
    if problems.is_empty() {
        println!("tidy: {sizes}");
        return Ok(());
    }
    Err(format!("tidy found problems:\n- {}", problems.join("\n- ")))
}

/// Checks the files; returns a text with their sizes.
fn check_sources(metadata: &Value, problems: &mut Vec<String>) -> Outcome<String> {
    for package in list(&metadata["packages"]) {
        check_edges(package, problems);
        check_files(package, problems)?;
        check_cycles(package, problems)?;
    }
    let sizes = layout::check(&root(), problems)?;
    examples::check(&root(), problems)?;
    paths::check(&root(), problems)?;
    words::check(&root(), problems)?;
    dialect::check(&root(), problems)?;
    Ok(sizes)
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// The name in [`MAP`]: without the prefix `longshore-`.
fn crate_name(package: &str) -> &str {
    package.strip_prefix("longshore-").unwrap_or(package)
}

fn check_edges(package: &Value, problems: &mut Vec<String>) {
    let name = text(package, "name");
    let from = crate_name(name);
    let row = MAP.iter().find(|(from_name, ..)| *from_name == from);
    if row.is_none() && name != "xtask" {
        problems.push(format!(
            "crate {name} is not in the list of dependencies: add it to MAP in xtask/src/tidy/mod.rs, and to the table in the ARCHITECTURE.md of its house"
        ));
    }
    for dependency in list(&package["dependencies"]) {
        let to = text(dependency, "name");
        let is_dev = text(dependency, "kind") == "dev";
        let (owner, transport) = TRANSPORT;
        if transport.contains(&to)
            && from != owner
            && !is_dev
            && !TRANSPORT_EXCEPTIONS.contains(&from)
        {
            problems.push(format!(
                "{from} depends on {to}: only {owner} may; use longshore-client instead"
            ));
        }
        let local = dependency["path"].is_string();
        let folders = (
            Path::new(text(package, "manifest_path")).parent(),
            dependency["path"].as_str().map(Path::new),
        );
        if !is_dev && let (Some(from), Some(to)) = folders {
            problems.extend(houses::check(from, to));
        }
        // A crate that enables features of itself for its tests.
        let is_itself = is_dev && to == name;
        let is_for_tests = is_dev && to == TESTING;
        let allowed = row.is_some_and(|(_, uses, tests_use)| {
            uses.contains(&crate_name(to)) || (is_dev && tests_use.contains(&crate_name(to)))
        });
        if local && !allowed && !is_itself && !is_for_tests {
            problems.push(format!(
                "{from} depends on {}, which MAP does not permit: move the code to a crate that may depend on both, or change MAP in xtask/src/tidy/mod.rs",
                crate_name(to)
            ));
        }
    }
}

/// Checks the library and programs of a package for import cycles.
fn check_cycles(package: &Value, problems: &mut Vec<String>) -> Outcome {
    for target in list(&package["targets"]) {
        let kinds = list(&target["kind"]).filter_map(Value::as_str);
        if kinds
            .into_iter()
            .any(|kind| matches!(kind, "lib" | "bin" | "cdylib" | "rlib"))
        {
            let root = Path::new(text(target, "src_path"));
            cycles::check(text(package, "name"), root, problems)?;
        }
    }
    Ok(())
}

/// Checks that a crate uses the workspace's lints, and that every test file is a target.
fn check_files(package: &Value, problems: &mut Vec<String>) -> Outcome {
    let manifest = Path::new(text(package, "manifest_path"));
    let name = text(package, "name");
    let contents =
        fs::read_to_string(manifest).map_err(|error| format!("{}: {error}", manifest.display()))?;
    if !contents.contains("[lints]\nworkspace = true") {
        problems.push(format!(
            "{name} does not use the workspace's lints: add `[lints]`, `workspace = true`"
        ));
    }
    let tests = manifest.with_file_name("tests");
    for path in files(&tests) {
        let compiled =
            list(&package["targets"]).any(|target| Path::new(text(target, "src_path")) == path);
        if is_rust(&path) && !compiled {
            problems.push(format!(
                "{} is not a test target, so nothing runs it",
                path.display()
            ));
        }
        check_modules(&path, problems);
    }
    Ok(())
}

fn files(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path())
}

fn is_rust(path: &Path) -> bool {
    path.extension().is_some_and(|kind| kind == "rs")
}

/// Checks that the `main.rs` of a test declares every file in its folder as a module.
fn check_modules(folder: &Path, problems: &mut Vec<String>) {
    let Ok(main) = fs::read_to_string(folder.join("main.rs")) else {
        return;
    };
    for path in files(folder) {
        let Some(name) = path.file_stem().and_then(|name| name.to_str()) else {
            continue;
        };
        let is_module = is_rust(&path) || files(&path).any(|file| is_rust(&file));
        let is_declared = name == "main" || main.contains(&format!("mod {name};"));
        if is_module && !is_declared {
            problems.push(format!(
                "{} is not a module of its test, so nothing runs it",
                path.display()
            ));
        }
    }
}
