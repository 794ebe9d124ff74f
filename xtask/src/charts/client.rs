//! helm and kubectl on the embedded cluster of a test.

use std::{
    cell::RefCell,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::{
    kubernetes,
    run::{Outcome, output},
};

/// An upper bound for what a chart does on a busy machine, in the format of helm and kubectl.
pub(super) const TIMEOUT: &str = "--timeout=180s";

/// An upper bound for a condition that is polled.
const POLL_TIMEOUT: Duration = Duration::from_secs(180);

/// The interval at which a condition is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The programs, with their own folder.
pub(super) struct Client {
    kubectl: PathBuf,
    kubeconfig: PathBuf,
    folder: tempfile::TempDir,
    passed: RefCell<Vec<String>>,
}

impl Client {
    pub(super) fn new(kubectl: PathBuf, kubeconfig: &Path) -> Outcome<Self> {
        Ok(Self {
            kubectl,
            kubeconfig: kubeconfig.to_owned(),
            folder: tempfile::tempdir().map_err(|error| error.to_string())?,
            passed: RefCell::default(),
        })
    }

    /// The working directory of the programs.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Records a check for the page.
    pub(super) fn pass(&self, what: &str) {
        println!("passed: {what}");
        self.passed.borrow_mut().push(what.to_owned());
    }

    pub(super) fn passed(&self) -> Vec<String> {
        self.passed.borrow().clone()
    }

    pub(super) fn helm(&self, arguments: &[&str]) -> Outcome<String> {
        output(&mut self.command(&kubernetes::programs().join("helm"), arguments))
    }

    pub(super) fn kubectl(&self, arguments: &[&str]) -> Outcome<String> {
        output(&mut self.command(&self.kubectl, arguments))
    }

    /// Runs kubectl, which must fail; returns its message.
    pub(super) fn refused(&self, arguments: &[&str]) -> Outcome<String> {
        match self.kubectl(arguments) {
            Ok(text) => Err(format!("kubectl {arguments:?} did not fail: {text}")),
            Err(message) => Ok(message),
        }
    }

    /// Reads a field of an object with a template of Go.
    pub(super) fn field(&self, object: &[&str], template: &str) -> Outcome<String> {
        let template = format!("--output=go-template={template}");
        self.kubectl(&[&["get"], object, &[template.as_str()]].concat())
    }

    /// Waits until kubectl prints the expected text for a field.
    pub(super) fn wait_for(&self, object: &[&str], template: &str, expected: &str) -> Outcome {
        self.poll(&format!("{object:?} {template} is {expected}"), || {
            self.field(object, template)
                .is_ok_and(|found| found == expected)
        })
    }

    pub(super) fn poll(&self, what: &str, mut is_true: impl FnMut() -> bool) -> Outcome {
        let begin = Instant::now();
        while !is_true() {
            if begin.elapsed() > POLL_TIMEOUT {
                return Err(format!("timed out: {what}"));
            }
            thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Writes a file into the working directory.
    pub(super) fn write(&self, name: &str, text: &str) -> Outcome {
        let path = self.folder().join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Runs openssl with a text as its standard input.
    pub(super) fn openssl(&self, arguments: &[&str], input: &str) -> Outcome<String> {
        let failed = |error: std::io::Error| format!("cannot run openssl: {error}");
        let mut openssl = Command::new("openssl");
        openssl.args(arguments).current_dir(self.folder());
        openssl.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = openssl.stderr(Stdio::piped()).spawn().map_err(failed)?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input.as_bytes()).map_err(failed)?;
        }
        let done = child.wait_with_output().map_err(failed)?;
        let text = String::from_utf8_lossy(&done.stdout).trim().to_owned();
        match done.status.success() {
            true => Ok(text),
            false => Err(format!(
                "openssl {arguments:?}: {text}{}",
                String::from_utf8_lossy(&done.stderr)
            )),
        }
    }

    /// The pods and warnings of the cluster, for an error.
    pub(super) fn describe_state(&self) -> String {
        let pods = self.kubectl(&["get", "pods", "--all-namespaces"]);
        let warnings = ["get", "events", "-A", "--field-selector=type=Warning"];
        let warnings = self.kubectl(&warnings);
        format!(
            "{}{}",
            pods.unwrap_or_default(),
            warnings.unwrap_or_default()
        )
    }

    fn command(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(self.folder())
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HELM_CACHE_HOME", self.folder().join("helm/cache"))
            .env("HELM_CONFIG_HOME", self.folder().join("helm/config"))
            .env("HELM_DATA_HOME", self.folder().join("helm/data"));
        command
    }
}

/// Fails if the text of a program lacks a part.
pub(super) fn expect(text: &str, part: &str) -> Outcome {
    match text.contains(part) {
        true => Ok(()),
        false => Err(format!("{part:?} is missing in:\n{text}")),
    }
}
