//! Reading sessions, and telling what came back without what differs from run
//! to run.
//!
//! A session is a Markdown file. Its commands are the indented lines that begin
//! with `$ `, and the lines after one that begin with `>` go on with it; all
//! else explains.

use std::sync::LazyLock;

use regex::Regex;

/// The commands of a session's text, in their order.
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

/// What differs from run to run, and its stand-in; in this order.
const VOLATILE: [(&str, &str); 16] = [
    // Whether a watch was shorter than a second is a matter of milliseconds.
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
    // Whether a watch that its own time limit ends is told of depends on the moment.
    (
        r#"(?m)^\[E log\] "(Failed to watch|Unhandled Error)" err="[^"]*context deadline exceeded".*\n"#,
        "",
    ),
    (r"\b(made)-[a-z0-9]{5}\b", "${1}-[random]"),
    (r"/tmp/[A-Za-z0-9./_-]+", "[path]"),
    // Made of a generated name and a random number.
    (r"\.[0-9a-f]{16}\b", ".[hash]"),
    (
        r"kubectl/v1[0-9.]+ \([^)]*\) kubernetes/[0-9a-f]+",
        "[agent]",
    ),
    // An age and what fills up its column, whose heading is as wide as an age.
    (r"\b(\d+m)?\d+s +", "AGE   "),
    (r"\b(\d+m)?\d+s\b", "AGE"),
    // Its last line break is the program's, the others are the text's.
    (r"[ \t]+(\n|$)", "$1"),
];

static PATTERNS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    VOLATILE
        .iter()
        .map(|(pattern, stand_in)| (Regex::new(pattern).unwrap(), *stand_in))
        .collect()
});

/// A command's output without what differs from run to run; `suffix` is that of
/// the session's namespace.
pub(crate) fn settled(output: &str, suffix: &str) -> String {
    let mut text = output.replace(suffix, "xxxxx");
    for (pattern, stand_in) in PATTERNS.iter() {
        text = pattern.replace_all(&text, *stand_in).into_owned();
    }
    text
}

#[test]
fn what_explains_is_no_command() {
    let text =
        "# A title\n\nWords, `$ no`.\n\n    $ one\n    $ two <<E\n    >   in\n    >\n    > E\n";
    assert_eq!(commands(text), ["one", "two <<E\n  in\n\nE"]);
}

#[test]
fn ages_versions_and_ids_are_settled() {
    assert_eq!(
        settled("NAME   AGE   LABELS\none    3s    a=b\ntwo    12s\n", "-"),
        "NAME   AGE   LABELS\none    AGE   a=b\ntwo    AGE\n",
    );
    assert_eq!(
        settled(
            "resourceVersion: \"12\" 0c5b6e9e-1111-4222-8333-0123456789ab",
            "desk"
        ),
        "resourceVersion: \"[version]\" [uid]",
    );
    let watch = r#"E0105 10:00:00.123456    4711 reflector.go:204] "Failed to watch" err="context deadline exceeded" type="x""#;
    assert_eq!(settled(&format!("a\n{watch}\nb\n"), "-"), "a\nb\n");
    let watch = r#"E1124 10:00:00.123456    4711 runtime.go:146] "Unhandled Error" err="k8s.io/client-go/tools/watch/informerwatcher.go:146: Failed to watch *unstructured.Unstructured: context deadline exceeded""#;
    assert_eq!(settled(&format!("a\n{watch}\nb\n"), "-"), "a\nb\n");
}
