//! The rules by which kubectl interprets a kubeconfig, where kube-client has different rules. Pure.

use std::collections::BTreeSet;

use kube_client::config::{AuthInfo, Cluster, Context, ExecConfig, KubeConfigOptions, Kubeconfig};
use secrecy::{ExposeSecret, SecretString};

/// The maximum number of contexts in an error.
const NAMED: usize = 20;

/// Applies the rules for a single file, before it is merged with others: empty values count as absent,
/// base64 may have line breaks, and names are unique.
///
/// # Errors
/// The rule that the file violates.
pub(super) fn normalize(config: &mut Kubeconfig) -> Result<(), String> {
    let is_other = |found: &Option<String>, expected: &str| {
        let found = found.as_deref().filter(|found| !found.is_empty());
        found.filter(|found| *found != expected).map(str::to_owned)
    };
    if let Some(kind) = is_other(&config.kind, "Config") {
        return Err(format!("its kind is {kind:?} and not \"Config\""));
    }
    if let Some(version) = is_other(&config.api_version, "v1") {
        return Err(format!("its apiVersion is {version:?} and not \"v1\""));
    }
    unique("cluster", config.clusters.iter().map(|named| &named.name))?;
    unique("user", config.auth_infos.iter().map(|named| &named.name))?;
    unique("context", config.contexts.iter().map(|named| &named.name))?;
    without_empty([&mut config.current_context]);
    for named in &mut config.clusters {
        // An entry without content has the default values.
        normalize_cluster(named.cluster.get_or_insert_default());
    }
    for named in &mut config.auth_infos {
        normalize_user(named.auth_info.get_or_insert_default());
    }
    for named in &mut config.contexts {
        let context: &mut Context = named.context.get_or_insert_default();
        without_empty([&mut context.user, &mut context.namespace]);
    }
    Ok(())
}

fn unique<'a>(what: &str, names: impl Iterator<Item = &'a String>) -> Result<(), String> {
    let mut known = BTreeSet::new();
    for name in names {
        if !known.insert(name) {
            return Err(format!("it has several {what}s of the name {name:?}"));
        }
    }
    Ok(())
}

fn normalize_cluster(cluster: &mut Cluster) {
    without_empty([
        &mut cluster.server,
        &mut cluster.certificate_authority,
        &mut cluster.certificate_authority_data,
        &mut cluster.proxy_url,
        &mut cluster.tls_server_name,
    ]);
    if let Some(data) = &mut cluster.certificate_authority_data {
        *data = without_line_breaks(data);
    }
}

fn normalize_user(user: &mut AuthInfo) {
    without_empty([
        &mut user.username,
        &mut user.token_file,
        &mut user.client_certificate,
        &mut user.client_certificate_data,
        &mut user.client_key,
        &mut user.impersonate,
        &mut user.impersonate_uid,
    ]);
    for secret in [
        &mut user.password,
        &mut user.token,
        &mut user.client_key_data,
    ] {
        if secret
            .as_ref()
            .is_some_and(|secret| secret.expose_secret().is_empty())
        {
            *secret = None;
        }
    }
    if let Some(data) = &mut user.client_certificate_data {
        *data = without_line_breaks(data);
    }
    if let Some(data) = &mut user.client_key_data {
        *data = SecretString::from(without_line_breaks(data.expose_secret()));
    }
    let groups = &mut user.impersonate_groups;
    *groups = groups.take().filter(|groups| !groups.is_empty());
    let extra = &mut user.impersonate_user_extra;
    *extra = extra.take().filter(|extra| !extra.is_empty());
    // kubectl sends a user name without a password, too.
    if user.username.is_some() && user.password.is_none() {
        user.password = Some(SecretString::from(String::new()));
    }
}

fn without_empty<const N: usize>(fields: [&mut Option<String>; N]) {
    for field in fields {
        if field.as_ref().is_some_and(String::is_empty) {
            *field = None;
        }
    }
}

/// Base64 without the line breaks that Go's decoder ignores.
fn without_line_breaks(data: &str) -> String {
    data.replace(['\r', '\n'], "")
}

/// Checks the selected context, its cluster and its user.
///
/// # Errors
/// The rule that they violate.
pub(super) fn check(config: &Kubeconfig, options: &KubeConfigOptions) -> Result<(), String> {
    let selected = options.context.as_ref().or(config.current_context.as_ref());
    let Some(name) = selected else {
        return Err(format!(
            "it has no current context: choose one with `kubectl config use-context`{}",
            known(config)
        ));
    };
    let context = config.contexts.iter().find(|named| named.name == *name);
    let Some(context) = context.and_then(|named| named.context.as_ref()) else {
        return Err(format!("it has no context {name:?}{}", known(config)));
    };
    let named = config
        .clusters
        .iter()
        .find(|named| named.name == context.cluster);
    if let Some(cluster) = named.and_then(|named| named.cluster.as_ref()) {
        if cluster.certificate_authority.is_some() && cluster.certificate_authority_data.is_some() {
            return Err(format!(
                "the cluster {:?} has certificate-authority and certificate-authority-data: remove one of them",
                context.cluster
            ));
        }
        let has_authority =
            cluster.certificate_authority.is_some() || cluster.certificate_authority_data.is_some();
        if cluster.insecure_skip_tls_verify == Some(true) && has_authority {
            return Err(format!(
                "the cluster {:?} has a certificate authority and insecure-skip-tls-verify: remove one of them",
                context.cluster
            ));
        }
    }
    let user = context.user.as_ref();
    let named = config
        .auth_infos
        .iter()
        .find(|named| Some(&named.name) == user);
    match named.and_then(|named| Some((&named.name, named.auth_info.as_ref()?))) {
        Some((name, user)) => check_user(name, user),
        None => Ok(()),
    }
}

fn check_user(name: &str, user: &AuthInfo) -> Result<(), String> {
    let has_token = user.token.is_some() || user.token_file.is_some();
    if has_token && user.username.is_some() {
        return Err(format!(
            "the user {name:?} has a token and a user name: remove one of them"
        ));
    }
    let has_both = |file: &Option<String>, has_data: bool| file.is_some() && has_data;
    if has_both(
        &user.client_certificate,
        user.client_certificate_data.is_some(),
    ) || has_both(&user.client_key, user.client_key_data.is_some())
    {
        return Err(format!(
            "the user {name:?} has a client certificate or key as a file and as data: remove one of them"
        ));
    }
    let impersonates = user.impersonate_uid.is_some()
        || user.impersonate_groups.is_some()
        || user.impersonate_user_extra.is_some();
    if impersonates && user.impersonate.is_none() {
        return Err(format!(
            "the user {name:?} impersonates groups, a UID or extra values without a user: add `as`"
        ));
    }
    let has_version = |exec: &ExecConfig| exec.api_version.as_ref().is_some_and(|v| !v.is_empty());
    if user.exec.as_ref().is_some_and(|exec| !has_version(exec)) {
        return Err(format!(
            "the credential program of the user {name:?} has no apiVersion"
        ));
    }
    Ok(())
}

/// The names of the contexts, for an error.
fn known(config: &Kubeconfig) -> String {
    let mut names: Vec<&str> = config.contexts.iter().map(|named| &*named.name).collect();
    names.sort_unstable();
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    names.truncate(NAMED);
    match names.is_empty() {
        true => "; it has no contexts".to_owned(),
        false => format!("; its contexts are {}{more}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn checked(text: &str, context: Option<&str>) -> Result<(), String> {
        let mut config = Kubeconfig::from_yaml(text).unwrap();
        normalize(&mut config)?;
        let options = KubeConfigOptions {
            context: context.map(str::to_owned),
            ..KubeConfigOptions::default()
        };
        check(&config, &options)
    }

    #[test]
    fn an_unknown_context_lists_those_of_the_file() {
        let text = "contexts: [{name: b, context: {cluster: c}}, {name: a, context: {cluster: c}}]";
        assert_eq!(checked(text, Some("b")), Ok(()));
        insta::assert_snapshot!(checked(text, Some("c")).unwrap_err(), @r#"it has no context "c"; its contexts are a, b"#);
        insta::assert_snapshot!(checked(text, None).unwrap_err(), @"it has no current context: choose one with `kubectl config use-context`; its contexts are a, b");
        insta::assert_snapshot!(checked("{}", Some("c")).unwrap_err(), @r#"it has no context "c"; it has no contexts"#);
        let many: Vec<String> = (10..40)
            .map(|n| format!("{{name: c{n}, context: {{cluster: c}}}}"))
            .collect();
        let error = checked(&format!("contexts: [{}]", many.join(",")), Some("c")).unwrap_err();
        assert!(error.ends_with("c29, and 10 more"), "{error}");
    }

    #[test]
    fn errors_have_no_secrets() {
        for user in [
            "{token: s3cret, username: a, password: s3cret}",
            "{token: s3cret, as-groups: [a]}",
            "{token: s3cret, exec: {command: x}}",
        ] {
            let text = format!(
                "contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\nusers: [{{name: u, user: {user}}}]"
            );
            let error = checked(&text, Some("c")).unwrap_err();
            assert!(
                error.contains("\"u\"") && !error.contains("s3cret"),
                "{error}"
            );
        }
    }
}
