//! Measures curl, which only receives the response.

use std::{
    fs,
    io::{Read, Write},
    path::Path,
    process::{Child, Command, Stdio},
    time::Instant,
};

use memchr::memmem;

use super::list::PATH;
use crate::report::Failure;

const JSON: &str = "application/json";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The query of a watch list: all objects, then a bookmark with [`END`], then changes.
const WATCH_LIST: &str = "?watch=1&sendInitialEvents=true\
    &resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=120";

/// The annotation of the bookmark that ends a watch list, in each encoding.
const END: &[u8] = b"k8s.io/initial-events-end";

/// The seconds that curl reports, including the time to connect.
pub(super) fn list(kubeconfig: &Path) -> Result<f64, Failure> {
    let output = start(&format!(
        "{}output = \"/dev/null\"\nwrite-out = \"%{{http_code}} %{{time_total}}\"\n",
        config(kubeconfig, "", JSON)?
    ))?
    .wait_with_output()?;
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

/// The seconds until a watch list has been received, in JSON and in protobuf.
pub(super) fn watch_lists(kubeconfig: &Path) -> Result<[f64; 2], Failure> {
    Ok([
        watch_list(kubeconfig, JSON)?,
        watch_list(kubeconfig, &format!("{PROTOBUF};stream=watch"))?,
    ])
}

fn watch_list(kubeconfig: &Path, accept: &str) -> Result<f64, Failure> {
    let started = Instant::now();
    let mut child = start(&format!(
        "{}no-buffer\nfail\n",
        config(kubeconfig, WATCH_LIST, accept)?
    ))?;
    let found = match child.stdout.take() {
        Some(output) => wait_for(output, END)?,
        None => false,
    };
    let seconds = started.elapsed().as_secs_f64();
    child.kill()?;
    child.wait()?;
    found
        .then_some(seconds)
        .ok_or_else(|| format!("curl received no watch list as {accept}").into())
}

/// Reads until these bytes have been read; `false` if the stream ends before.
fn wait_for(mut stream: impl Read, bytes: &[u8]) -> Result<bool, Failure> {
    let (mut buffer, mut kept) = (vec![0; 1 << 16], 0);
    loop {
        let read = stream.read(&mut buffer[kept..])?;
        if read == 0 {
            return Ok(false);
        }
        let end = kept + read;
        if memmem::find(&buffer[..end], bytes).is_some() {
            return Ok(true);
        }
        // They may continue in the next part.
        kept = end.min(bytes.len() - 1);
        buffer.copy_within(end - kept..end, 0);
    }
}

/// Starts curl with this configuration. The configuration goes to standard input,
/// because other users can read arguments.
fn start(config: &str) -> Result<Child, Failure> {
    let mut child = Command::new("curl")
        .args(["--config", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("curl: {error}"))?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(config.as_bytes())?;
    }
    Ok(child)
}

fn config(kubeconfig: &Path, query: &str, accept: &str) -> Result<String, Failure> {
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
        "url = \"{server}{PATH}{query}\"\nheader = \"Authorization: Bearer {token}\"\n\
         header = \"Accept: {accept}\"\nuser-agent = \"longshore-bench\"\n\
         insecure\nhttp1.1\nsilent\n"
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn bytes_are_found_across_the_parts_of_a_stream() {
        let far = [vec![b'.'; (1 << 16) - 3], b"needle".to_vec()].concat();
        for (stream, found) in [(&far[..], true), (b"needl", false), (b"", false)] {
            assert_eq!(wait_for(stream, b"needle").unwrap(), found);
        }
    }
}
