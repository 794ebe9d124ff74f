//! Locates the frameworks that `cargo xtask test --frameworks` installed.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;

/// A Python with a framework: `tensorflow`, `pytorch` or `jax`.
pub(crate) fn environment(framework: &str) -> PathBuf {
    let folder = std::env::var_os("LONGSHORE_TEST_FRAMEWORKS");
    let folder = folder.expect("`cargo xtask test --frameworks` runs this");
    PathBuf::from(folder).join(framework)
}

/// Runs a script of the `readers` folder with `question` on standard input; returns its output.
pub(crate) fn ask(framework: &str, script: &str, question: &Value) -> Value {
    let readers = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/frameworks/readers");
    let mut child = Command::new(environment(framework).join("bin/python3"))
        .arg(readers.join(script))
        .env("PYTHONPATH", environment("launchers"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(question.to_string().as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    let answer = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&answer).unwrap_or_else(|_| {
        let errors = String::from_utf8_lossy(&output.stderr);
        panic!("{script} printed {answer:?}\n{errors}")
    })
}
