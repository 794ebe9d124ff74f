//! `cargo xtask e2e`: runs the Kubernetes conformance tests on the embedded cluster. They are
//! built from the Go module of Kubernetes, as is agnhost, the program of most of their images.
//! Counts the results by special interest group; a run of all tests writes docs/e2e.md.

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

/// Which tests to run.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Run only the tests of a special interest group, for example api-machinery; default: all.
    #[arg(long)]
    sig: Option<String>,
    /// Number of parallel tests. Serial tests run one at a time.
    #[arg(long, default_value_t = 8)]
    procs: usize,
    /// Run no tests: generate the table from the last complete run, for example after a change
    /// of the causes.
    #[arg(long, conflicts_with_all = ["sig", "focus", "procs"])]
    report: bool,
    /// Run only tests whose name matches this regular expression.
    focus: Option<String>,
}

/// Images whose program is agnhost.
const AGNHOST: &str = "registry.k8s.io/e2e-test-images/agnhost";

/// A folder with the program of the images. All users can read it, as containers run as
/// different users.
struct Images(tempfile::TempDir);

/// The entrypoint of the image; without arguments it runs `agnhost pause`.
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

/// Runs the tests. The error names the failed tests without a known cause.
pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let causes = Causes::read()?;
    let all = arguments.sig.is_none() && arguments.focus.is_none();
    let file = if all { "e2e.json" } else { "e2e-part.json" };
    let report = target().join(file);
    if !arguments.report {
        // If this run wrote no report, the report of an earlier run would be counted.
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
            "tests failed without a known cause in {}:\n  {}",
            causes::FILE,
            unexplained.join("\n  ")
        )),
    }
}

/// Runs the tests. ginkgo writes the report to this file in cargo's target folder.
fn test(arguments: &Arguments, file: &str) -> Outcome {
    packages::require_go()?;
    kubernetes::build_tests()?;
    let programs = kubernetes::programs();
    let images = Images::new(&programs.join("agnhost"))?;
    let entrypoint = format!("{AGNHOST}={}", images.agnhost().display());
    let cluster = Embedded::start(&["--image-entrypoint".to_owned(), entrypoint])?;
    let sig = arguments.sig.as_deref().unwrap_or(r"[a-z-]+");
    let focus = arguments.focus.as_deref().unwrap_or("");
    let mut tests = Command::new(programs.join("ginkgo"));
    tests
        .args(["run", "--label-filter=Conformance", "--timeout=8h"])
        .args(["--silence-skips", "--no-color", "--keep-going"])
        .arg(format!("--procs={}", arguments.procs))
        .arg(format!(r"--focus=\[sig-{sig}\].*({focus})"))
        .arg(format!("--output-dir={}", target().display()))
        .arg(format!("--json-report={file}"))
        .arg(programs.join("e2e.test"))
        .arg("--")
        .arg(format!("--kubeconfig={}", cluster.kubeconfig().display()))
        .args(["--provider=skeleton", "--allowed-not-ready-nodes=-1"])
        .env("KUBECTL_PATH", programs.join("kubectl"));
    // ginkgo exits with an error if tests failed; the caller reads the failures from the report.
    (tests.status())
        .map(drop)
        .map_err(|error| format!("cannot run ginkgo: {error}"))
}
