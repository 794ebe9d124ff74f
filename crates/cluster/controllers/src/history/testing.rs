//! Revisions for the unit tests.

use std::sync::Arc;

use serde_json::{Value, json};

use super::revision::{Revision, data};
use crate::key::Key;

/// A template with this image.
pub(crate) fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "web"}},
           "spec": {"containers": [{"name": "main", "image": image}]}})
}

/// The revision of the set `web` with this image.
pub(crate) fn revision(number: i64, image: &str) -> Arc<Revision> {
    Arc::new(Revision {
        key: Key::new("a", &format!("web-{image}")),
        uid: image.into(),
        version: "1".into(),
        created: None,
        deleting: false,
        owner: Some(("web".into(), "s1".into())),
        labels: [
            ("app".into(), "web".into()),
            ("controller-revision-hash".into(), image.into()),
        ]
        .into(),
        number,
        data: data(&template(image)),
    })
}
