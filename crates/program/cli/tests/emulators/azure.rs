//! Azure Blob Storage: Azurite.

use std::{
    io::Write as _,
    path::PathBuf,
    process::{Command, Stdio},
};

use crate::{
    checks,
    process::{Emulator, script},
    server::{BUCKET, Server},
};

const ACCOUNT: &str = "accountoftests";
/// "hush-not-for-eyes" in base64.
const KEY: &str = "aHVzaC1ub3QtZm9yLWV5ZXM=";

pub(crate) struct Azurite(Emulator);

impl Azurite {
    /// Starts an emulator with one container.
    fn start() -> Self {
        let installed = std::env::var_os("LONGSHORE_TEST_AZURITE");
        let installed = installed.expect("`cargo xtask test --stores` runs this");
        let program = "node_modules/azurite/dist/src/blob/main.js";
        let azurite = Self(Emulator::start(|folder| {
            let mut command = Command::new("node");
            command
                .arg(PathBuf::from(installed).join(program))
                .args(["--blobHost", "127.0.0.1", "--blobPort", "0"])
                .args(["--disableTelemetry", "--location"])
                .arg(folder)
                .env("AZURITE_ACCOUNTS", format!("{ACCOUNT}:{KEY}"));
            command
        }));
        azurite.request(&["create"], b"");
        azurite
    }

    /// Sends a request with the key of the account; returns the output of the script.
    fn request(&self, words: &[&str], content: &[u8]) -> String {
        let mut child = script("azure_blob.js")
            .args([&self.0.port().to_string(), ACCOUNT, BUCKET])
            .args(words)
            .env("AZURE_STORAGE_ACCOUNT_KEY", KEY)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(content).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{words:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Server for Azurite {
    fn scheme(&self) -> &'static str {
        "az"
    }

    fn settings(&self) -> Vec<(String, String)> {
        let endpoint = format!("{}/{ACCOUNT}", self.0.url());
        let settings = [
            ("AZURE_STORAGE_ENDPOINT", endpoint.as_str()),
            ("AZURE_ALLOW_HTTP", "true"),
            ("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT),
            ("AZURE_STORAGE_ACCOUNT_KEY", KEY),
        ];
        settings
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into()
    }

    fn secrets(&self) -> Vec<String> {
        [KEY, "sig=", "SharedKey "].map(str::to_owned).into()
    }

    fn put(&self, key: &str, content: &[u8]) {
        self.request(&["put", key], content);
    }

    fn objects(&self) -> Vec<(String, usize)> {
        let list = self.request(&["list"], b"");
        let objects = list.lines().map(|line| line.split_once(' ').unwrap());
        objects
            .map(|(size, key)| (key.to_owned(), size.parse().unwrap()))
            .collect()
    }

    fn emulator(&self) -> &Emulator {
        &self.0
    }
}

#[test]
#[ignore = "cargo xtask test --stores"]
fn code_and_outputs_are_uploaded_fetched_and_removed() {
    checks::code_and_outputs(&Azurite::start());
}

#[test]
#[ignore = "cargo xtask test --stores"]
fn a_killed_upload_resumes_and_damage_is_found() {
    checks::resumed_upload(&Azurite::start());
}

#[test]
#[ignore = "cargo xtask test --stores"]
fn data_of_a_container_is_mounted() {
    // URLs of names with other characters are refused: see docs/inputs.md.
    checks::data(&Azurite::start(), "b/d-e_~1.bin");
}

#[test]
#[ignore = "cargo xtask test --stores"]
fn refusals_name_the_cause_and_the_remedy() {
    let azurite = Azurite::start();
    let wrong = ("AZURE_STORAGE_ACCOUNT_KEY", "aHVzaC13cm9uZw==");
    let denied = "denies access: AuthorizationFailure";
    checks::refused(&azurite, &[wrong], BUCKET, &[denied, wrong.0]);
    let missing = "the store az://no-such-container/team does not exist: ";
    checks::refused(&azurite, &[], "no-such-container", &[missing, "create"]);
    let plain = [("AZURE_ALLOW_HTTP", "false")];
    checks::refused(&azurite, &plain, BUCKET, &["set AZURE_ALLOW_HTTP=true"]);
    let endpoint = "http://127.0.0.1:9/accountoftests";
    let unreachable = [("AZURE_STORAGE_ENDPOINT", endpoint)];
    let remedy = "AZURE_STORAGE_ENDPOINT and the network";
    checks::refused(&azurite, &unreachable, BUCKET, &[remedy]);
}
