//! The rules of the library that Kubernetes uses: the expectations come from its code and its
//! own tests.

use serde_json::{Value, json};

use crate::{Error, patch::apply_json};

/// The problem of a patch that cannot be applied.
fn problem_of(result: Result<Value, Error>) -> String {
    match result {
        Err(Error::PatchFailed(problem)) => problem,
        other => panic!("{other:?}"),
    }
}

/// Applies a patch that a client has sent.
fn sent(document: Value, text: &str) -> Result<Value, Error> {
    apply_json(document, &serde_json::from_str(text).unwrap(), Some(text))
}

#[test]
fn rule_16_operations_find_their_places() {
    let list = || json!({"l": ["a", "b", "c"], "o": {"k": 1, "n": null}, "s": "x"});
    for (patch, pointer, expected) in [
        // Additions.
        (
            r#"[{"op": "add", "path": "/l/3", "value": "d"}]"#,
            "/l",
            json!(["a", "b", "c", "d"]),
        ),
        (
            r#"[{"op": "add", "path": "/l/-", "value": "d"}]"#,
            "/l",
            json!(["a", "b", "c", "d"]),
        ),
        (
            r#"[{"op": "add", "path": "/l/0", "value": ["d"]}]"#,
            "/l",
            json!([["d"], "a", "b", "c"]),
        ),
        (
            r#"[{"op": "add", "path": "/o/-", "value": 2}]"#,
            "/o",
            json!({"k": 1, "n": null, "-": 2}),
        ),
        (
            r#"[{"op": "add", "path": "/o/", "value": 2}]"#,
            "/o",
            json!({"k": 1, "n": null, "": 2}),
        ),
        (
            r#"[{"op": "add", "path": "/o/k", "value": {"z": {}}}]"#,
            "/o",
            json!({"k": {"z": {}}, "n": null}),
        ),
        (
            r#"[{"op": "add", "path": "/new", "value": null}]"#,
            "/new",
            json!(null),
        ),
        // Removals.
        (
            r#"[{"op": "remove", "path": "/o/n"}]"#,
            "/o",
            json!({"k": 1}),
        ),
        (
            r#"[{"op": "remove", "path": "/l/1"}]"#,
            "/l",
            json!(["a", "c"]),
        ),
        // Replacements.
        (
            r#"[{"op": "replace", "path": "/l/2", "value": null}]"#,
            "/l",
            json!(["a", "b", null]),
        ),
        (
            r#"[{"op": "replace", "path": "/o/n", "value": 1}]"#,
            "/o",
            json!({"k": 1, "n": 1}),
        ),
        (
            r#"[{"op": "replace", "path": "", "value": {"s": 1}}]"#,
            "",
            json!({"s": 1}),
        ),
        (
            r#"[{"op": "replace", "path": "", "value": [1]}]"#,
            "",
            json!([1]),
        ),
        // Moves: the index is counted after the removal.
        (
            r#"[{"op": "move", "from": "/l/0", "path": "/l/2"}]"#,
            "/l",
            json!(["b", "c", "a"]),
        ),
        (
            r#"[{"op": "move", "from": "/l/0", "path": "/l/-"}]"#,
            "/l",
            json!(["b", "c", "a"]),
        ),
        (
            r#"[{"op": "move", "from": "/l/2", "path": "/l/0"}]"#,
            "/l",
            json!(["c", "a", "b"]),
        ),
        (
            r#"[{"op": "move", "from": "/o/k", "path": "/o/k"}]"#,
            "/o",
            json!({"k": 1, "n": null}),
        ),
        (
            r#"[{"op": "move", "from": "/o/n", "path": "/m"}]"#,
            "/m",
            json!(null),
        ),
        (
            r#"[{"op": "move", "from": "/s", "path": "/o/s"}]"#,
            "/o",
            json!({"k": 1, "n": null, "s": "x"}),
        ),
        // Copies.
        (
            r#"[{"op": "copy", "from": "/l/1", "path": "/l/1"}]"#,
            "/l",
            json!(["a", "b", "b", "c"]),
        ),
        (
            r#"[{"op": "copy", "from": "/l", "path": "/l/0"}]"#,
            "/l",
            json!([["a", "b", "c"], "a", "b", "c"]),
        ),
        (
            r#"[{"op": "copy", "from": "/o", "path": "/o/o"}]"#,
            "/o",
            json!({"k": 1, "n": null, "o": {"k": 1, "n": null}}),
        ),
        (
            r#"[{"op": "copy", "from": "/o/n", "path": "/c"}]"#,
            "/c",
            json!(null),
        ),
        // Fields that the library does not know.
        (
            r#"[{"op": "add", "path": "/c", "value": 1, "from": "/x", "other": 2}]"#,
            "/c",
            json!(1),
        ),
    ] {
        let result = sent(list(), patch).unwrap_or_else(|error| panic!("{patch}: {error}"));
        assert_eq!(result.pointer(pointer), Some(&expected), "{patch}");
    }
    for (patch, problem) in [
        (
            r#"[{"op": "add", "path": "", "value": {}}]"#,
            r#"add operation does not apply: doc is missing path: "": missing value"#,
        ),
        (
            r#"[{"op": "add", "path": "k", "value": {}}]"#,
            "doc is missing path",
        ),
        (
            r#"[{"op": "add", "path": "/none/k", "value": 1}]"#,
            r#"doc is missing path: "/none/k": missing value"#,
        ),
        (
            r#"[{"op": "add", "path": "/s/k", "value": 1}]"#,
            "doc is missing path",
        ),
        (
            r#"[{"op": "add", "path": "/o/n/k", "value": 1}]"#,
            "doc is missing path",
        ),
        (
            r#"[{"op": "add", "path": "/l/4", "value": 1}]"#,
            "Unable to access invalid index: 4",
        ),
        (
            r#"[{"op": "add", "path": "/l/x", "value": 1}]"#,
            "value was not a proper array index: 'x'",
        ),
        (
            r#"[{"op": "add", "path": "/l/1.0", "value": 1}]"#,
            "value was not a proper array index",
        ),
        (
            r#"[{"op": "add", "path": "/l/-/k", "value": 1}]"#,
            "doc is missing path",
        ),
        (
            r#"[{"op": "add", "value": 1}]"#,
            "add operation failed to decode path",
        ),
        (
            r#"[{"op": "add", "path": null, "value": 1}]"#,
            "add operation failed to decode path",
        ),
        (r#"[{"op": "remove", "path": ""}]"#, "doc is missing path"),
        (r#"[{"op": "remove", "path": "/l/-"}]"#, "invalid syntax"),
        (
            r#"[{"op": "remove", "path": "/l/3"}]"#,
            "Unable to access invalid index: 3",
        ),
        (
            r#"[{"op": "remove", "path": "/o/x"}]"#,
            "Unable to remove nonexistent key: x",
        ),
        (
            r#"[{"op": "replace", "path": "/l/3", "value": 1}]"#,
            "doc is missing key: /l/3",
        ),
        (
            r#"[{"op": "replace", "path": "/l/-", "value": 1}]"#,
            "doc is missing key: /l/-",
        ),
        (
            r#"[{"op": "replace", "path": "/x/y", "value": 1}]"#,
            "doc is missing path: /x/y",
        ),
        (
            r#"[{"op": "replace", "path": "", "value": 1}]"#,
            "must be object or array",
        ),
        (
            r#"[{"op": "move", "from": "/l/1", "path": "/l/3"}]"#,
            "Unable to access invalid index: 3",
        ),
        (
            r#"[{"op": "move", "from": "/l", "path": "/l/0"}]"#,
            "missing destination path",
        ),
        (
            r#"[{"op": "move", "from": "", "path": "/x"}]"#,
            "missing from path",
        ),
        (
            r#"[{"op": "move", "path": "/x"}]"#,
            "move operation failed to decode from",
        ),
        (
            r#"[{"op": "copy", "from": "", "path": "/x"}]"#,
            "missing from path",
        ),
        (
            r#"[{"op": "copy", "from": null}]"#,
            "copy operation failed to decode from",
        ),
        (
            r#"[{"op": "copy", "from": "/l/0", "path": "/l/4"}]"#,
            "Unable to access invalid index: 4",
        ),
        (
            r#"[{"op": "copy", "from": "/l/3", "path": "/x"}]"#,
            "Unable to access invalid index: 3",
        ),
        (
            r#"[{"op": "copy", "from": "/l/0", "path": "/x/y"}]"#,
            "missing destination path",
        ),
        (r#"[{"op": "jump", "path": "/x"}]"#, "Unexpected kind: jump"),
        (r#"[{"path": "/x"}]"#, "Unexpected kind: unknown"),
        (r#"[{"op": null, "path": ""}]"#, "Unexpected kind: unknown"),
    ] {
        let found = problem_of(sent(list(), patch));
        assert!(found.contains(problem), "{patch}: {found}");
    }
    for patch in [
        r#"[{"op": 1}]"#,
        r#"[{"op": "add", "path": 1}]"#,
        r#"[{"op": "move", "from": []}]"#,
    ] {
        assert_eq!(
            sent(list(), patch).unwrap_err().status().code,
            400,
            "{patch}"
        );
    }
}

/// Each test holds or fails as in the library, which compares the text of strings and numbers.
#[test]
fn rule_16_tests_compare_values_and_texts() {
    let document = || {
        json!({
            "null": null, "no": false, "word": "a", "html": "<&>", "line": "a\u{2028}b", "é": "é",
            "int": 7, "big": i64::MAX, "whole": 7.0, "half": 0.5, "small": 1e-7, "large": 1e21,
            "list": ["b", null, {"x": 1}], "object": {"b": 1, "a": [2]}, "none": {}, "nil": [],
            "a/b": 1, "a~b": 2,
        })
    };
    let holds = |patch: &str| match sent(document(), patch) {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(error.status().code, 422, "{patch}");
            false
        }
    };
    for (path, value, expected) in [
        // Null, and fields that do not exist.
        ("/null", "null", true),
        ("/missing", "null", true),
        ("/missing", "1", false),
        ("/null", "false", false),
        ("/no", "null", false),
        ("/none", "null", false),
        ("/nil", "null", false),
        ("/word", "null", false),
        ("/int", "null", false),
        ("/list/1", "null", true),
        ("/list/3", "null", false),
        ("/missing/x", "null", false),
        ("/word/x", "null", false),
        // Strings, by their text in the JSON that Go writes.
        ("/word", r#""a""#, true),
        ("/word", r#" "a" "#, true),
        ("/word", r#""\u0061""#, false),
        ("/word", r#""b""#, false),
        ("/html", r#""\u003c\u0026\u003e""#, true),
        ("/html", r#""<&>""#, false),
        ("/line", r#""a\u2028b""#, true),
        ("/é", r#""é""#, true),
        ("/é", r#""\u00e9""#, false),
        // Numbers, likewise.
        ("/int", "7", true),
        ("/int", "7.0", false),
        ("/int", "7e0", false),
        ("/int", r#""7""#, false),
        ("/whole", "7", true),
        ("/whole", "7.0", false),
        ("/big", "9223372036854775807", true),
        ("/half", "0.5", true),
        ("/half", "0.50", false),
        ("/half", "5e-1", false),
        ("/small", "1e-7", true),
        ("/small", "1e-07", false),
        ("/large", "1e+21", true),
        ("/large", "1e21", false),
        // Objects in any order, lists in theirs.
        ("/object", r#"{"a": [2], "b": 1}"#, true),
        ("/object", r#"{"b":1,"a":[ 2 ]}"#, true),
        ("/object", r#"{"b": 2, "b": 1, "a": [2]}"#, true),
        ("/object", r#"{"a": [2], "b": 1.0}"#, false),
        ("/object", r#"{"a": [2]}"#, false),
        ("/object", r#"{"a": [2], "b": 1, "c": null}"#, false),
        ("/object", r#"{"\u0061": [2], "b": 1}"#, true),
        ("/list", r#"["b", null, {"x": 1}]"#, true),
        ("/list", r#"[null, "b", {"x": 1}]"#, false),
        ("/list", r#"["b", null]"#, false),
        ("/none", "{}", true),
        ("/none", "[]", false),
        ("/nil", "[]", true),
        ("/nil", "{}", false),
        ("/list/-1/x", "1", true),
        ("/list/-4", "null", false),
        ("/list/-", "null", false),
        // Paths.
        ("/a~1b", "1", true),
        ("/a~0b", "2", true),
        ("/a~b", "2", true),
    ] {
        let patch = format!(r#"[{{"op": "test", "path": "{path}", "value": {value}}}]"#);
        assert_eq!(holds(&patch), expected, "{patch}");
    }
    for (patch, expected) in [
        // Without a value.
        (r#"[{"op": "test", "path": "/missing"}]"#, true),
        (r#"[{"op": "test", "path": "/null"}]"#, true),
        (r#"[{"op": "test", "path": "/nil"}]"#, false),
        (r#"[{"op": "test", "path": "/word"}]"#, false),
        (r#"[{"op": "test", "path": ""}]"#, false),
        (r#"[{"op": "test"}]"#, false),
        // The text is the text that the patch has written.
        (
            r#"[{"op": "add", "path": "/x", "value": {"y": 1.50}}, {"op": "test", "path": "/x/y", "value": 1.50}]"#,
            true,
        ),
        (
            r#"[{"op": "add", "path": "/x", "value": "<"}, {"op": "test", "path": "/x", "value": "<"}]"#,
            true,
        ),
        (
            r#"[{"op": "add", "path": "/x", "value": 1}, {"op": "test", "path": "/x", "value": 1.0}]"#,
            false,
        ),
        // The first test that fails ends the patch.
        (
            r#"[{"op": "test", "path": "/int", "value": 7}, {"op": "test", "path": "/int", "value": 8}]"#,
            false,
        ),
    ] {
        assert_eq!(holds(patch), expected, "{patch}");
    }
    let whole =
        serde_json::to_string(&json!([{"op": "test", "path": "", "value": {"b": 1, "a": null}}]));
    let whole = whole.unwrap();
    assert!(sent(json!({"a": null, "b": 1}), &whole).is_ok());
    assert!(sent(json!({"b": 1}), &whole).is_err());
    let failing = r#"[{"op": "test", "path": "/int", "value": 8}]"#;
    let problem = problem_of(sent(document(), failing));
    assert_eq!(problem, "testing value /int failed: test failed");
    // A patch of a policy has no text, so Go's text is used.
    for (value, expected) in [(json!(7.0), true), (json!("<&>"), false), (json!(8), false)] {
        let patch = json!([{"op": "test", "path": "/int", "value": value}]);
        assert_eq!(
            apply_json(document(), &patch, None).is_ok(),
            expected,
            "{patch}"
        );
    }
}

#[test]
fn rule_31_the_size_of_copies_is_the_one_of_their_text() {
    // 3 MiB with the quotes.
    let text = "x".repeat((3 << 20) - 2);
    let copy = |times| vec![json!({"op": "copy", "from": "/a", "path": "/b"}); times].into();
    assert!(apply_json(json!({"a": text}), &copy(1), None).is_ok());
    for (value, times) in [
        (json!(text), 2),
        (json!(format!("{text}x")), 1),
        (json!("<".repeat(600_000)), 1),
    ] {
        let found = problem_of(apply_json(json!({"a": value}), &copy(times), None));
        assert!(found.ends_with("exceeding the limit 3145728"), "{found}");
    }
    // Null and missing fields are free.
    assert!(apply_json(json!({}), &copy(9999), None).is_ok());
}
