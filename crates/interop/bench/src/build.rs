//! Measures the time to compile a user's program with Longshore and one with kube-rs, and the
//! number of crates that each compiles.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use crate::report::{Failure, Report, median, ratio};

/// Features of `longshore`, each measured alone. The empty one is the client.
const FEATURES: [&str; 6] = ["", "exec", "metrics", "resolver", "launcher", "embedded"];

/// The dependencies of a program with kube-rs for the same objects and connections.
const KUBE_RS: &str = r#"
kube-client = { version = "5", default-features = false, features = ["client", "rustls-tls", "ring", "oidc", "http-proxy", "socks5"] }
k8s-openapi = { version = "0.29", features = ["v1_37"] }
"#;

/// Builds a program for each set of features, from an empty target folder.
pub(crate) fn run(report: &mut Report) -> Result<(), Failure> {
    let peer = Program::new(KUBE_RS)?;
    let (peer_crates, peer_time) = (peer.crates()?, peer.build()?);
    report.figure("kube-rs: crates", peer_crates, "");
    report.figure("kube-rs: time", seconds(peer_time), "");
    let mut client = 0;
    for feature in FEATURES {
        let program = Program::new(&format!(
            "longshore = {{ path = {:?}, features = [{}] }}",
            repository().join("crates/program/longshore"),
            match feature {
                "" => String::new(),
                name => format!("{name:?}"),
            }
        ))?;
        let (crates, time) = (program.crates()?, program.build()?);
        if feature.is_empty() {
            client = crates;
            report.figure("client: crates", crates, "150");
            report.figure("client: time", seconds(time), "90 s");
            report.figure("client: × kube-rs", ratio(time, peer_time), "");
            continue;
        }
        let added = crates.saturating_sub(client);
        report.figure(&format!("{feature}: crates added"), added, "");
        report.figure(&format!("{feature}: time of all"), seconds(time), "");
    }
    Ok(())
}

/// A program with these dependencies, in its own folder.
struct Program(tempfile::TempDir);

impl Program {
    fn new(dependencies: &str) -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        let path = folder.path();
        fs::create_dir(path.join("src"))?;
        fs::write(path.join("src/main.rs"), "fn main() {}\n")?;
        fs::write(
            path.join("Cargo.toml"),
            format!(
                "[package]\nname = \"user\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
                 [dependencies]\n{dependencies}\n[workspace]\n"
            ),
        )?;
        // The versions that Longshore is tested with.
        fs::copy(repository().join("Cargo.lock"), path.join("Cargo.lock"))?;
        let program = Self(folder);
        // This is not included in the measured time.
        program.cargo(&["fetch"])?;
        Ok(program)
    }

    fn cargo(&self, arguments: &[&str]) -> Result<String, Failure> {
        let output = Command::new("cargo")
            .args(arguments)
            .current_dir(self.0.path())
            .env("CARGO_TARGET_DIR", self.target())
            .output()?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            return Err(format!("cargo {arguments:?}: {}\n{why}", output.status).into());
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    fn target(&self) -> PathBuf {
        self.0.path().join("target")
    }

    /// Returns the number of crates that the program compiles, excluding itself.
    fn crates(&self) -> Result<usize, Failure> {
        let format = ["tree", "--edges", "normal,build", "--prefix", "none"];
        let tree = self.cargo(&format)?;
        let names: BTreeSet<&str> = tree
            .lines()
            .map(|line| line.trim_end_matches(" (*)"))
            .collect();
        Ok(names.len() - 1)
    }

    /// Returns the time of a debug build from an empty target folder.
    fn build(&self) -> Result<Duration, Failure> {
        let time = median(1, || self.cargo(&["build", "--offline"]).map(drop))?;
        fs::remove_dir_all(self.target())?;
        Ok(time)
    }
}

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.."))
}

fn seconds(time: Duration) -> String {
    format!("{:.0} s", time.as_secs_f64())
}
