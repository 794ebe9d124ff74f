//! Tables: objects as the server formats them for terminals.

use bytes::Bytes;
use longshore_snapshots::Snapshot;
use serde::Deserialize;
use serde_json::Value;

use super::View;
use crate::{
    error::Result,
    kind::Object,
    transport::{Call, parse},
};

/// Objects as rows, with the columns that the server defines for their kind.
#[derive(Debug, Clone)]
pub struct Table {
    /// The columns, in order.
    pub columns: Vec<Column>,
    /// The rows, one per object.
    pub rows: Vec<Row>,
}

/// A column of a [`Table`].
#[derive(Debug, Clone, Deserialize)]
pub struct Column {
    /// The name, for example `Ready`.
    pub name: String,
    /// The description; may be empty.
    #[serde(default)]
    pub description: String,
    /// 0 for columns that are always shown, higher for columns of wide tables only.
    #[serde(default)]
    pub priority: i32,
}

/// A row of a [`Table`].
#[derive(Debug, Clone)]
pub struct Row {
    /// The object's name.
    pub name: String,
    /// The namespace of the object; empty if it is cluster-scoped.
    pub namespace: String,
    /// The values, one per column: strings, numbers, booleans.
    pub cells: Vec<Value>,
}

/// The type of a response.
#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct Typed {
    #[serde(default)]
    kind: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    #[serde(default)]
    column_definitions: Vec<Column>,
    #[serde(default)]
    rows: Vec<RawRow>,
}

#[derive(Deserialize)]
struct RawRow {
    #[serde(default)]
    cells: Vec<Value>,
    #[serde(default)]
    object: RawObject,
}

#[derive(Deserialize, Default)]
struct RawObject {
    #[serde(default)]
    metadata: RawMeta,
}

#[derive(Deserialize, Default)]
struct RawMeta {
    #[serde(default)]
    name: String,
    #[serde(default)]
    namespace: String,
}

/// A server without tables returns the objects instead, like kubectl also accepts them.
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

impl<K: Object> View<K> {
    /// Returns all objects as a table. If the server has no tables, as some aggregated API servers,
    /// the table has the columns `Name` and `Created At`.
    ///
    /// # Errors
    /// The same as [`View::list`](crate::View::list).
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// # let spec = serde_json::json!({"containers": [{"name": "main", "image": "busybox"}]});
    /// # let pod = serde_json::json!({"metadata": {"name": "web"}, "spec": spec});
    /// let pods = cluster.pods().in_namespace("default")?;
    /// # pods.create(&pod).await?;
    /// let table = pods.table().await?;
    /// for row in &table.rows {
    ///     println!("{} {}", row.name, row.cells[1]);
    /// }
    ///
    /// let one = pods.table_of("web").await?;
    /// let status = one.columns.iter().position(|column| column.name == "Status");
    /// assert_eq!(one.rows[0].cells[status.unwrap()], "Pending");
    /// # Ok(()) });
    /// ```
    pub async fn table(&self) -> Result<Table> {
        self.tabled(self.selection()?).await
    }

    /// Returns at most the first `most` objects as a table.
    ///
    /// # Errors
    /// The same as [`View::table`].
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// assert_eq!(cluster.namespaces().table_of_first(2).await?.rows.len(), 2);
    /// # Ok(()) });
    /// ```
    pub async fn table_of_first(&self, most: u32) -> Result<Table> {
        let call = self.selection()?.with("limit", most.max(1).to_string());
        let mut table = self.tabled(call).await?;
        // Servers may return more than the limit.
        table.rows.truncate(most as usize);
        Ok(table)
    }

    /// Returns one object as a table.
    ///
    /// # Errors
    /// The same as [`View::fetch`](crate::View::fetch) and [`View::table`].
    pub async fn table_of(&self, name: &str) -> Result<Table> {
        self.tabled(Call::get(self.object_path(name)?)).await
    }

    async fn tabled(&self, mut call: Call) -> Result<Table> {
        call.accept = TABLE;
        let body = self.cluster().bytes(&call).await?;
        let Typed { kind } = parse(&call, &body)?;
        if kind != "Table" {
            return objects(&body, &call.response_name());
        }
        let raw: Raw = parse(&call, &body)?;
        let rows = raw.rows.into_iter().map(|row| Row {
            name: row.object.metadata.name,
            namespace: row.object.metadata.namespace,
            cells: row.cells,
        });
        Ok(Table {
            columns: raw.column_definitions,
            rows: rows.collect(),
        })
    }
}

/// The table of a response that contains the objects themselves: a list, or one object.
fn objects(body: &Bytes, what: &str) -> Result<Table> {
    let items = match longshore_snapshots::list(body, what) {
        Ok(list) => list.items,
        Err(not_a_list) => {
            let object = Snapshot::parse(body, what)?;
            if object.name().is_empty() {
                return Err(not_a_list.into());
            }
            vec![object]
        }
    };
    let columns = ["Name", "Created At"].map(|name| Column {
        name: name.to_owned(),
        description: String::new(),
        priority: 0,
    });
    let rows = items.iter().enumerate().map(|(position, item)| {
        let meta = item.checked_meta(|| format!("items[{position}] of {what}"))?;
        let created = meta
            .creation_timestamp
            .map(|time| Value::from(time.to_string()));
        Ok(Row {
            name: item.name().to_owned(),
            namespace: item.namespace().unwrap_or_default().to_owned(),
            cells: vec![item.name().into(), created.unwrap_or_default()],
        })
    });
    Ok(Table {
        columns: columns.into(),
        rows: rows.collect::<Result<_>>()?,
    })
}
