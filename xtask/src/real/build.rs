//! `cargo xtask real-apiserver`: builds kube-apiserver from Debian's source package.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use super::{Release, cache, shown, sources};
use crate::{
    packages::{self, find},
    run::{Outcome, output, run_command},
};

/// Requirements: each is a program or a folder, and its Debian package.
#[rustfmt::skip]
const REQUIRED: &[(&str, &str)] = &[
    ("go", "golang-go"), ("make", "make"), ("rsync", "rsync"), ("jq", "jq"),
    ("dpkg-source", "dpkg-dev"), ("etcd", "etcd-server"), ("openssl", "openssl"), ("curl", "curl"),
    (REFLECT2, "golang-github-modern-go-reflect2-dev"),
];

/// Debian's separate package of reflect2. With the copy in the Kubernetes package, a server that
/// Go 1.18 or later builds crashes.
const REFLECT2: &str = "/usr/share/gocode/src/github.com/modern-go/reflect2";

/// The programs to build.
const PROGRAMS: [&str; 3] = [
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
];

/// Builds the programs if they do not exist.
pub(crate) fn run() -> Outcome {
    let done = Release::Old.programs().join("kube-apiserver");
    if done.is_file() {
        println!("real-apiserver: {} already exists", shown(&done));
        return Ok(());
    }
    let begin = Instant::now();
    if find("apt-get").is_none() {
        return Err(
            "kube-apiserver is built from Debian's source package, which requires apt-get: \
             build it on another machine and set LONGSHORE_REAL_APISERVER to its folder"
                .into(),
        );
    }
    step(1, "installing the build tools");
    packages::install(REQUIRED)?;
    let work = cache().join("work");
    if work.exists() {
        remove(&work)?;
    }
    create_folder(&work)?;
    let tree = download(&work)?;
    replace_reflect2(&tree)?;
    compile(&tree)?;
    step(5, "copying the programs");
    let bin = cache().join("bin");
    create_folder(&bin)?;
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

fn create_folder(path: &Path) -> Outcome {
    fs::create_dir_all(path).map_err(|error| problem("create", path, &error))
}

fn remove(path: &Path) -> Outcome {
    fs::remove_dir_all(path).map_err(|error| problem("remove", path, &error))
}

/// Downloads and extracts the source package. apt checks the signatures of the archive.
fn download(work: &Path) -> Outcome<PathBuf> {
    step(2, "downloading the source package");
    let parts = work.join("sources");
    create_folder(&parts)?;
    if write_sources(&parts)? == 0 {
        return Err("/etc/apt has no package sources: add those of Debian".into());
    }
    for folder in ["lists/partial", "archives/partial"] {
        create_folder(&work.join("apt").join(folder))?;
    }
    let apt = work.join("apt");
    let options = [
        "Dir::Etc::SourceList=/dev/null".to_owned(),
        format!("Dir::Etc::SourceParts={}", shown(&parts)),
        format!("Dir::State::Lists={}", shown(&apt.join("lists"))),
        format!("Dir::Cache={}", shown(&apt)),
        "APT::Sandbox::User=root".to_owned(),
    ];
    let get = |args: &[&str]| {
        let mut command = Command::new("apt-get");
        command.current_dir(work).args(args);
        command.args(options.iter().flat_map(|option| ["-o", option]));
        command
    };
    run_command(&mut get(&["--quiet", "update"]))?;
    run_command(&mut get(&[
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
    run_command(
        Command::new("dpkg-source")
            .arg("--extract")
            .arg(description)
            .arg(&tree),
    )?;
    Ok(tree)
}

/// Writes the package sources of this machine, changed to source packages. Returns the number
/// of files.
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

fn replace_reflect2(tree: &Path) -> Outcome {
    step(3, "replacing the vendored reflect2 with Debian's");
    let vendored = tree.join("vendor/github.com/modern-go/reflect2");
    if vendored.exists() {
        remove(&vendored)?;
    }
    // The files of the package are symbolic links to files of other packages.
    run_command(Command::new("cp").args(["-rL", REFLECT2]).arg(&vendored))
}

fn compile(tree: &Path) -> Outcome {
    step(4, "compiling: about five minutes on two cores");
    let path = tree.join(".go/src/k8s.io");
    create_folder(&path)?;
    let link = path.join("kubernetes");
    std::os::unix::fs::symlink(tree, &link).map_err(|error| problem("link", &link, &error))?;
    let what: Vec<String> = PROGRAMS.iter().map(|name| format!("cmd/{name}")).collect();
    run_command(
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
