//! Google Cloud Storage: a server that checks tokens and signed URLs, in Node.js. Google's
//! emulators do not support what clients of the XML API use: uploads with a token, and in parts.

use std::{fs, path::PathBuf};

use crate::{
    checks,
    process::{Emulator, script},
    server::{BUCKET, Server},
};

pub(crate) struct Google(Emulator);

impl Google {
    /// Starts a server with one bucket, which creates the key file of a service account.
    fn start() -> Self {
        Self(Emulator::start(|folder| {
            let mut command = script("google_storage.js");
            command.arg(folder).arg(BUCKET);
            command
        }))
    }

    fn key_file(&self) -> PathBuf {
        self.0.folder().join("key.json")
    }

    /// The IDs of uploads that are neither complete nor aborted.
    fn uploads(&self) -> usize {
        let folder = self.0.folder().join("uploads");
        fs::read_dir(folder).unwrap().count()
    }
}

impl Server for Google {
    fn scheme(&self) -> &'static str {
        "gs"
    }

    fn settings(&self) -> Vec<(String, String)> {
        let endpoint = self.0.url();
        let key = self.key_file().display().to_string();
        [
            ("GOOGLE_BASE_URL", endpoint),
            ("GOOGLE_SERVICE_ACCOUNT", key),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    fn secrets(&self) -> Vec<String> {
        let key = fs::read_to_string(self.key_file()).unwrap();
        let key: serde_json::Value = serde_json::from_str(&key).unwrap();
        let key = key["private_key"].as_str().unwrap();
        let line = key.lines().nth(1).unwrap();
        [line, "X-Goog-Signature", "Bearer "]
            .map(str::to_owned)
            .into()
    }

    fn put(&self, key: &str, content: &[u8]) {
        let file = key.replace('/', "%2F").replace(' ', "%20");
        fs::write(self.0.folder().join("objects").join(file), content).unwrap();
    }

    fn objects(&self) -> Vec<(String, usize)> {
        let files = fs::read_dir(self.0.folder().join("objects")).unwrap();
        let of_file = |file: fs::DirEntry| {
            let name = file.file_name().into_string().unwrap();
            let size = usize::try_from(file.metadata().unwrap().len()).unwrap();
            (name.replace("%2F", "/"), size)
        };
        files.map(|file| of_file(file.unwrap())).collect()
    }

    fn emulator(&self) -> &Emulator {
        &self.0
    }
}

#[test]
#[ignore = "cargo xtask test --stores"]
fn code_and_outputs_are_uploaded_fetched_and_removed() {
    checks::code_and_outputs(&Google::start());
}

#[test]
#[ignore = "cargo xtask test --stores"]
fn a_killed_upload_resumes_and_damage_is_found() {
    let google = Google::start();
    checks::resumed_upload(&google);
    assert_eq!(google.uploads(), 0);
}

#[test]
#[ignore = "cargo xtask test --stores"]
fn an_interrupted_upload_is_aborted() {
    let google = Google::start();
    checks::interrupted_upload(&google);
    assert_eq!(google.uploads(), 0);
}

#[test]
#[ignore = "cargo xtask test --stores"]
fn data_of_a_bucket_is_mounted() {
    checks::data(&Google::start(), "b/d e.bin");
}

#[test]
#[ignore = "cargo xtask test --stores"]
fn refusals_name_the_cause_and_the_remedy() {
    let google = Google::start();
    // The key of another server.
    let other = Google::start();
    let file = other.key_file().display().to_string();
    let wrong = [("GOOGLE_SERVICE_ACCOUNT", file.as_str())];
    let denied = ["denies access: InvalidSecurity", "GOOGLE_SERVICE_ACCOUNT"];
    checks::refused(&google, &wrong, BUCKET, &denied);
    let missing = "the store gs://no-such-bucket/team does not exist: NoSuchBucket";
    checks::refused(&google, &[], "no-such-bucket", &[missing, "create"]);
    let unreachable = [("GOOGLE_BASE_URL", "http://127.0.0.1:9")];
    let remedy = "check the network, and GOOGLE_BASE_URL";
    checks::refused(&google, &unreachable, BUCKET, &[remedy]);
}
