//! rclone, if it is installed, with the object store of the benchmark.

use std::{
    ffi::OsStr,
    process::{Command, Stdio},
};

use super::s3::S3;

/// The number of files that are copied at the same time: more than rclone's default of 4, which
/// is slower for small files.
const TRANSFERS: &str = "16";

pub(super) struct Rclone {
    version: String,
    variables: Vec<(String, String)>,
}

impl Rclone {
    /// `None` if it is not installed.
    pub(super) fn find(store: &S3) -> Option<Self> {
        let mut command = Command::new("rclone");
        let output = command.arg("version").stderr(Stdio::null()).output().ok()?;
        let output = String::from_utf8_lossy(&output.stdout);
        let version = output.lines().next()?.to_owned();
        let setting = |name: &str| {
            let mut settings = store.settings().into_iter();
            settings.find_map(|(key, value)| (key == name).then_some(value))
        };
        let options = [
            ("TYPE", "s3".to_owned()),
            ("PROVIDER", "Other".to_owned()),
            ("FORCE_PATH_STYLE", "true".to_owned()),
            ("ENV_AUTH", "false".to_owned()),
            ("NO_CHECK_BUCKET", "true".to_owned()),
            ("REGION", setting("AWS_REGION")?),
            ("ENDPOINT", setting("AWS_ENDPOINT_URL")?),
            ("ACCESS_KEY_ID", setting("AWS_ACCESS_KEY_ID")?),
            ("SECRET_ACCESS_KEY", setting("AWS_SECRET_ACCESS_KEY")?),
        ];
        let variables = options
            .into_iter()
            .map(|(name, value)| (format!("RCLONE_CONFIG_BENCH_{name}"), value));
        Some(Self {
            version,
            variables: variables.collect(),
        })
    }

    pub(super) fn name(&self) -> String {
        format!("{}, {TRANSFERS} transfers", self.version)
    }

    /// The command that copies a folder to the store, or back.
    pub(super) fn copy(&self, folder: &OsStr, prefix: &str, is_upload: bool) -> Command {
        // Without the slash, rclone first requests an object of this name. The store responds to
        // this with an error, and rclone tries again for 90 s.
        let remote = format!("bench:{prefix}/");
        let mut ends = [folder, OsStr::new(&remote)];
        if !is_upload {
            ends.reverse();
        }
        let mut command = Command::new("rclone");
        command
            .args(["copy", "--transfers", TRANSFERS, "--checkers", TRANSFERS])
            // Ignores the user's configuration.
            .args(["--config", "/dev/null"])
            .args(ends)
            // The store has no TLS, and rclone's own transport refuses this variable.
            .env_remove("AWS_CA_BUNDLE")
            .envs(self.variables.iter().cloned());
        command
    }
}
