//! Selectors: reading, writing and matching, on examples and on anything.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use longshore_model::{FieldSelector, LabelSelector};
use proptest::prelude::*;

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect()
}

#[test]
fn label_selectors_match_as_kubernetes_documents_them() {
    let object = labels(&[("env", "prod"), ("tier", "db"), ("size", "12")]);
    let cases = [
        ("", true),
        ("env=prod", true),
        ("env==prod", true),
        ("env=dev", false),
        ("env!=dev", true),
        ("absent!=dev", true),
        ("env in (dev, prod)", true),
        ("env notin (dev)", true),
        ("absent notin (dev)", true),
        ("absent in (dev)", false),
        ("env", true),
        ("absent", false),
        ("!absent", true),
        ("!env", false),
        ("size>11", true),
        ("size<12", false),
        ("env>1", false),
        ("env=prod,tier=web", false),
        ("env in (prod,dev),tier", true),
    ];
    for (text, expected) in cases {
        let selector: LabelSelector = text.parse().unwrap();
        assert_eq!(selector.matches(&object), expected, "{text}");
    }
}

#[test]
fn bad_label_selectors_are_refused_with_the_text_and_the_problem() {
    for text in [
        "a b", "a in b", "a,,b", "=a", "a=b c", "-a=b", "a>x", "a in (b", "a/b/c", ",",
    ] {
        let error = text.parse::<LabelSelector>().unwrap_err().to_string();
        assert!(error.contains(&format!("{text:?}")), "{error}");
    }
}

#[test]
fn field_selectors_escape_their_values() {
    let selector = FieldSelector::everything().with("a", "x,y=z\\");
    assert_eq!(selector.to_string(), "a=x\\,y\\=z\\\\");
    let read: FieldSelector = selector.to_string().parse().unwrap();
    assert_eq!(read, selector);
    assert_eq!(read.required("a"), Some("x,y=z\\"));
}

proptest! {
    #[test]
    fn what_is_read_is_written_the_same(text in "\\PC{0,40}") {
        if let Ok(selector) = text.parse::<LabelSelector>() {
            let again: LabelSelector = selector.to_string().parse().unwrap();
            prop_assert_eq!(again, selector);
        }
        if let Ok(selector) = text.parse::<FieldSelector>() {
            let again: FieldSelector = selector.to_string().parse().unwrap();
            prop_assert_eq!(again, selector);
        }
    }

    #[test]
    fn exact_labels_match_themselves(key in "[a-z]{1,8}", value in "[a-zA-Z0-9]{0,8}") {
        let selector = LabelSelector::exactly([(key.clone(), value.clone())]).unwrap();
        prop_assert!(selector.matches(&labels(&[(&key, &value)])));
        prop_assert!(!selector.matches(&labels(&[])));
    }
}
