//! Credential plugins: the programs in `users[].user.exec` of a kubeconfig.
//!
//! kube-client would run a plugin three times for each connection, and each run may take a
//! second or prompt the user. This module runs it once, and again when its credentials
//! expire or the server rejects them. The protocol:
//! <https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins>

use std::{
    io::IsTerminal,
    path::Path,
    process::{Command, Stdio},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use http::HeaderValue;
use jiff::{SignedDuration, Timestamp};
use kube_client::config::{AuthInfo, ExecConfig, ExecInteractiveMode};
use secrecy::ExposeSecret;
use serde::Deserialize;
use serde_json::json;

/// The environment variable with the plugin's input.
const EXEC_INFO: &str = "KUBERNETES_EXEC_INFO";
const KIND: &str = "ExecCredential";
/// The maximum size of a token file, in bytes.
const MAX_TOKEN_BYTES: u64 = 1 << 20;

/// The output of a plugin.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Credential {
    kind: Option<String>,
    api_version: Option<String>,
    #[serde(default)]
    status: Option<Status>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    expiration_timestamp: Option<Timestamp>,
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

/// The time for which a token that was read from a file is used.
const TOKEN_LIFETIME: SignedDuration = SignedDuration::from_secs(60);

/// Replaces the sources of the user's credentials with the credentials: the token file is read, and
/// the credential plugin is run, unless there are other credentials. Returns when they expire, if they
/// do. Blocks until the plugin ends.
///
/// # Errors
/// The reason, which contains neither the plugin's output nor its arguments and
/// environment: they may be secret.
pub(super) fn fetch(user: &mut AuthInfo) -> Result<Option<Timestamp>, String> {
    let expires = from_sources(user)?;
    let token = user.token.as_ref().map(ExposeSecret::expose_secret);
    match token.is_none_or(|token| HeaderValue::from_str(token).is_ok()) {
        true => Ok(expires),
        false => Err(
            "the token has characters that a header cannot have, such as line breaks".to_owned(),
        ),
    }
}

fn from_sources(user: &mut AuthInfo) -> Result<Option<Timestamp>, String> {
    let program = user.exec.take();
    if let Some(path) = user.token_file.take() {
        read_token(&path, user)?;
        // As in kubectl, changes of the file are found within a minute.
        return Ok(Timestamp::now().checked_add(TOKEN_LIFETIME).ok());
    }
    // kubectl calls the plugin only for requests without credentials.
    let is_known = user.token.is_some() || user.username.is_some();
    let Some(program) = program.filter(|_| !is_known) else {
        return Ok(None);
    };
    let name = program.command.as_deref().unwrap_or_default();
    let status = run(name, &program)
        .map_err(|problem| format!("the credential program {name:?} {problem}"))?;
    if let Some(token) = status.token {
        user.token = Some(token.into());
    }
    if let (Some(certificate), Some(key)) = (status.client_certificate_data, status.client_key_data)
    {
        user.client_certificate_data = Some(STANDARD.encode(certificate));
        user.client_key_data = Some(STANDARD.encode(key).into());
    }
    Ok(status.expiration_timestamp)
}

/// Reads the token of a file and trims white space. If this is not possible, the user keeps the
/// token that the kubeconfig has in addition to the file, as in kubectl.
fn read_token(path: &str, user: &mut AuthInfo) -> Result<(), String> {
    let read = longshore_files::read_limited(Path::new(path), MAX_TOKEN_BYTES);
    let text = read.map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned());
    let problem = match text {
        Ok(text) if !text.is_empty() => {
            user.token = Some(text.into());
            return Ok(());
        }
        Ok(_) => "it is empty".to_owned(),
        Err(error) => error.to_string(),
    };
    match user.token {
        Some(_) => Ok(()),
        None => Err(format!("the token file {path} cannot be used: {problem}")),
    }
}

fn run(name: &str, program: &ExecConfig) -> Result<Status, String> {
    if name.is_empty() {
        return Err("has no name: set `command` in the kubeconfig".to_owned());
    }
    let output = command(name, program)?
        .output()
        .map_err(|error| not_started(program, &error))?;
    if !output.status.success() {
        let status = output.status;
        return Err(format!("failed with {status}: run it manually"));
    }
    read(&output.stdout, program.api_version.as_deref())
}

fn command(name: &str, program: &ExecConfig) -> Result<Command, String> {
    let terminal = std::io::stdin().is_terminal();
    let interactive = match program.interactive_mode {
        Some(ExecInteractiveMode::Never) => false,
        Some(ExecInteractiveMode::Always) if !terminal => {
            return Err("requires interactive input, but stdin is not a terminal".to_owned());
        }
        Some(ExecInteractiveMode::Always | ExecInteractiveMode::IfAvailable) | None => terminal,
    };
    let cluster = program.provide_cluster_info.then_some(&program.cluster);
    let info = json!({
        "apiVersion": program.api_version,
        "kind": KIND,
        "spec": {"interactive": interactive, "cluster": cluster},
    });
    let mut command = Command::new(name);
    command.args(program.args.iter().flatten());
    for variable in program.env.iter().flatten() {
        if let (Some(name), Some(value)) = (variable.get("name"), variable.get("value")) {
            command.env(name, value);
        }
    }
    command.env(EXEC_INFO, info.to_string());
    if !interactive {
        command.stdin(Stdio::null());
    }
    // The plugin's messages and prompts are for the user.
    command.stderr(Stdio::inherit());
    Ok(command)
}

fn not_started(program: &ExecConfig, error: &std::io::Error) -> String {
    let hint = program.install_hint.as_deref().map_or("", str::trim);
    let hint = if hint.is_empty() {
        "is it installed, and in the PATH?"
    } else {
        hint
    };
    format!("cannot be started: {error}; {hint}")
}

/// Reads the output of a plugin. Some plugins print YAML, which includes JSON.
fn read(output: &[u8], version: Option<&str>) -> Result<Status, String> {
    let unreadable = || format!("printed something other than an {KIND}: run it manually");
    longshore_model::yaml::check(output).map_err(|_| unreadable())?;
    let credential: Credential = serde_yaml_ng::from_slice(output).map_err(|_| unreadable())?;
    if credential.kind.is_some_and(|kind| kind != KIND) {
        return Err(unreadable());
    }
    if let (Some(found), Some(expected)) = (&credential.api_version, version)
        && found != expected
    {
        return Err(format!(
            "returned apiVersion {found}, but the kubeconfig has {expected}: use one version"
        ));
    }
    let status = credential
        .status
        .ok_or_else(|| format!("printed an {KIND} without a status: run it manually"))?;
    match (
        &status.token,
        &status.client_certificate_data,
        &status.client_key_data,
    ) {
        (None, None, None) => {
            Err("returned neither a token nor a certificate: run it manually".to_owned())
        }
        (_, Some(_), None) | (_, None, Some(_)) => Err(
            "returned a certificate without a private key, or a key without a certificate: run it manually".to_owned(),
        ),
        _ => Ok(status),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const VERSION: &str = "client.authentication.k8s.io/v1";

    fn error(output: &str) -> String {
        read(output.as_bytes(), Some(VERSION)).err().unwrap()
    }

    #[test]
    fn output_is_json_or_yaml() {
        let yaml =
            "kind: ExecCredential\nstatus: {token: t, expirationTimestamp: 2026-01-02T03:04:05Z}";
        let status = read(yaml.as_bytes(), Some(VERSION)).unwrap();
        assert_eq!(status.token.as_deref(), Some("t"));
        assert_eq!(
            status.expiration_timestamp.unwrap().to_string(),
            "2026-01-02T03:04:05Z"
        );
    }

    #[test]
    fn invalid_output_is_reported_without_its_content() {
        for other in ["", "s3cret", "{", "kind: Pod", "status: {token: [1]}"] {
            let error = error(other);
            assert!(
                error.starts_with("printed ") && !error.contains("s3cret"),
                "{error}"
            );
        }
        assert_eq!(
            error(
                r#"{"apiVersion": "client.authentication.k8s.io/v1beta1", "status": {"token": "t"}}"#
            ),
            "returned apiVersion client.authentication.k8s.io/v1beta1, but the kubeconfig has client.authentication.k8s.io/v1: use one version"
        );
        assert!(error("status: {}").starts_with("returned neither a token"));
        let half = error("status: {clientKeyData: s3cret}");
        assert!(
            half.starts_with("returned a certificate without a private key")
                && !half.contains("s3cret")
        );
    }
}
