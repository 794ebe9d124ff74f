//! Presents objects, lists and events in the shape that the client requested. Objects are passed as
//! the bytes that the engine stores; only tables parse them.

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use longshore_engine::{Engine, Object, Page};
use longshore_model::KindInfo;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use crate::{
    body::{Body, coalesce},
    call::Call,
    negotiate::Shape,
    status_error::StatusError,
    table::{self, Printer},
};

/// The part of an object that its table row includes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Include {
    Nothing,
    Metadata,
    Object,
}

/// Presents objects of a kind in a shape.
pub(crate) struct Presenter {
    info: Arc<KindInfo>,
    shape: Shape,
    include: Include,
    printer: Printer,
    /// Start of a stored object with its kind, which lists omit because the
    /// list states it. `None` for custom objects, which keep their kind (as in
    /// Kubernetes).
    type_prefix: Option<String>,
    /// Provides the clock for ages.
    engine: Engine,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    metadata: Option<&'a RawValue>,
}

impl Presenter {
    /// Reads `includeObject` if the shape is a table.
    pub(crate) fn new(call: &Call, info: Arc<KindInfo>, shape: Shape) -> Result<Self, StatusError> {
        let include = match call.query.get("includeObject") {
            None | Some("Metadata") => Include::Metadata,
            Some("None") => Include::Nothing,
            Some("Object") => Include::Object,
            Some(other) => {
                return Err(StatusError::bad_request(format!(
                    "unrecognized includeObject value: {other:?}: use None, Metadata or Object"
                )));
            }
        };
        // The definition does not describe a subresource of another kind.
        let custom = call.custom.as_ref().filter(|custom| custom.info == info);
        let type_prefix = call
            .custom
            .as_ref()
            .is_some_and(|kind| kind.custom.is_none());
        let type_prefix = type_prefix.then(|| {
            let (version, kind) = (info.api_version(), &info.gvk.kind);
            format!(r#"{{"kind":"{kind}","apiVersion":"{version}","#)
        });
        let printer = match custom.and_then(|served| served.custom.clone()) {
            Some(custom) => table::custom_printer(custom),
            None => table::printer(&info.gvk),
        };
        Ok(Self {
            info,
            shape,
            include,
            printer,
            type_prefix,
            engine: call.shared.engine.clone(),
        })
    }

    /// Returns true if the objects are of a custom kind.
    pub(crate) fn is_custom(&self) -> bool {
        self.type_prefix.is_none()
    }

    /// Presents one object.
    pub(crate) fn object(&self, object: &Object) -> Bytes {
        match self.shape {
            Shape::Table(version) => self.table(
                version,
                object.bytes(),
                &object.revision().to_string(),
                true,
            ),
            Shape::Metadata(version) => metadata_only(object.bytes(), version),
            _ => object.bytes().clone(),
        }
    }

    /// Presents the object of a watch event as JSON; only the first table has
    /// the columns.
    pub(crate) fn event(&self, object: &Bytes, revision: u64, first: bool) -> Bytes {
        match self.shape {
            Shape::Table(version) => self.table(version, object, &revision.to_string(), first),
            Shape::Metadata(version) => metadata_only(object, version),
            _ => object.clone(),
        }
    }

    fn table(&self, version: &str, object: &Bytes, revision: &str, columns: bool) -> Bytes {
        let mut bytes = self
            .table_head(version, &json!({"resourceVersion": revision}), columns)
            .into_bytes();
        bytes.extend_from_slice(&self.row(object, version, self.engine.now()));
        bytes.extend_from_slice(b"]}");
        bytes.into()
    }

    fn table_head(&self, version: &str, metadata: &Value, columns: bool) -> String {
        let columns = if columns {
            self.printer.definitions()
        } else {
            Value::Null
        };
        format!(
            r#"{{"kind":"Table","apiVersion":"meta.k8s.io/{version}","metadata":{metadata},"columnDefinitions":{columns},"rows":["#
        )
    }

    fn row(&self, object: &Bytes, version: &str, now: Timestamp) -> Bytes {
        let value: Value = serde_json::from_slice(object).unwrap_or_default();
        let cells = Value::from(self.printer.cells(&value, now));
        let mut row = format!(r#"{{"cells":{cells}"#).into_bytes();
        if let Some(conditions) = self.printer.conditions(&value) {
            row.extend_from_slice(format!(r#","conditions":{conditions}"#).as_bytes());
        }
        match self.include {
            Include::Nothing => {}
            Include::Metadata => {
                row.extend_from_slice(br#","object":"#);
                row.extend_from_slice(&metadata_only(object, version));
            }
            Include::Object => {
                row.extend_from_slice(br#","object":"#);
                row.extend_from_slice(object);
            }
        }
        row.push(b'}');
        row.into()
    }

    /// Presents a page of a list, rendered while it is sent.
    pub(crate) fn list(self, page: Page) -> Body {
        let mut metadata = json!({"resourceVersion": page.revision.to_string()});
        if let Some(cursor) = page.cursor {
            metadata["continue"] = cursor.into();
        }
        if let Some(remaining) = page.remaining {
            metadata["remainingItemCount"] = remaining.into();
        }
        let items = page.items;
        match self.shape {
            Shape::Table(version) => {
                let head = self.table_head(version, &metadata, true);
                let now = self.engine.now();
                let rows = items
                    .into_iter()
                    .map(move |item| self.row(item.bytes(), version, now));
                Body::chunks(coalesce(joined(head, rows)), None)
            }
            Shape::MetadataList(version) => {
                let head = format!(
                    r#"{{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/{version}","metadata":{metadata},"items":["#
                );
                let parts = items
                    .into_iter()
                    .map(|item| metadata_only(item.bytes(), version));
                Body::chunks(coalesce(joined(head, parts)), None)
            }
            _ => {
                let head = format!(
                    r#"{{"kind":"{}","apiVersion":"{}","metadata":{metadata},"items":["#,
                    self.info.list_kind(),
                    self.info.api_version()
                );
                let bytes: usize = items.iter().map(|item| item.bytes().len()).sum();
                let commas = items.len().saturating_sub(1);
                let length = head.len() + bytes + commas + END.len();
                let all_have_prefix = |type_prefix: &String| {
                    let begins =
                        |item: &Arc<Object>| item.bytes().starts_with(type_prefix.as_bytes());
                    items.iter().all(begins)
                };
                let Some(type_prefix) = self
                    .type_prefix
                    .as_ref()
                    .filter(|type_prefix| all_have_prefix(type_prefix))
                else {
                    let parts = items.into_iter().map(|item| item.bytes().clone());
                    return Body::chunks(coalesce(joined(head, parts)), Some(length as u64));
                };
                let left_out = type_prefix.len() - 1;
                let length = length - items.len() * left_out;
                let open = if items.is_empty() { "" } else { "{" };
                let parts = items
                    .into_iter()
                    .map(move |item| item.bytes().slice(left_out + 1..));
                let parts = joined_by(b",{", head + open, parts);
                Body::chunks(coalesce(parts), Some(length as u64))
            }
        }
    }
}

/// End of a list, with the newline that Go's encoder adds.
const END: &[u8] = b"]}\n";

/// Returns the head, the parts separated by commas, and the end.
fn joined(
    head: String,
    parts: impl Iterator<Item = Bytes> + Send + 'static,
) -> impl Iterator<Item = Bytes> + Send + 'static {
    joined_by(b",", head, parts)
}

/// Like [`joined`], with another separator.
fn joined_by(
    between: &'static [u8],
    head: String,
    parts: impl Iterator<Item = Bytes> + Send + 'static,
) -> impl Iterator<Item = Bytes> + Send + 'static {
    let parts = parts.enumerate().flat_map(move |(i, part)| {
        (i > 0)
            .then_some(Bytes::from_static(between))
            .into_iter()
            .chain([part])
    });
    std::iter::once(Bytes::from(head))
        .chain(parts)
        .chain([Bytes::from_static(END)])
}

/// Returns the `PartialObjectMetadata` of an object, with the metadata's
/// original text.
fn metadata_only(object: &[u8], version: &str) -> Bytes {
    let envelope: Option<Envelope<'_>> = serde_json::from_slice(object).ok();
    let metadata = envelope
        .and_then(|envelope| envelope.metadata)
        .map_or("{}", RawValue::get);
    format!(
        r#"{{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/{version}","metadata":{metadata}}}"#
    )
    .into()
}
