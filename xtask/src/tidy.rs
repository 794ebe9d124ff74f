//! `cargo xtask tidy`: the map of the crates and the habits that no compiler
//! checks. Each refusal says what to do.

mod cycles;
mod examples;
mod modules;
mod source;
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

/// Who may use whom, as ARCHITECTURE.md draws it: crate, what it may use, what
/// its tests may use besides.
#[rustfmt::skip]
const MAP: &[(&str, &[&str], &[&str])] = &[
    ("model", &[], &[]),
    ("schema", &["model"], &[]),
    ("archive", &[], &[]),
    ("files", &[], &[]),
    ("client", &["archive", "files", "model"], &["embedded"]),
    ("resolver", &["client", "model"], &["embedded"]),
    ("launcher", &["archive", "client", "files", "resolver", "schema", "model"], &[]),
    ("engine", &["files", "model", "schema"], &[]),
    ("apiserver", &["engine", "schema", "model"], &[]),
    ("controllers", &["client", "model"], &["engine", "apiserver"]),
    ("node", &["client", "model"], &["engine", "apiserver"]),
    ("embedded", &["apiserver", "engine", "controllers", "files", "node", "client", "model"], &[]),
    ("longshore", &["client", "resolver", "launcher", "model", "embedded"], &[]),
    ("cli", &["longshore", "embedded", "files"], &[]),
    ("python", &["longshore", "embedded"], &[]),
    ("conformance", &["longshore", "embedded"], &["model", "node"]),
    ("bench", &["longshore", "embedded"], &[]),
];

/// Only this crate may name the transport's types.
const TRANSPORT: (&str, &[&str]) = ("client", &["kube-client", "kube-core", "kube"]);

/// Crates that may use the transport's crates all the same: they measure or judge.
const JUDGES: &[&str] = &["bench", "conformance"];

/// Checks everything; lists every refusal.
pub(crate) fn run() -> Outcome {
    let mut refusals = Vec::new();
    let metadata = output(cargo().args(["metadata", "--format-version=1", "--no-deps"]))?;
    let metadata: Value = serde_json::from_str(&metadata).map_err(|error| error.to_string())?;
    for package in list(&metadata["packages"]) {
        check_edges(package, &mut refusals);
        check_files(package, &mut refusals)?;
        check_cycles(package, &mut refusals)?;
    }
    let sizes = check_sources(&root(), &mut refusals)?;
    examples::check(&root(), &mut refusals)?;
    words::check(&root(), &mut refusals)?;
    conformance::check(&mut refusals);
    if refusals.is_empty() {
        println!("tidy: {sizes}");
        return Ok(());
    }
    Err(format!("tidy refuses:\n- {}", refusals.join("\n- ")))
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn room(package: &str) -> &str {
    package.strip_prefix("longshore-").unwrap_or(package)
}

fn check_edges(package: &Value, refusals: &mut Vec<String>) {
    let name = text(package, "name");
    let from = room(name);
    let row = MAP.iter().find(|(crate_name, ..)| *crate_name == from);
    if row.is_none() && name != "xtask" {
        refusals.push(format!(
            "crate {name} is not on the map: add it to ARCHITECTURE.md and to MAP in xtask/src/tidy.rs"
        ));
    }
    for dependency in list(&package["dependencies"]) {
        let to = text(dependency, "name");
        let of_tests = text(dependency, "kind") == "dev";
        let (keeper, transport) = TRANSPORT;
        if transport.contains(&to) && from != keeper && !of_tests && !JUDGES.contains(&from) {
            refusals.push(format!(
                "{from} uses {to}: only {keeper} may name the transport; go through longshore-client"
            ));
        }
        let local = dependency["path"].is_string();
        let allowed = row.is_some_and(|(_, uses, tests_use)| {
            uses.contains(&room(to)) || (of_tests && tests_use.contains(&room(to)))
        });
        if local && !allowed {
            refusals.push(format!(
                "{from} uses {}: the map has no such edge; move the code to a room that may know both, or change ARCHITECTURE.md and MAP together",
                room(to)
            ));
        }
    }
}

/// No import cycles in its library and programs.
fn check_cycles(package: &Value, refusals: &mut Vec<String>) -> Outcome {
    for target in list(&package["targets"]) {
        let kinds = list(&target["kind"]).filter_map(Value::as_str);
        if kinds
            .into_iter()
            .any(|kind| matches!(kind, "lib" | "bin" | "cdylib" | "rlib"))
        {
            let root = Path::new(text(target, "src_path"));
            cycles::check(text(package, "name"), root, refusals)?;
        }
    }
    Ok(())
}

/// Every crate takes the workspace's lints, and every test file is a target.
fn check_files(package: &Value, refusals: &mut Vec<String>) -> Outcome {
    let manifest = Path::new(text(package, "manifest_path"));
    let name = text(package, "name");
    let contents =
        fs::read_to_string(manifest).map_err(|error| format!("{}: {error}", manifest.display()))?;
    if !contents.contains("[lints]\nworkspace = true") {
        refusals.push(format!(
            "{name} does not take the workspace's lints: add `[lints]`, `workspace = true`"
        ));
    }
    let tests = manifest.with_file_name("tests");
    for path in files(&tests) {
        let compiled =
            list(&package["targets"]).any(|target| Path::new(text(target, "src_path")) == path);
        if is_rust(&path) && !compiled {
            refusals.push(format!(
                "{} is no test target: nothing runs it",
                path.display()
            ));
        }
        check_modules(&path, refusals);
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

/// Every file of a test made of several is one of its modules.
fn check_modules(folder: &Path, refusals: &mut Vec<String>) {
    let Ok(main) = fs::read_to_string(folder.join("main.rs")) else {
        return;
    };
    for path in files(folder) {
        let Some(name) = path.file_stem().and_then(|name| name.to_str()) else {
            continue;
        };
        let is_module = is_rust(&path) || files(&path).any(|file| is_rust(&file));
        let known = name == "main" || main.contains(&format!("mod {name};"));
        if is_module && !known {
            refusals.push(format!(
                "{} is no module of its test: nothing runs it",
                path.display()
            ));
        }
    }
}

/// Every Rust file says what it is for; gives the sizes for people to see.
fn check_sources(root: &Path, refusals: &mut Vec<String>) -> Outcome<String> {
    let files = output(std::process::Command::new("git").current_dir(root).args([
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
        "*.rs",
    ]))?;
    let mut sizes = Vec::new();
    for file in files.lines() {
        let Ok(contents) = fs::read_to_string(root.join(file)) else {
            continue;
        };
        let generated = contents.starts_with("#![no_main]");
        if !contents.starts_with("//!") && !generated {
            refusals.push(format!(
                "{file} does not say what it is for: begin it with a `//!` line"
            ));
        }
        sizes.push((contents.lines().count(), file.to_owned()));
    }
    sizes.sort();
    let median = sizes.get(sizes.len() / 2).map_or(0, |(lines, _)| *lines);
    let (longest, longest_file) = sizes.last().cloned().unwrap_or_default();
    Ok(format!(
        "{} files, median {median} lines, longest {longest} ({longest_file})",
        sizes.len()
    ))
}
