//! `longshore get`: lists objects.

use std::process::ExitCode;

use clap::Args;
use longshore::{
    View,
    client::{Cluster, Table, kinds::Any},
};
use serde_json::{Value, json};

use crate::{
    config,
    error::Result,
    output::{self, Format},
    select::{self, SelectArgs, Selection},
    target::ClusterArgs,
    ui,
};

/// List objects of a kind, or print some of them
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore get pods
  longshore get jobs -A --output wide
  longshore get pod digits-worker-0 --output yaml
  longshore get pods -l app=web --output name
  longshore get pods --no-headers
  longshore get pods --field-selector status.phase=Running")]
pub(crate) struct GetArgs {
    #[command(flatten)]
    select: SelectArgs,
    /// Output format
    #[arg(long, short, value_enum, default_value_t, value_name = "FORMAT")]
    output: Format,
    /// Print tables without their headers
    #[arg(long)]
    no_headers: bool,
    #[command(flatten)]
    cluster: ClusterArgs,
}

pub(crate) async fn get(args: GetArgs) -> Result<ExitCode> {
    let selection = args.select.check()?;
    let target = args.cluster.open(&config::here()?).await?;
    let form = (args.output, !args.no_headers);
    let result = show(target.cluster(), &selection, form).await;
    target.close().await?;
    result.map(|()| ExitCode::SUCCESS)
}

async fn show(
    cluster: &Cluster,
    selection: &Selection,
    (format, has_header): (Format, bool),
) -> Result<()> {
    let view = selection.view(cluster).await?;
    match format {
        Format::Table | Format::Wide => {
            for table in tables(&view, selection).await? {
                let wide = format == Format::Wide;
                let (header, rows) = cells(&table, &view, selection, wide);
                let header: Vec<&str> = header.iter().map(String::as_str).collect();
                let empty = select::nothing(&view);
                output::table_with(has_header.then_some(&header), rows, &empty);
            }
        }
        Format::Name => {
            for item in selection.items(&view).await? {
                ui::line(select::named(&item));
            }
        }
        Format::Json | Format::Yaml => {
            let items = selection.items(&view).await?;
            let mut items: Vec<Value> = items
                .iter()
                .map(longshore::Item::raw)
                .collect::<Result<_, _>>()?;
            let whole = match (selection.only(), items.pop()) {
                (Some(_), Some(item)) => item,
                (_, last) => {
                    items.extend(last);
                    json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items})
                }
            };
            output::value(format, &whole)?;
        }
    }
    Ok(())
}

/// The server's tables, with the server's columns. Several names are combined into one table.
async fn tables(view: &View<Any>, selection: &Selection) -> Result<Vec<Table>> {
    if selection.names.is_empty() {
        return Ok(vec![view.table().await?]);
    }
    let mut whole: Option<Table> = None;
    for name in &selection.names {
        let table = view.table_of(name).await?;
        match &mut whole {
            None => whole = Some(table),
            Some(whole) => whole.rows.extend(table.rows),
        }
    }
    Ok(whole.into_iter().collect())
}

/// The header and the rows of a table.
fn cells(
    table: &Table,
    view: &View<Any>,
    selection: &Selection,
    wide: bool,
) -> (Vec<String>, Vec<Vec<String>>) {
    // Columns with priority 0 are standard; the others are for the wide table.
    let columns: Vec<(usize, String)> = table
        .columns
        .iter()
        .enumerate()
        .filter(|(_, column)| wide || column.priority == 0)
        .map(|(n, column)| (n, column.name.to_uppercase()))
        .collect();
    let of_all = view.kind().is_namespaced() && selection.all_namespaces;
    let rows = table.rows.iter().map(|row| {
        let first = of_all.then(|| row.namespace.clone());
        let cells = columns.iter().map(|(n, _)| text(row.cells.get(*n)));
        first.into_iter().chain(cells).collect()
    });
    let rows = rows.collect();
    let first = of_all.then(|| "NAMESPACE".to_owned());
    let names = columns.into_iter().map(|(_, name)| name);
    (first.into_iter().chain(names).collect(), rows)
}

fn text(cell: Option<&Value>) -> String {
    match cell {
        Some(Value::String(text)) => text.clone(),
        None | Some(Value::Null) => "<none>".to_owned(),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_formatted() {
        let cells = [json!("x"), json!(3), json!(null), json!(true)].map(|cell| text(Some(&cell)));
        assert_eq!(cells, ["x", "3", "<none>", "true"]);
    }
}
