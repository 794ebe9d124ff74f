//! Runs the `longshore` program and its cluster in a temporary folder.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use tempfile::TempDir;

use crate::report::Failure;

/// A temporary folder with a cluster. Dropping it stops the cluster.
pub(crate) struct Instance {
    folder: TempDir,
}

impl Instance {
    /// Creates the folder. No cluster runs yet.
    pub(crate) fn new() -> Result<Self, Failure> {
        Ok(Self {
            folder: tempfile::tempdir()?,
        })
    }

    /// The path of the kubeconfig.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// The folder, for files of the benchmark.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The command `longshore` with these arguments, for this instance.
    pub(crate) fn command(&self, arguments: &[&str]) -> Result<Command, Failure> {
        let mut command = Command::new(binary()?);
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env("LONGSHORE_DATA_DIR", self.folder.path().join("data"))
            .stdin(Stdio::null());
        Ok(command)
    }

    /// A shell script in the folder of this instance, with `longshore` on its PATH.
    pub(crate) fn shell(&self, script: &str) -> Result<Command, Failure> {
        let binary = binary()?;
        let folder = binary.parent().ok_or("the program has no folder")?;
        let mut path = folder.as_os_str().to_owned();
        path.push(":");
        path.push(env::var_os("PATH").unwrap_or_default());
        let mut command = Command::new("sh");
        command
            .args(["-e", "-c", script])
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.folder.path())
            .env("LONGSHORE_DATA_DIR", self.folder.path().join("data"))
            .stdin(Stdio::null());
        Ok(command)
    }

    /// Runs `longshore` with these arguments for this instance until it exits.
    pub(crate) fn longshore(&self, arguments: &[&str]) -> Result<Output, Failure> {
        let output = self.command(arguments)?.output()?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            return Err(format!("longshore {arguments:?}: {}\n{why}", output.status).into());
        }
        Ok(output)
    }

    /// Starts the cluster and waits until it is ready.
    pub(crate) fn up(&self, more: &[&str]) -> Result<(), Failure> {
        let kubeconfig = self.kubeconfig();
        let kubeconfig = kubeconfig
            .to_str()
            .ok_or("the temporary folder's name is not UTF-8")?;
        self.longshore(&[&["up", "--kubeconfig", kubeconfig], more].concat())
            .map(drop)
    }

    /// Stops the cluster, and the runs that are still active.
    pub(crate) fn down(&self) -> Result<(), Failure> {
        self.longshore(&["down", "--force"]).map(drop)
    }

    /// The ID of the cluster's process.
    pub(crate) fn pid(&self) -> Result<u32, Failure> {
        let status = self.longshore(&["status", "--output", "json"])?;
        let status: serde_json::Value = serde_json::from_slice(&status.stdout)?;
        let pid = status["pid"].as_u64().ok_or("the status has no pid")?;
        Ok(u32::try_from(pid)?)
    }

    /// The current and the peak memory of the cluster's process, in MB.
    pub(crate) fn memory(&self) -> Result<(f64, f64), Failure> {
        let pid = self.pid()?;
        let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let field = |name: &str| -> Result<f64, Failure> {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            let line = line.ok_or_else(|| format!("no {name} in the process's status"))?;
            Ok(line.trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
        };
        Ok((field("VmRSS:")?, field("VmHWM:")?))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.down();
    }
}

/// The `longshore` program in the same folder as this program.
fn binary() -> Result<PathBuf, Failure> {
    let binary = env::current_exe()?.with_file_name("longshore");
    if binary.exists() {
        Ok(binary)
    } else {
        Err(format!("{} is not built", binary.display()).into())
    }
}
