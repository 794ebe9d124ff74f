//! Parses sessions, and replaces the parts of their output that differ between runs.
//!
//! A session is a Markdown file. Commands are indented lines that start with `$ `; the
//! following lines that start with `>` continue the command. All other text is ignored.

use std::sync::LazyLock;

use regex::Regex;

/// The commands in the text of a session, in order.
pub(crate) fn commands(text: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    for line in text.lines() {
        let Some(line) = line.strip_prefix("    ") else {
            continue;
        };
        if let Some(command) = line.strip_prefix("$ ") {
            commands.push(command.to_owned());
        } else if let Some(rest) = line.strip_prefix('>')
            && let Some(command) = commands.last_mut()
        {
            command.push('\n');
            command.push_str(rest.strip_prefix(' ').unwrap_or(rest));
        }
    }
    commands
}

/// Patterns of output that differs between runs, and their replacements, applied in this
/// order.
const VOLATILE: [(&str, &str); 16] = [
    // This message depends on whether the watch was shorter than a second.
    (r"(?m)^.*Unexpected watch close.*\n", ""),
    (
        r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        "[uid]",
    ),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "[time]"),
    (
        r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}",
        "[date]",
    ),
    (r"https://127\.0\.0\.1:\d+", "[server]"),
    (r#"(resourceVersion"?: ?"?)\d+"#, "${1}[version]"),
    (
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? \+0000( UTC)?",
        "[time]",
    ),
    (
        r"\b([IWE])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ \w+\.go:\d+\]",
        "[${1} log]",
    ),
    // kubectl may print this at the end of a timeout.
    (
        r#"(?m)^\[E log\] "(Failed to watch|Unhandled Error)" err="[^"]*context deadline exceeded".*\n"#,
        "",
    ),
    (r"\b(made|kube-api-access)-[a-z0-9]{5}\b", "${1}-[random]"),
    (r"/tmp/[A-Za-z0-9./_-]+", "[path]"),
    // The hash of a generated name and a random number.
    (r"\.[0-9a-f]{16}\b", ".[hash]"),
    (
        r"kubectl/v1[0-9.]+ \([^)]*\) kubernetes/[0-9a-f]+",
        "[agent]",
    ),
    // An age and the padding of its column, as wide as its heading.
    (r"\b(\d+m)?\d+s +", "AGE   "),
    (r"\b(\d+m)?\d+s\b", "AGE"),
    // Trailing whitespace.
    (r"[ \t]+(\n|$)", "$1"),
];

static PATTERNS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    VOLATILE
        .iter()
        .map(|(pattern, replacement)| (Regex::new(pattern).unwrap(), *replacement))
        .collect()
});

/// Replaces the parts of an output that differ between runs; `suffix` is the suffix of the
/// session's namespace.
pub(crate) fn normalize(output: &str, suffix: &str) -> String {
    let mut text = output.replace(suffix, "xxxxx");
    for (pattern, replacement) in PATTERNS.iter() {
        text = pattern.replace_all(&text, *replacement).into_owned();
    }
    text
}

#[test]
fn text_is_not_a_command() {
    let text =
        "# A title\n\nWords, `$ no`.\n\n    $ one\n    $ two <<E\n    >   in\n    >\n    > E\n";
    assert_eq!(commands(text), ["one", "two <<E\n  in\n\nE"]);
}

#[test]
fn ages_versions_and_ids_are_replaced() {
    assert_eq!(
        normalize("NAME   AGE   LABELS\none    3s    a=b\ntwo    12s\n", "-"),
        "NAME   AGE   LABELS\none    AGE   a=b\ntwo    AGE\n",
    );
    assert_eq!(
        normalize(
            "resourceVersion: \"12\" 0c5b6e9e-1111-4222-8333-0123456789ab",
            "suffix"
        ),
        "resourceVersion: \"[version]\" [uid]",
    );
    let watch = r#"E0105 10:00:00.123456    4711 reflector.go:204] "Failed to watch" err="context deadline exceeded" type="x""#;
    assert_eq!(normalize(&format!("a\n{watch}\nb\n"), "-"), "a\nb\n");
    let watch = r#"E1124 10:00:00.123456    4711 runtime.go:146] "Unhandled Error" err="k8s.io/client-go/tools/watch/informerwatcher.go:146: Failed to watch *unstructured.Unstructured: context deadline exceeded""#;
    assert_eq!(normalize(&format!("a\n{watch}\nb\n"), "-"), "a\nb\n");
}
