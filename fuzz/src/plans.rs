//! `longshore.toml`: each file is rejected or becomes a plan. The objects of a plan have
//! valid names and no unknown fields, and its YAML parses to the same objects.

use longshore_launcher::{Flags, Settings, config, plan::plan};
use longshore_model::{Gvk, name};
use serde_json::Value;

pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Ok(settings) = Settings::parse(text, "longshore.toml".as_ref()) else {
        return;
    };
    let flags = Flags {
        command: vec!["true".to_owned()],
        ..Flags::default()
    };
    let spec = match config::resolve(&settings, &flags, "folder") {
        // Larger plans take longer and test nothing more.
        Ok(spec) if spec.tasks() <= 64 => spec,
        Ok(_) => return,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let namespace = spec.namespace.as_deref().unwrap_or("default");
    let Ok(plan) = plan(&spec, &spec.run_name("ab2cd"), namespace, None) else {
        return;
    };
    let objects = plan.objects().into_iter();
    let objects: Vec<Value> = objects
        .map(|object| serde_json::to_value(object).unwrap())
        .collect();
    for object in &objects {
        check_object(object);
    }
    let yaml = plan.to_yaml().unwrap();
    let documents = serde_yaml_ng::Deserializer::from_str(&yaml);
    let read: Vec<Value> = documents
        .map(|document| serde::Deserialize::deserialize(document).unwrap())
        .collect();
    assert_eq!(read, objects);
}

fn check_object(object: &Value) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let named = text(&object["metadata"]["name"]);
    name::dns_label("name", &named).unwrap();
    let gvk = Gvk::from_api_version(&text(&object["apiVersion"]), &text(&object["kind"]));
    let unknown = longshore_schema::unknown_fields(&gvk, object);
    assert!(unknown.is_empty(), "{unknown:?}");
    for labels in [
        &object["metadata"]["labels"],
        &object["spec"]["template"]["metadata"]["labels"],
    ] {
        for (key, value) in labels.as_object().into_iter().flatten() {
            name::label_key(key).unwrap();
            name::label_value(value.as_str().unwrap()).unwrap();
        }
    }
}
