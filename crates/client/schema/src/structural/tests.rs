//! Rule 30: structural schemas prune, set defaults and validate.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn schema(spec: Value) -> Structural {
    Structural::parse(&json!({"type": "object", "properties": {"spec": spec}}))
}

fn messages(spec: Value, value: Value) -> Vec<String> {
    let causes = schema(spec).validate("", &json!({"spec": value}));
    causes
        .iter()
        .map(|cause| format!("{}: {}", cause.field, cause.message))
        .collect()
}

#[test]
fn rule_30_unknown_fields_are_dropped() {
    let schema = schema(json!({"type": "object", "properties": {
        "a": {"type": "string"},
        "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"x": {"type": "integer"}}}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"typed": {"type": "object", "properties": {"y": {"type": "integer"}}}}},
        "list": {"type": "array", "items": {"type": "object", "properties": {"z": {"type": "integer"}}}},
        "inner": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
    }}));
    let mut object = json!({
        "apiVersion": "a/v1", "kind": "K", "metadata": {"name": "n"}, "top": 1,
        "spec": {"a": "x", "b": 1, "map": {"k": {"x": 1, "q": 2}}, "free": {"u": 1, "typed": {"y": 1, "w": 2}},
            "list": [{"z": 1}, {"z": 2, "o": 3}], "inner": {"apiVersion": "v1", "data": {}}},
    });
    assert_eq!(
        schema.prune(&mut object),
        [
            "spec.b",
            "spec.free.typed.w",
            "spec.list[1].o",
            "spec.map.k.q",
            "top"
        ]
    );
    assert_eq!(
        object,
        json!({
            "apiVersion": "a/v1", "kind": "K", "metadata": {"name": "n"},
            "spec": {"a": "x", "map": {"k": {"x": 1}}, "free": {"u": 1, "typed": {"y": 1}},
                "list": [{"z": 1}, {"z": 2}], "inner": {"apiVersion": "v1", "data": {}}},
        })
    );
}

#[test]
fn rule_30_defaults_are_set_and_nulls_dropped() {
    let schema = schema(json!({"type": "object", "properties": {
        "a": {"type": "string", "default": "x"},
        "b": {"type": "string", "nullable": true, "default": "x"},
        "c": {"type": "string"},
        "o": {"type": "object", "default": {}, "properties": {"d": {"type": "integer", "default": 5}}},
        "l": {"type": "array", "items": {"type": "object", "properties": {"e": {"type": "boolean", "default": false}}}},
    }}));
    let mut object = json!({"spec": {"a": null, "b": null, "c": null, "l": [{}]}});
    schema.fill(&mut object);
    assert_eq!(
        object,
        json!({"spec": {"a": "x", "b": null, "o": {"d": 5}, "l": [{"e": false}]}})
    );
}

#[test]
fn rule_30_invalid_values_get_the_messages_of_kubernetes() {
    let cases = [
        (
            json!({"type": "integer"}),
            json!("x"),
            r#"spec: Invalid value: "string": spec in body must be of type integer: "string""#,
        ),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!(true),
            r#"spec: Invalid value: "boolean": spec in body must be of type integer,string: "boolean""#,
        ),
        (
            json!({"type": "object", "required": ["a"]}),
            json!({}),
            "spec.a: Required value",
        ),
        (
            json!({"type": "string", "enum": ["a", "b"]}),
            json!("c"),
            r#"spec: Unsupported value: "c": supported values: "a", "b""#,
        ),
        (
            json!({"type": "integer", "minimum": 1}),
            json!(0),
            "spec: Invalid value: 0: spec in body should be greater than or equal to 1",
        ),
        (
            json!({"type": "integer", "maximum": 10, "exclusiveMaximum": true}),
            json!(10),
            "spec: Invalid value: 10: spec in body should be less than 10",
        ),
        (
            json!({"type": "integer", "multipleOf": 3}),
            json!(4),
            "spec: Invalid value: 4: spec in body should be a multiple of 3",
        ),
        (
            json!({"type": "string", "pattern": "^[a-z]+$"}),
            json!("A"),
            r#"spec: Invalid value: "A": spec in body should match '^[a-z]+$'"#,
        ),
        (
            json!({"type": "string", "maxLength": 2}),
            json!("abc"),
            "spec: Too long: may not be more than 2 bytes",
        ),
        (
            json!({"type": "string", "minLength": 1}),
            json!(""),
            r#"spec: Invalid value: "": spec in body should be at least 1 chars long"#,
        ),
        (
            json!({"type": "string", "format": "ipv4"}),
            json!("x"),
            r#"spec: Invalid value: "x": spec in body must be of type ipv4: "x""#,
        ),
        (
            json!({"type": "array", "maxItems": 1, "items": {"type": "integer"}}),
            json!([1, 2]),
            "spec: Too many: 2: must have at most 1 items",
        ),
        (
            json!({"type": "array", "items": {"type": "object", "properties": {"a": {"type": "integer"}}}}),
            json!([{"a": "x"}]),
            r#"spec[0].a: Invalid value: "string": spec[0].a in body must be of type integer: "string""#,
        ),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            json!([null]),
            r#"spec[0]: Invalid value: "null": spec[0] in body must be of type string: "null""#,
        ),
    ];
    for (spec, value, message) in cases {
        assert_eq!(messages(spec, value), [message]);
    }
    assert_eq!(
        messages(json!({"type": "integer"}), json!(1.5)),
        [
            r#"spec: Invalid value: "number": spec in body must be of type integer: "number""#,
            r#"<nil>: Invalid value: "": Checked value must be of type integer (default format) in spec"#,
        ]
    );
    assert_eq!(
        messages(
            json!({"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}),
            json!({}),
        ),
        [
            r#"<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found none valid"#,
            "spec.a: Required value",
        ]
    );
}

#[test]
fn rule_30_duplicates_in_sets_and_maps_are_rejected() {
    let schema = schema(json!({"type": "object", "properties": {
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "properties": {"name": {"type": "string"}, "x": {"type": "integer"}}}},
    }}));
    let object = json!({"spec": {"set": ["a", "b", "a", "a"], "map": [{"name": "a", "x": 1}, {"name": "a"}]}});
    let found: Vec<_> = schema
        .duplicates(&object)
        .iter()
        .map(|cause| format!("{}: {}", cause.field, cause.message))
        .collect();
    assert_eq!(
        found,
        [
            r#"spec.map[1]: Duplicate value: {"name":"a"}"#,
            r#"spec.set[2]: Duplicate value: "a""#
        ]
    );
}

#[test]
fn rule_30_schemas_that_are_not_structural_are_rejected() {
    let check = |schema: Value| -> Vec<String> {
        let causes = rules::check(&schema, "s", false);
        causes
            .iter()
            .map(|cause| format!("{}: {}", cause.field, cause.message))
            .collect()
    };
    let good = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "a": {"type": "string", "default": "x"}, "p": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}}}}});
    assert!(check(good).is_empty());
    for (schema, message) in [
        (
            json!({"properties": {}}),
            "s.type: Required value: must not be empty at the root",
        ),
        (
            json!({"type": "string"}),
            r#"s.type: Invalid value: "string": must be object at the root"#,
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "array"}}}),
            "s.properties[a].items: Required value: must be specified",
        ),
        (
            json!({"type": "object", "properties": {"a": {}}}),
            "s.properties[a].type: Required value: must not be empty for specified object fields",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "integer", "default": "x"}}}),
            r#"s.properties[a].default: Invalid value: "string":  in body must be of type integer: "string""#,
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "shoe"}}}),
            r#"s.properties[a].type: Unsupported value: "shoe": supported values: "array", "boolean", "integer", "number", "object", "string""#,
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "object", "anyOf": [{"properties": {"b": {"minimum": 1}}}]}}}),
            "s.properties[a].properties[b]: Required value: because it is defined in s.properties[a].anyOf[0].properties[b]",
        ),
        (
            json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}}),
            "s.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "properties": {"k": {"type": "string"}}}}}}),
            "s.properties[a].items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
        ),
    ] {
        assert_eq!(check(schema), [message]);
    }
}

/// Arbitrary schemas, valid or not.
fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string", "default": "x"})),
        Just(json!({"type": "integer", "default": 3, "minimum": 1})),
        Just(json!({"type": "boolean", "nullable": true})),
        Just(json!({"type": "string", "pattern": "(", "format": "date"})),
        Just(json!({"x-kubernetes-int-or-string": true})),
        Just(json!({"x-kubernetes-preserve-unknown-fields": true})),
        Just(json!(7)),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::btree_map("[abc]", inner.clone(), 0..4)
                .prop_map(|properties| json!({"type": "object", "properties": properties})),
            inner.clone().prop_map(|items| json!({"type": "array", "items": items, "x-kubernetes-list-type": "set"})),
            inner.clone().prop_map(|values| json!({"type": "object", "additionalProperties": values, "default": {"a": null}})),
            prop::collection::vec(inner, 0..3).prop_map(|any| json!({"anyOf": any, "oneOf": any, "not": {"required": ["a"]}})),
        ]
    })
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-c]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[abcd]", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

proptest! {
    #[test]
    fn pruning_and_setting_defaults_are_idempotent(schema in any_schema(), value in any_value()) {
        let schema = Structural::parse(&json!({"type": "object", "properties": {"spec": schema}}));
        let mut once = json!({"spec": value});
        schema.prune(&mut once);
        let mut twice = once.clone();
        prop_assert!(schema.prune(&mut twice).is_empty());
        prop_assert_eq!(&twice, &once);
        schema.fill(&mut once);
        let mut twice = once.clone();
        schema.fill(&mut twice);
        prop_assert_eq!(twice, once);
    }

    #[test]
    fn arbitrary_schemas_and_values_do_not_panic(schema in any_schema(), value in any_value()) {
        let _ = rules::check(&schema, "s", true);
        let parsed = Structural::parse(&schema);
        let _ = (parsed.validate("", &value), parsed.duplicates(&value), parsed.visit_embedded(&mut value.clone(), &mut |_, _| {}));
    }
}
