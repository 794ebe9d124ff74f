//! `cargo xtask real-apiserver`: builds it from Debian's source package.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use super::{Release, cache, shown, sources};
use crate::{
    packages::{self, find},
    run::{Outcome, finish, output},
};

/// What is needed: a program or a folder, and the package it comes in.
#[rustfmt::skip]
const NEEDED: &[(&str, &str)] = &[
    ("go", "golang-go"), ("make", "make"), ("rsync", "rsync"), ("jq", "jq"),
    ("dpkg-source", "dpkg-dev"), ("etcd", "etcd-server"), ("openssl", "openssl"), ("curl", "curl"),
    (REFLECT2, "golang-github-modern-go-reflect2-dev"),
];

/// The package's own copy of it crashes the server when built by a Go of 1.18
/// or later; Debian's separate one does not.
const REFLECT2: &str = "/usr/share/gocode/src/github.com/modern-go/reflect2";

/// What is built.
const PROGRAMS: [&str; 3] = [
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
];

/// Builds what is not there yet.
pub(crate) fn run() -> Outcome {
    let done = Release::Old.programs().join("kube-apiserver");
    if done.is_file() {
        println!("real-apiserver: {} is there already", shown(&done));
        return Ok(());
    }
    let begin = Instant::now();
    if find("apt-get").is_none() {
        return Err(
            "the real kube-apiserver is built from Debian's source package, and this \
                    machine has no apt-get: build it elsewhere and name its folder in \
                    LONGSHORE_REAL_APISERVER"
                .into(),
        );
    }
    step(1, "looking for the tools");
    packages::install(NEEDED)?;
    let work = cache().join("work");
    if work.exists() {
        remove(&work)?;
    }
    make_folder(&work)?;
    let tree = download(&work)?;
    repair(&tree)?;
    compile(&tree)?;
    step(5, "keeping the programs");
    let bin = cache().join("bin");
    make_folder(&bin)?;
    for program in PROGRAMS {
        let built = tree.join("_output/bin").join(program);
        fs::copy(&built, bin.join(program)).map_err(|error| problem("copy", &built, &error))?;
    }
    remove(&work)?;
    println!(
        "real-apiserver: {} (took {} s)",
        shown(&bin),
        begin.elapsed().as_secs()
    );
    Ok(())
}

fn step(number: u32, what: &str) {
    println!("[{number}/5] {what}");
}

fn problem(what: &str, path: &Path, error: &std::io::Error) -> String {
    format!("cannot {what} {}: {error}", shown(path))
}

fn make_folder(path: &Path) -> Outcome {
    fs::create_dir_all(path).map_err(|error| problem("make the folder", path, &error))
}

fn remove(path: &Path) -> Outcome {
    fs::remove_dir_all(path).map_err(|error| problem("remove", path, &error))
}

/// Gets the source package, checked against the archive's signatures.
fn download(work: &Path) -> Outcome<PathBuf> {
    step(2, "downloading the source package");
    let parts = work.join("sources");
    make_folder(&parts)?;
    if write_sources(&parts)? == 0 {
        return Err("no package sources are set up in /etc/apt: add Debian's".into());
    }
    for folder in ["lists/partial", "archives/partial"] {
        make_folder(&work.join("apt").join(folder))?;
    }
    let apt = work.join("apt");
    let options = [
        "Dir::Etc::SourceList=/dev/null".to_owned(),
        format!("Dir::Etc::SourceParts={}", shown(&parts)),
        format!("Dir::State::Lists={}", shown(&apt.join("lists"))),
        format!("Dir::Cache={}", shown(&apt)),
        "APT::Sandbox::User=root".to_owned(),
    ];
    let get = |words: &[&str]| {
        let mut command = Command::new("apt-get");
        command.current_dir(work).args(words);
        command.args(options.iter().flat_map(|option| ["-o", option]));
        command
    };
    finish(&mut get(&["--quiet", "update"]))?;
    finish(&mut get(&[
        "--quiet",
        "source",
        "--download-only",
        "kubernetes",
    ]))?;
    let entries = fs::read_dir(work).map_err(|error| problem("read", work, &error))?;
    let description = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|kind| kind == "dsc"))
        .ok_or("apt-get downloaded no source package `kubernetes`")?;
    let tree = work.join("tree");
    finish(
        Command::new("dpkg-source")
            .arg("--extract")
            .arg(description)
            .arg(&tree),
    )?;
    Ok(tree)
}

/// Writes the machine's sources, as ones of source packages; says how many
/// files.
fn write_sources(parts: &Path) -> Outcome<usize> {
    let mut files = vec![PathBuf::from("/etc/apt/sources.list")];
    let more = fs::read_dir("/etc/apt/sources.list.d");
    files.extend(
        more.into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path())),
    );
    let mut written = 0;
    for file in files {
        let Ok(text) = fs::read_to_string(&file) else {
            continue;
        };
        let (kind, text) = match file.extension().and_then(|kind| kind.to_str()) {
            Some("sources") => ("sources", sources::stanzas(&text)),
            Some("list") => ("list", sources::lines(&text)),
            _ => continue,
        };
        if text.trim().is_empty() {
            continue;
        }
        let path = parts.join(format!("{written}.{kind}"));
        fs::write(&path, text).map_err(|error| problem("write", &path, &error))?;
        written += 1;
    }
    Ok(written)
}

fn repair(tree: &Path) -> Outcome {
    step(3, "replacing the vendored reflect2 by Debian's");
    let vendored = tree.join("vendor/github.com/modern-go/reflect2");
    if vendored.exists() {
        remove(&vendored)?;
    }
    // Its files are links into other packages.
    finish(Command::new("cp").args(["-rL", REFLECT2]).arg(&vendored))
}

fn compile(tree: &Path) -> Outcome {
    step(4, "compiling: about five minutes on two cores");
    let path = tree.join(".go/src/k8s.io");
    make_folder(&path)?;
    let link = path.join("kubernetes");
    std::os::unix::fs::symlink(tree, &link).map_err(|error| problem("link", &link, &error))?;
    let what: Vec<String> = PROGRAMS.iter().map(|name| format!("cmd/{name}")).collect();
    finish(
        Command::new("make")
            .current_dir(&link)
            .arg(format!("WHAT={}", what.join(" ")))
            .env("PWD", &link)
            .env("GOPATH", tree.join(".go"))
            .env("GO111MODULE", "off")
            .env("CGO_ENABLED", "0"),
    )?;
    let version = output(Command::new(tree.join("_output/bin/kube-apiserver")).arg("--version"))?;
    println!("      {}", version.trim());
    Ok(())
}
