//! Path elements in the notation of `FieldsV1`: `f:` with the name of a field,
//! `k:` with the keys of a list item, `v:` with the value of a set member.
//! Elements are equal if their texts are equal.

use longshore_schema::OwnedType;
use serde_json::{Map, Value};

/// An element of a path.
pub(crate) type Element = Box<str>;

/// The element of a field.
pub(super) fn field(name: &str) -> Element {
    ["f:", name].concat().into()
}

/// The field name, if the element is a field.
pub(super) fn field_name(element: &str) -> Option<&str> {
    element.strip_prefix("f:")
}

/// The element of an item in a list with keys.
pub(super) fn item(list: OwnedType<'_>, item: &Value) -> Result<Element, String> {
    let Value::Object(fields) = item else {
        let what = if item.is_null() {
            "a null element"
        } else {
            "non-map elements"
        };
        return Err(format!("associative list with keys may not have {what}"));
    };
    let mut names: Vec<&str> = list.keys().collect();
    names.sort_unstable();
    let mut text = KeyEncoder::new();
    for name in names {
        match fields.get(name) {
            Some(value) => text.push(name, value),
            None => {
                let default = list.items().field(name).and_then(OwnedType::key_default);
                let default = default.ok_or_else(|| {
                    format!(
                        "associative list with keys has an element that omits key field {name:?} (and doesn't have default value)"
                    )
                })?;
                text.push(name, &default);
            }
        }
    }
    Ok(text.end())
}

/// Encodes keys in order.
struct KeyEncoder(Vec<u8>);

impl KeyEncoder {
    fn new() -> Self {
        let mut text = Vec::with_capacity(64);
        text.extend_from_slice(b"k:{");
        Self(text)
    }

    fn push(&mut self, name: &str, value: &Value) {
        if !self.0.ends_with(b"{") {
            self.0.push(b',');
        }
        // Writing to memory cannot fail.
        let _ = serde_json::to_writer(&mut self.0, name);
        self.0.push(b':');
        let _ = serde_json::to_writer(&mut self.0, value);
    }

    fn end(mut self) -> Element {
        self.0.push(b'}');
        // serde_json writes UTF-8.
        String::from_utf8(self.0).unwrap_or_default().into()
    }
}

/// The element of a value in a set.
pub(super) fn member(value: &Value) -> Result<Element, String> {
    match value {
        Value::Object(_) => {
            Err("associative list without keys has an element that's a map type".into())
        }
        Value::Array(_) => Err("not supported: associative list with lists as elements".into()),
        Value::Null => {
            Err("associative list without keys has an element that's an explicit null".into())
        }
        value => Ok(format!("v:{value}").into()),
    }
}

/// Normalizes an element that a client sent; `None` if its type is unknown.
pub(super) fn normalize(text: &str) -> Option<Element> {
    let (sort, rest) = text.split_once(':')?;
    match sort {
        "f" => Some(text.into()),
        "k" => {
            let keys: Map<String, Value> = serde_json::from_str(rest).ok()?;
            let mut keys: Vec<_> = keys.into_iter().collect();
            keys.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
            let mut text = KeyEncoder::new();
            keys.iter().for_each(|(name, value)| text.push(name, value));
            Some(text.end())
        }
        "v" => Some(format!("v:{}", serde_json::from_str::<Value>(rest).ok()?).into()),
        "i" => Some(format!("i:{}", rest.parse::<i64>().ok()?).into()),
        _ => None,
    }
}

/// Appends the element as error messages show it: `.name`, `[name="a"]`,
/// `[="a"]`.
pub(super) fn format_into(element: &str, out: &mut String) {
    match element.split_once(':') {
        Some(("f", name)) => {
            out.push('.');
            out.push_str(name);
        }
        Some(("k", keys)) => {
            let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
            let shown: Vec<_> = keys
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            out.push('[');
            out.push_str(&shown.join(","));
            out.push(']');
        }
        Some(("v", value)) => out.push_str(&format!("[={value}]")),
        Some((_, index)) => out.push_str(&format!("[{index}]")),
        None => out.push_str(element),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use longshore_model::Gvk;
    use longshore_schema::registry;
    use serde_json::json;

    use super::*;

    fn ports() -> OwnedType<'static> {
        let container = registry().named("io.k8s.api.core.v1.Container").unwrap();
        OwnedType::Builtin(container.field("ports").unwrap())
    }

    #[test]
    fn rule_18_items_are_identified_by_their_keys_and_key_defaults() {
        let element = item(ports(), &json!({"containerPort": 80, "name": "x"})).unwrap();
        assert_eq!(&*element, r#"k:{"containerPort":80,"protocol":"TCP"}"#);
        assert!(item(ports(), &json!("x")).unwrap_err().contains("non-map"));
        assert!(item(ports(), &json!(null)).unwrap_err().contains("null"));
    }

    #[test]
    fn sets_contain_only_scalars() {
        assert_eq!(&*member(&json!("a/b")).unwrap(), r#"v:"a/b""#);
        for wrong in [json!({}), json!([]), json!(null)] {
            assert!(member(&wrong).is_err());
        }
    }

    #[test]
    fn elements_from_clients_are_normalized() {
        for (given, usual_form) in [
            (
                r#"k:{ "protocol":"TCP", "a":1 }"#,
                Some(r#"k:{"a":1,"protocol":"TCP"}"#),
            ),
            (r#"v: "x""#, Some(r#"v:"x""#)),
            ("f:a:b", Some("f:a:b")),
            ("i:07", Some("i:7")),
            ("z:1", None),
            ("k:[]", None),
            ("name", None),
        ] {
            assert_eq!(normalize(given).as_deref(), usual_form, "{given}");
        }
    }

    #[test]
    fn paths_are_formatted_as_in_error_messages() {
        let mut shown = String::new();
        for element in ["f:spec", r#"k:{"a":1,"b":"x"}"#, r#"v:"y""#, "i:3"] {
            format_into(element, &mut shown);
        }
        assert_eq!(shown, r#".spec[a=1,b="x"][="y"][3]"#);
        let root = registry().root(&Gvk::from_api_version("v1", "Pod"));
        assert!(root.is_some());
    }
}
