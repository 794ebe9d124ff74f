//! Defaults of Secrets.

use serde_json::Value;

use crate::json::{self, Object};

/// Encodes `stringData` as base64 and moves it to `data`.
pub(crate) fn secret(object: &mut Object) {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    json::default_text(object, "type", "Opaque");
    if let Some(Value::Object(texts)) = object.remove("stringData") {
        let data = json::child(object, "data");
        for (name, text) in texts {
            let text = STANDARD.encode(text.as_str().unwrap_or_default());
            data.insert(name, text.into());
        }
    }
}
