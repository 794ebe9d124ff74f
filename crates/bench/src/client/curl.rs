//! Measures curl, which only receives the response.

use std::{
    fs,
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use super::list::PATH;
use crate::report::Failure;

/// The seconds that curl reports, including the time to connect.
pub(super) fn list(kubeconfig: &Path) -> Result<f64, Failure> {
    let config = config(kubeconfig)?;
    let mut child = Command::new("curl")
        .args(["--config", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("curl: {error}"))?;
    // The configuration goes to standard input, because other users can read
    // arguments.
    if let Some(mut input) = child.stdin.take() {
        input.write_all(config.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let (code, seconds) = printed
        .trim()
        .split_once(' ')
        .ok_or("curl printed nothing")?;
    if code != "200" {
        return Err(format!("curl: {code}").into());
    }
    Ok(seconds.parse()?)
}

fn config(kubeconfig: &Path) -> Result<String, Failure> {
    let file = kube_client::config::Kubeconfig::read_from(kubeconfig)?;
    let value = serde_json::to_value(&file)?;
    let cluster = &value["clusters"][0]["cluster"];
    let (server, token) = (
        cluster["server"]
            .as_str()
            .ok_or("the kubeconfig has no server")?,
        &fs::read_to_string(kubeconfig)?,
    );
    let token = token
        .split_once("token")
        .and_then(|(_, rest)| {
            rest.split(['"', ' ', '\n', ':', '}'])
                .find(|word| !word.is_empty())
        })
        .ok_or("the kubeconfig has no token")?;
    // `insecure`, because checking certificates is not part of the measurement.
    Ok(format!(
        "url = \"{server}{PATH}\"\nheader = \"Authorization: Bearer {token}\"\n\
         header = \"Accept: application/json\"\nuser-agent = \"longshore-bench\"\n\
         insecure\nhttp1.1\nsilent\noutput = \"/dev/null\"\n\
         write-out = \"%{{http_code}} %{{time_total}}\"\n"
    ))
}
