//! Tables for notebooks. Objects may contain untrusted text, so all text is escaped.

use longshore::client::Table;
use serde_json::Value;

/// The maximum number of objects in a table.
pub(crate) const ROWS: usize = 100;

/// A table with kubectl's columns and at most [`ROWS`] rows. It says whether there are
/// more. If `with_namespace` is true, the first column is the namespace.
pub(crate) fn table(table: &Table, with_namespace: bool) -> String {
    let columns = table.columns.iter().enumerate();
    let shown: Vec<usize> = columns
        .filter(|(_, column)| column.priority == 0)
        .map(|(index, _)| index)
        .collect();
    let mut text = "<table>\n<thead>\n<tr>".to_owned();
    let namespace = with_namespace.then_some("Namespace");
    let names = shown
        .iter()
        .map(|&index| table.columns[index].name.as_str());
    for name in namespace.into_iter().chain(names) {
        cell(&mut text, "th", name);
    }
    text += "</tr>\n</thead>\n<tbody>\n";
    for row in table.rows.iter().take(ROWS) {
        text += "<tr>";
        if with_namespace {
            cell(&mut text, "td", &row.namespace);
        }
        for &index in &shown {
            cell(&mut text, "td", &words(row.cells.get(index)));
        }
        text += "</tr>\n";
    }
    text += "</tbody>\n</table>";
    if table.rows.len() > ROWS {
        text += &format!("\n<p>The first {ROWS}; there are more.</p>");
    }
    text
}

fn words(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

fn cell(text: &mut String, tag: &str, words: &str) {
    *text += &format!("<{tag}>");
    for c in words.chars() {
        match c {
            '&' => *text += "&amp;",
            '<' => *text += "&lt;",
            '>' => *text += "&gt;",
            '"' => *text += "&quot;",
            '\'' => *text += "&#x27;",
            c => text.push(c),
        }
    }
    *text += &format!("</{tag}>");
}
