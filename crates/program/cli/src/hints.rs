//! Completes commands in messages with the options for the current cluster and namespace, so
//! that they work when users copy them.

use std::{path::Path, sync::Mutex};

use longshore::launcher::{Event, explain::Explanation};

use crate::env;

/// Commands without options for a cluster or namespace.
const WITHOUT_CLUSTER: [&str; 5] = ["up", "down", "status", "completions", "replay"];

/// The cluster and namespace options of this command.
static SCOPE: Mutex<Scope> = Mutex::new(Scope {
    cluster: Vec::new(),
    kubectl: Vec::new(),
    namespace: None,
    kubectl_namespace: None,
});

/// A cluster and namespace as arguments.
#[derive(Debug, Default, PartialEq, Eq)]
struct Scope {
    cluster: Vec<(&'static str, String)>,
    /// The kubectl options for the same cluster.
    kubectl: Vec<(&'static str, String)>,
    namespace: Option<String>,
    /// The namespace of kubectl commands, unless another namespace is set.
    kubectl_namespace: Option<String>,
}

fn scope() -> std::sync::MutexGuard<'static, Scope> {
    SCOPE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Records the options that select the cluster, such as `--context` and its value, and the
/// namespace that is not the default with these options.
pub(crate) fn remember_cluster(options: Vec<(&'static str, String)>, namespace: Option<String>) {
    let mut scope = scope();
    (scope.cluster, scope.namespace) = (options, namespace);
}

/// Records the embedded cluster's data folder, unless it is in the environment.
pub(crate) fn remember_folder(dir: &Path) {
    let known = std::env::var_os(env::DATA_DIR);
    let mut scope = scope();
    let is_said = scope.cluster.iter().any(|(name, _)| *name == "--data-dir");
    if !is_said && known.is_none_or(|known| known != *dir.as_os_str()) {
        scope.cluster.push(("--data-dir", of_path(dir)));
    }
}

/// Records the kubectl options for the cluster, such as `--kubeconfig` and its value, and the
/// namespace that is not kubectl's default with these options.
pub(crate) fn remember_kubectl(options: Vec<(&'static str, String)>, namespace: Option<String>) {
    let mut scope = scope();
    (scope.kubectl, scope.kubectl_namespace) = (options, namespace);
}

/// Records a namespace that is not the default.
pub(crate) fn remember_namespace(namespace: &str) {
    scope().namespace = Some(namespace.to_owned());
}

/// A path as an option value.
pub(crate) fn of_path(path: &Path) -> String {
    path.display().to_string()
}

/// Completes the commands in a message.
pub(crate) fn complete(text: &str) -> String {
    completed(text, &scope())
}

/// Completes the commands in an explanation.
pub(crate) fn in_explanation(known: &mut Explanation) {
    known.remedy = complete(&known.remedy);
}

/// Completes the commands in an event.
pub(crate) fn in_event(event: &Event) -> Event {
    let mut event = event.clone();
    match &mut event {
        Event::Waiting(why) => in_explanation(why),
        Event::Retry(retry) => in_explanation(&mut retry.explanation),
        Event::Finished(outcome) => {
            outcome.remedy = outcome.remedy.as_deref().map(complete);
            outcome.explanation.iter_mut().for_each(in_explanation);
        }
        _ => {}
    }
    event
}

fn completed(text: &str, scope: &Scope) -> String {
    // Commands are in backquotes, so every second part is a command.
    let parts: Vec<&str> = text.split('`').collect();
    let last = parts.len() - 1;
    let parts = parts
        .iter()
        .enumerate()
        .map(|(n, part)| match part.split_once(' ') {
            Some(("longshore", _)) if n % 2 == 1 && n < last => with_scope(part, scope),
            Some(("kubectl", rest)) if n % 2 == 1 && n < last => {
                let mut options: String = scope
                    .kubectl
                    .iter()
                    .map(|(name, value)| format!(" {name} {}", quoted(value)))
                    .collect();
                let names_one = ["--namespace", "-n", "namespace"];
                let namespace = scope.namespace.as_ref();
                if let Some(namespace) = namespace.or(scope.kubectl_namespace.as_ref())
                    && !names_one.iter().any(|name| has(rest, name))
                {
                    options += &format!(" --namespace {namespace}");
                }
                format!("kubectl{options} {rest}")
            }
            _ => (*part).to_owned(),
        });
    parts.collect::<Vec<String>>().join("`")
}

fn with_scope(command: &str, scope: &Scope) -> String {
    let mut words = command.split(' ').skip(1);
    let verb = words.next().unwrap_or_default();
    let mut added = String::new();
    for (name, value) in &scope.cluster {
        let known =
            !WITHOUT_CLUSTER.contains(&verb) || *name == "--data-dir" && verb != "completions";
        if known && !has(command, name) {
            added += &format!(" {name}");
            if !value.is_empty() {
                added += &format!(" {}", quoted(value));
            }
        }
    }
    if let Some(namespace) = &scope.namespace
        && !WITHOUT_CLUSTER.contains(&verb)
        && !["--namespace", "-n", "--all-namespaces", "-A"]
            .iter()
            .any(|name| has(command, name))
    {
        added += &format!(" --namespace {namespace}");
    }
    match command.split_once(" -- ") {
        Some((options, rest)) => format!("{options}{added} -- {rest}"),
        None => format!("{command}{added}"),
    }
}

/// Returns true if a command contains an option or another word.
fn has(command: &str, name: &str) -> bool {
    let is_it = |word: &str| {
        let rest = word.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    };
    command.split(' ').any(is_it)
}

/// Quotes a word for a shell, if necessary.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:@=+,~%".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(cluster: &[(&'static str, &str)], namespace: Option<&str>) -> Scope {
        Scope {
            cluster: cluster
                .iter()
                .map(|(name, value)| (*name, (*value).to_owned()))
                .collect(),
            kubectl: vec![("--kubeconfig", "/x/config".to_owned())],
            namespace: namespace.map(str::to_owned),
            kubectl_namespace: None,
        }
    }

    #[test]
    fn commands_are_completed_for_the_same_cluster() {
        let production = scope(&[("--context", "production")], Some("team"));
        for (text, complete) in [
            ("no command", "no command"),
            (
                "`longshore why a` explains it",
                "`longshore why a --context production --namespace team` explains it",
            ),
            (
                "`longshore run -- true`; `kubectl get pods`; `longshore get pods -n other`",
                "`longshore run --context production --namespace team -- true`; `kubectl --kubeconfig /x/config --namespace team get pods`; `longshore get pods -n other --context production`",
            ),
            (
                "`kubectl create namespace team`",
                "`kubectl --kubeconfig /x/config create namespace team`",
            ),
            ("`longshore up` starts one", "`longshore up` starts one"),
            ("an open `longshore logs", "an open `longshore logs"),
        ] {
            assert_eq!(completed(text, &production), complete);
        }
        let folder = scope(&[("--data-dir", "/my data/x"), ("--embedded", "")], None);
        assert_eq!(
            completed("`longshore down` and `longshore logs a`", &folder),
            "`longshore down --data-dir '/my data/x'` and `longshore logs a --data-dir '/my data/x' --embedded`"
        );
        // A context of longshore.toml has the namespace; the kubeconfig's context does not.
        let named = Scope {
            kubectl_namespace: Some("team".to_owned()),
            ..scope(&[("--context", "east")], None)
        };
        assert_eq!(
            completed("`longshore runs`, `kubectl get pods`", &named),
            "`longshore runs --context east`, `kubectl --kubeconfig /x/config --namespace team get pods`"
        );
        assert_eq!(
            completed("`longshore runs`", &Scope::default()),
            "`longshore runs`"
        );
    }
}
