//! Selectors: parsing, formatting and matching, with examples and arbitrary input.
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
fn label_selectors_match_as_documented_by_kubernetes() {
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
fn errors_of_invalid_label_selectors_contain_the_text_and_the_problem() {
    for text in [
        "a b", "a in b", "a,,b", "=a", "a=b c", "-a=b", "a>x", "a in (b", "a/b/c", ",",
    ] {
        let error = text.parse::<LabelSelector>().unwrap_err().to_string();
        assert!(error.contains(&format!("{text:?}")), "{error}");
    }
}

#[test]
fn rule_20_errors_have_the_messages_of_a_real_server() {
    let name = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    let value = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    let integer = "for 'Gt', 'Lt' operators, the value must be an integer";
    for (text, message) in [
        ("a=b,", "found '', expected: identifier after ','".to_owned()),
        (",a=b", "found ',', expected: !, identifier, or 'end of string'".to_owned()),
        ("a,,b", "found ',', expected: identifier after ','".to_owned()),
        ("a=b c", "found 'c', expected: ',' or 'end of string'".to_owned()),
        ("=b", "found '=', expected: !, identifier, or 'end of string'".to_owned()),
        ("!a=b", "found '=', expected: ',' or 'end of string'".to_owned()),
        ("a=b=c", "found '=', expected: ',' or 'end of string'".to_owned()),
        ("a in (b)c", "found 'c', expected: ',' or 'end of string'".to_owned()),
        ("a in", "unable to parse requirement: found '' expected: '('".to_owned()),
        ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier".to_owned()),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'".to_owned()),
        ("a in (b,", "unable to parse requirement: found '', expected: ',', or identifier".to_owned()),
        ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'".to_owned()),
        ("!!a", "unable to parse requirement: found '!', expected: identifier".to_owned()),
        ("a=(b)", "unable to parse requirement: found '(', expected: identifier".to_owned()),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt".to_owned()),
        ("-a=b", format!("unable to parse requirement: <nil>: Invalid value: \"-a\": {name}")),
        ("/a", "unable to parse requirement: <nil>: Invalid value: \"/a\": prefix part must be non-empty".to_owned()),
        ("a in (c,-b)", format!("unable to parse requirement: values[0][a]: Invalid value: \"-b\": {value}")),
        ("a>b", format!("unable to parse requirement: values[0]: Invalid value: \"b\": {integer}")),
        ("a<-5", format!("unable to parse requirement: values[0][a]: Invalid value: \"-5\": {value}")),
        ("a<-b", format!("unable to parse requirement: [values[0]: Invalid value: \"-b\": {integer}, values[0][a]: Invalid value: \"-b\": {value}]")),
    ] {
        let error = text.parse::<LabelSelector>().unwrap_err();
        assert_eq!(error.server_message(), message, "{text:?}");
    }
    // Unusual, but valid.
    for (text, written) in [
        ("a in ()", "a="),
        ("a in (c,,b)", "a in (,b,c)"),
        ("a in (,b)", "a in (,b)"),
        ("a in(b)", "a=b"),
        ("in in (in,notin)", "in in (in,notin)"),
        ("a=,b!=", "a=,b!="),
        ("  a  =  b  ", "a=b"),
    ] {
        assert_eq!(text.parse::<LabelSelector>().unwrap().to_string(), written);
    }
}

#[test]
fn rule_19_errors_have_the_messages_of_a_real_server() {
    for (text, message) in [
        ("a", "invalid selector: 'a'; can't understand 'a'"),
        (
            "a=b,c>d",
            "invalid selector: 'a=b,c>d'; can't understand 'c>d'",
        ),
        (
            "a=b\\",
            "invalid field selector: invalid escape sequence: \\",
        ),
        (
            "a=b\\x",
            "invalid field selector: invalid escape sequence: \\x",
        ),
        (
            "a=b=c",
            "invalid field selector: unescaped character in value: 61",
        ),
    ] {
        let error = text.parse::<FieldSelector>().unwrap_err();
        assert_eq!(error.server_message(), message, "{text:?}");
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
    fn parsing_and_formatting_round_trips(text in "\\PC{0,40}") {
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
    fn a_covering_selector_matches_whatever_any_of_them_matches(
        texts in prop::collection::vec("([ab](=|!=)[xy]|[ab] in \\([xyz](,[xyz])?\\)|!?[ab])(,[ab](=|!=)[xy]|,!?[ab]){0,2}", 1..4),
        a in prop::option::of("[xyz]"),
        b in prop::option::of("[xyz]"),
    ) {
        let selectors: Vec<LabelSelector> = texts.iter().map(|text| text.parse().unwrap()).collect();
        let pairs = [("a", a), ("b", b)];
        let labels = pairs.iter().filter_map(|(key, value)| Some((*key, value.as_deref()?)));
        let labels = self::labels(&labels.collect::<Vec<_>>());
        if let Some(one) = LabelSelector::covering(&selectors) {
            let any = selectors.iter().any(|selector| selector.matches(&labels));
            prop_assert!(!any || one.matches(&labels), "{one} of {texts:?}");
        }
        // A selector matches only labels that one of its alternatives matches.
        for text in &texts {
            let parts = LabelSelector::alternatives(text).unwrap();
            let whole: LabelSelector = text.parse().unwrap();
            prop_assert!(!whole.matches(&labels) || parts.iter().any(|part| part.matches(&labels)));
        }
    }

    #[test]
    fn exact_labels_match_themselves(key in "[a-z]{1,8}", value in "[a-zA-Z0-9]{0,8}") {
        let selector = LabelSelector::exactly([(key.clone(), value.clone())]).unwrap();
        prop_assert!(selector.matches(&labels(&[(&key, &value)])));
        prop_assert!(!selector.matches(&labels(&[])));
    }
}
