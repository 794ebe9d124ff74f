//! Manifests: objects in YAML or JSON, one or several per text.

use std::time::Duration;

use longshore_model::yaml::{self, Unique};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    error::{Error, Result},
    item::Item,
    kind::{Kind, Object},
    kinds::CustomResourceDefinition,
    until,
};

/// The time after which a new kind is considered not served.
const ESTABLISHED: Duration = Duration::from_secs(30);

/// Parses the objects of a text: YAML documents separated by `---` lines, or JSON. Returns
/// the items of a `List`, and of a list of one kind such as a `PodList`. Ignores empty
/// documents.
///
/// # Errors
/// [`Error::Invalid`] names the document, the line and the problem; also if there is no
/// object, an object has no `apiVersion` or `kind`, or a mapping has a key twice.
///
/// ```
/// let objects = longshore_client::manifest::read("
/// apiVersion: v1
/// kind: ConfigMap
/// metadata: {name: a}
/// ---
/// apiVersion: v1
/// kind: Secret
/// metadata: {name: b}
/// ")?;
/// assert_eq!(objects.len(), 2);
/// assert_eq!(objects[1]["kind"], "Secret");
/// # Ok::<(), longshore_client::Error>(())
/// ```
pub fn read(text: &str) -> Result<Vec<Value>> {
    yaml::check(text.as_bytes())
        .map_err(|error| Error::Invalid(format!("cannot read the manifest: {error}")))?;
    let mut objects = Vec::new();
    for (i, document) in serde_yaml_ng::Deserializer::from_str(text).enumerate() {
        let number = i + 1;
        let Unique(value) = Unique::deserialize(document).map_err(|error| {
            Error::Invalid(format!(
                "document {number} of the manifest is not valid YAML: {error}"
            ))
        })?;
        if !value.is_null() {
            take(value, number, &mut objects)?;
        }
    }
    if objects.is_empty() {
        return Err(Error::Invalid(
            "the manifest has no object in it: write apiVersion, kind and metadata".to_owned(),
        ));
    }
    Ok(objects)
}

/// Waits until later objects of a manifest can depend on this one: a new kind is served
/// shortly after its definition is created. Returns at once for other objects.
///
/// # Errors
/// The same as [`Item::wait`].
///
/// ```
/// # longshore_embedded::example(async |cluster| {
/// use longshore_client::manifest;
/// # let definition = "
/// # apiVersion: apiextensions.k8s.io/v1
/// # kind: CustomResourceDefinition
/// # metadata: {name: shoes.example.com}
/// # spec:
/// #   group: example.com
/// #   scope: Namespaced
/// #   names: {plural: shoes, singular: shoe, kind: Shoe, listKind: ShoeList}
/// #   versions:
/// #   - name: v1
/// #     served: true
/// #     storage: true
/// #     schema: {openAPIV3Schema: {type: object}}
/// # ";
/// for object in manifest::read(definition)? {
///     let made = cluster.create(&object, None).await?;
///     manifest::settled(&made).await?;
/// }
/// // The kind is served now.
/// let shoe = serde_json::json!({"metadata": {"name": "boot"}});
/// cluster.kind("shoes").await?.in_namespace("default")?.create(&shoe).await?;
/// # Ok(()) });
/// ```
pub async fn settled<K: Object>(item: &Item<K>) -> Result<()> {
    if item.kind() == &*CustomResourceDefinition::info() {
        item.wait(until::ready, ESTABLISHED).await?;
    }
    Ok(())
}

fn take(mut value: Value, number: usize, objects: &mut Vec<Value>) -> Result<()> {
    let refuse = |problem: String| {
        Err(Error::Invalid(format!(
            "document {number} of the manifest is not a Kubernetes object: {problem}"
        )))
    };
    if !value.is_object() {
        return refuse("expected a mapping".to_owned());
    }
    for key in ["apiVersion", "kind"] {
        match value.get(key) {
            Some(Value::String(text)) if !text.is_empty() => {}
            None | Some(Value::Null | Value::String(_)) => {
                return refuse(format!("it has no {key}: every object needs one"));
            }
            Some(_) => return refuse(format!("its {key} is not a string: quote it")),
        }
    }
    let is_list = value["apiVersion"] == "v1" && value["kind"] == "List";
    // A list of one kind, as servers return it. Its items may have no kind.
    let of_kind = value["kind"].as_str().and_then(|kind| {
        let kind = kind.strip_suffix("List")?;
        (!kind.is_empty() && value["items"].is_array()).then(|| kind.to_owned())
    });
    if !is_list && of_kind.is_none() {
        objects.push(value);
        return Ok(());
    }
    let api_version = value["apiVersion"].take();
    match value["items"].take() {
        Value::Array(items) => items.into_iter().try_for_each(|mut item| {
            if let (Some(kind), Value::Object(item)) = (&of_kind, &mut item)
                && !item.contains_key("kind")
            {
                item.insert("kind".to_owned(), kind.as_str().into());
                item.entry("apiVersion")
                    .or_insert_with(|| api_version.clone());
            }
            take(item, number, objects)
        }),
        Value::Null => Ok(()),
        _ => refuse("the items of its List are not a list".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn refusal(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn documents_lists_and_json_are_read() {
        let text = "# nothing\n---\n---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: A}\n- {apiVersion: v1, kind: B}\n--- \n{\"apiVersion\": \"v1\", \"kind\": \"C\"}\n...\n";
        let kinds: Vec<String> = read(text)
            .unwrap()
            .iter()
            .map(|object| object["kind"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(kinds, ["A", "B", "C"]);
    }

    #[test]
    fn lists_of_one_kind_are_their_items() {
        let list = r#"{"apiVersion": "batch/v1", "kind": "JobList", "metadata": {}, "items": [
            {"metadata": {"name": "a"}},
            {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "b"}}
        ]}"#;
        for object in read(list).unwrap() {
            assert_eq!(object["apiVersion"], "batch/v1");
            assert_eq!(object["kind"], "Job");
        }
        // A custom kind can end in List.
        let own = read("{apiVersion: example.com/v1, kind: AllowList, spec: {}}").unwrap();
        assert_eq!(own[0]["kind"], "AllowList");
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(
            refusal("a: [1\n---\n"),
            "document 1 of the manifest is not valid YAML: did not find expected ',' or ']' at line 2 column 1, while parsing a flow sequence at line 1 column 4"
        );
        assert_eq!(
            refusal("{apiVersion: v1, kind: A}\n---\nhello\n"),
            "document 2 of the manifest is not a Kubernetes object: expected a mapping"
        );
        assert_eq!(
            refusal("kind: A\n"),
            "document 1 of the manifest is not a Kubernetes object: it has no apiVersion: every object needs one"
        );
        assert_eq!(
            refusal("{apiVersion: 1, kind: A}"),
            "document 1 of the manifest is not a Kubernetes object: its apiVersion is not a string: quote it"
        );
        let twice = refusal("{apiVersion: v1, kind: A}\n---\nkind: A\nkind: B\n");
        assert!(
            twice.starts_with("document 2 of the manifest is not valid YAML: "),
            "{twice}"
        );
        assert!(
            twice.ends_with("the key \"kind\" occurs twice at line 4 column 7"),
            "{twice}"
        );
        assert!(refusal("").contains("no object in it"));
        assert!(refusal(&"[".repeat(500)).contains("400 levels deep"));
    }

    #[test]
    fn a_bomb_of_aliases_is_refused() {
        let mut text = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
        for i in 1..12 {
            let before = format!("*a{},", i - 1).repeat(10);
            text += &format!("a{i}: &a{i} [{before}]\n");
        }
        assert!(refusal(&text).contains("excessive aliasing"));
    }

    proptest! {
        #[test]
        fn noise_never_panics(text in r#"[\[\]{}&*!|>:\-a-c "'\n#?,0-9]{0,60}"#) {
            let _ = read(&text);
        }
    }
}
