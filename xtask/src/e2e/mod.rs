//! `cargo xtask e2e`: Kubernetes' own conformance tests judge the embedded cluster. They are
//! built from its Go module, as is agnhost, the program of most of their images. Counts what
//! passes by special interest group; a run of all of them writes docs/e2e.md.

mod causes;
mod report;
mod table;

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use causes::Causes;

use crate::{
    embedded::Embedded,
    kubernetes, packages,
    run::{Outcome, root, target},
};

/// Which tests.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only those of a special interest group, as api-machinery; all of them without.
    #[arg(long)]
    sig: Option<String>,
    /// How many run at a time, except those that need the cluster for themselves.
    #[arg(long, default_value_t = 8)]
    procs: usize,
    /// Run none: write the table again from the last run of all, as after a change of the
    /// causes.
    #[arg(long, conflicts_with_all = ["sig", "focus", "procs"])]
    report: bool,
    /// Only those whose name matches this regular expression.
    focus: Option<String>,
}

/// Images whose program is agnhost.
const AGNHOST: &str = "registry.k8s.io/e2e-test-images/agnhost";

/// A folder with the images' program, that every user can read: containers run as others, too.
struct Images(tempfile::TempDir);

/// What the image runs: without arguments it waits.
const ENTRYPOINT: &str =
    "#!/bin/sh\n[ $# -gt 0 ] || set -- pause\nexec \"${0%/*}/program\" \"$@\"\n";

impl Images {
    fn new(agnhost: &Path) -> Outcome<Self> {
        let make = || -> std::io::Result<Self> {
            let folder = tempfile::tempdir()?;
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o755))?;
            let images = Self(folder);
            fs::copy(agnhost, images.0.path().join("program"))?;
            fs::write(images.agnhost(), ENTRYPOINT)?;
            fs::set_permissions(images.agnhost(), fs::Permissions::from_mode(0o755))?;
            Ok(images)
        };
        make().map_err(|error| format!("cannot copy {}: {error}", agnhost.display()))
    }

    fn agnhost(&self) -> PathBuf {
        self.0.path().join("agnhost")
    }
}

/// Runs the tests. An error names those that fail without a known cause.
pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let causes = Causes::read()?;
    let all = arguments.sig.is_none() && arguments.focus.is_none();
    let file = if all { "e2e.json" } else { "e2e-part.json" };
    let report = target().join(file);
    if !arguments.report {
        // What an earlier run left would be counted when this one writes no report.
        match fs::remove_file(&report) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(format!("{}: {error}", report.display()));
            }
            _ => test(arguments, file)?,
        }
    }
    let groups = report::read(&report)?;
    let mut unexplained = Vec::new();
    for (name, group) in &groups {
        for (test, message) in &group.failed {
            println!("failed: [{name}] {test}: {message}");
            if causes.of(test).is_none() {
                unexplained.push(test.as_str());
            }
        }
    }
    for (name, group) in &groups {
        println!("{name}: {} of {} passed", group.passed.len(), group.count());
    }
    if all {
        let path = root().join("docs/e2e.md");
        fs::write(&path, table::render(&groups, &causes))
            .map_err(|error| format!("{}: {error}", path.display()))?;
        println!("wrote {}", path.display());
    }
    match unexplained.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "these failed, and {} has no cause for them:\n  {}",
            causes::FILE,
            unexplained.join("\n  ")
        )),
    }
}

/// Runs the tests; ginkgo writes the report to this file, in cargo's target folder.
fn test(arguments: &Arguments, file: &str) -> Outcome {
    packages::require_go()?;
    kubernetes::build_tests()?;
    let programs = kubernetes::programs();
    let images = Images::new(&programs.join("agnhost"))?;
    let entrypoint = format!("{AGNHOST}={}", images.agnhost().display());
    let cluster = Embedded::start(&["--image-entrypoint".to_owned(), entrypoint])?;
    let sig = arguments.sig.as_deref().unwrap_or(r"[a-z-]+");
    let words = arguments.focus.as_deref().unwrap_or("");
    let mut tests = Command::new(programs.join("ginkgo"));
    tests
        .args(["run", "--label-filter=Conformance", "--timeout=8h"])
        .args(["--silence-skips", "--no-color", "--keep-going"])
        .arg(format!("--procs={}", arguments.procs))
        .arg(format!(r"--focus=\[sig-{sig}\].*({words})"))
        .arg(format!("--output-dir={}", target().display()))
        .arg(format!("--json-report={file}"))
        .arg(programs.join("e2e.test"))
        .arg("--")
        .arg(format!("--kubeconfig={}", cluster.kubeconfig().display()))
        .args(["--provider=skeleton", "--allowed-not-ready-nodes=-1"])
        .env("KUBECTL_PATH", programs.join("kubectl"));
    // Its status says that tests failed: they are counted by the caller.
    (tests.status())
        .map(drop)
        .map_err(|error| format!("cannot run ginkgo: {error}"))
}
