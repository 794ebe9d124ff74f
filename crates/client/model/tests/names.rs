//! Names, quantities and kinds: their rules, with examples and arbitrary input.
#![allow(clippy::unwrap_used)]

use longshore_model::{Quantity, kind, name};
use proptest::prelude::*;

#[test]
fn label_keys_and_values_follow_the_documented_rules() {
    for key in ["a", "a.b/c", "example.com/A_b.c-1"] {
        name::label_key(key).unwrap();
    }
    for key in ["", "/a", "a/", "a/b/c", "A.b/c", "-a", "a b"] {
        assert!(name::label_key(key).is_err(), "{key}");
    }
    name::label_value("").unwrap();
    assert!(name::label_value(&"a".repeat(64)).is_err());
}

#[test]
fn subdomains_may_have_dots_and_labels_may_not() {
    name::dns_subdomain("name", "a.b-c.1").unwrap();
    assert!(name::dns_subdomain("name", "a..b").is_err());
    let error = name::dns_label("namespace", "a.b").unwrap_err().to_string();
    assert!(
        error.starts_with("invalid namespace \"a.b\": use at most 63"),
        "{error}"
    );
}

#[test]
fn quantities_have_the_units_of_kubernetes() {
    let cases = [
        ("1", 1.0),
        ("100m", 0.1),
        ("1k", 1e3),
        ("1Ki", 1024.0),
        ("1e3", 1e3),
        ("-0.5", -0.5),
    ];
    for (text, value) in cases {
        assert!(
            (text.parse::<Quantity>().unwrap().value() - value).abs() < 1e-12,
            "{text}"
        );
    }
    for text in ["", "Ei", "1 Gi", "1GiB", "NaN", "inf", "--1", "1e3Gi"] {
        assert!(text.parse::<Quantity>().is_err(), "{text}");
    }
}

#[test]
fn every_kind_is_found_by_each_of_its_names() {
    for info in kind::BUILTIN {
        let names = [&info.plural, &info.singular, &info.gvk.kind].map(|name| name.to_string());
        let short = info.short_names.iter().map(str::to_owned);
        for name in names.into_iter().chain(short).chain([info.qualified()]) {
            assert_eq!(kind::by_name(&name).unwrap(), info, "{name}");
        }
    }
}

proptest! {
    #[test]
    fn any_text_can_be_converted_to_a_label(text in "\\PC{0,100}", limit in 10_usize..70) {
        let label = name::to_dns_label(&text, limit);
        prop_assert!(label.len() <= limit.min(63));
        prop_assert!(name::dns_label("name", &label).is_ok(), "{label}");
    }

    #[test]
    fn any_text_can_be_converted_to_a_label_value(text in "\\PC{0,100}") {
        let value = name::to_label_value(&text);
        prop_assert!(name::label_value(&value).is_ok(), "{value}");
        prop_assert_eq!(value.is_empty(), text.is_empty());
        if name::label_value(&text).is_ok() {
            prop_assert_eq!(value, text);
        }
    }

    #[test]
    fn rule_32_the_canonical_form_of_a_quantity_keeps_its_value_and_is_stable(
        number in -1_000_000_i64..1_000_000, fraction in 0_u32..1000,
        suffix in prop::sample::select(vec!["", "m", "k", "M", "G", "Ki", "Mi", "Gi", "e3", "E2", "e-1"]),
    ) {
        let quantity: Quantity = format!("{number}.{fraction:03}{suffix}").parse().unwrap();
        let usual: Quantity = quantity.canonical().parse().unwrap();
        let difference = (usual.value() - quantity.value()).abs();
        prop_assert!(difference <= quantity.value().abs() * 1e-9 + 1e-9, "{quantity} {usual}");
        prop_assert_eq!(usual.canonical(), usual.to_string());
        let milli: Quantity = quantity.canonical_milli().parse().unwrap();
        prop_assert!((milli.value() - quantity.value()).abs() <= 1.1e-3 + quantity.value().abs() * 1e-9);
        prop_assert_eq!(milli.canonical_milli(), milli.to_string());
    }

    #[test]
    fn quantities_never_panic(text in "\\PC{0,20}") {
        if let Ok(quantity) = text.parse::<Quantity>() {
            quantity.canonical().parse::<Quantity>().unwrap();
            prop_assert_eq!(quantity.to_string(), text);
        }
    }
}
