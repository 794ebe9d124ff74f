//! Compares the scanner with serde_json.
#![allow(clippy::unwrap_used)]
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn accepts(text: &str) -> bool {
    let mut scanner = Scanner::new(text.as_bytes());
    scanner.value().and_then(|_| scanner.end()).is_ok()
}

#[test]
fn finds_by_path() {
    let text = br#" {"a" : {"b":[1, {"c":"}"}], "d": null }, "e":"x\"y"} "#;
    let found = |path: &[&str]| {
        find(text, path)
            .unwrap()
            .map(|v| String::from_utf8_lossy(v).into_owned())
    };
    assert_eq!(found(&["a", "b"]).unwrap(), r#"[1, {"c":"}"}]"#);
    assert_eq!(found(&["e"]).unwrap(), r#""x\"y""#);
    assert_eq!(found(&["a", "d"]), None);
    assert_eq!(found(&["a", "d", "f"]), None);
    assert_eq!(found(&["z"]), None);
    assert!(find(b"[1]", &["a"]).is_err());
}

#[test]
fn depth_is_limited() {
    let deep = |n: usize| "[".repeat(n) + &"]".repeat(n);
    assert!(accepts(&deep(100)));
    // The innermost array is empty and does not count.
    assert!(accepts(&deep(10_001)));
    assert!(!accepts(&deep(10_002)));
    assert!(!accepts(&"{\"a\":".repeat(1_000_000)));
}

#[test]
fn brackets_must_match_at_any_depth() {
    for depth in [1, 63, 64, 65, 127, 128, 129, 200, 1_000] {
        // The pattern of objects and arrays is not periodic in two, so that a mistake at any
        // depth is found.
        let object = |level: usize| level.is_multiple_of(3) || level.is_multiple_of(7);
        let mut text = String::new();
        for level in 0..depth {
            text += if object(level) { "{\"a\":" } else { "[" };
        }
        text += "1";
        for level in (0..depth).rev() {
            text.push(if object(level) { '}' } else { ']' });
        }
        assert!(accepts(&text), "{depth}");
        for at in text.len() - depth..text.len() {
            let mut wrong = text.clone().into_bytes();
            wrong[at] = if wrong[at] == b'}' { b']' } else { b'}' };
            assert!(
                !accepts(std::str::from_utf8(&wrong).unwrap()),
                "{depth} {at}"
            );
        }
    }
}

pub(crate) fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(".*", inner, 0..6).prop_map(|map| json!(map)),
        ]
    })
}

proptest! {
    #[test]
    fn agrees_with_serde_json_on_random_text(text in r#"[\[\]{}",:\\ 0-9eE+.\-a-u\x00-\x1f\n]{0,24}"#) {
        prop_assert_eq!(accepts(&text), serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok());
    }

    #[test]
    fn accepts_json_and_rejects_truncated_objects(value in any_json(), cut in any::<prop::sample::Index>()) {
        let text = json!({ "v": value }).to_string();
        prop_assert!(accepts(&text));
        prop_assert!(accepts(&serde_json::to_string_pretty(&json!([value])).unwrap()));
        let cut = cut.index(text.len());
        if text.is_char_boundary(cut) {
            prop_assert!(!accepts(&text[..cut]));
        }
    }

    #[test]
    fn agrees_with_serde_json_after_a_changed_byte(value in any_json(), at in any::<prop::sample::Index>(), byte in 0_u8..128) {
        let mut text = json!({ "v": value }).to_string().into_bytes();
        let at = at.index(text.len());
        text[at] = byte;
        if let Ok(text) = String::from_utf8(text) {
            prop_assert_eq!(accepts(&text), serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok());
        }
    }
}
