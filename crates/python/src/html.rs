//! Tables for notebooks. What objects say is anybody's text: all of it is escaped.

use longshore::client::Table;
use serde_json::Value;

/// The most objects that are shown.
pub(crate) const ROWS: usize = 100;

/// The columns that kubectl shows, at most [`ROWS`] rows of them, and whether there are
/// more; with each object's namespace first if `places` says so.
pub(crate) fn table(table: &Table, places: bool) -> String {
    let columns = table.columns.iter().enumerate();
    let shown: Vec<usize> = columns
        .filter(|(_, column)| column.priority == 0)
        .map(|(place, _)| place)
        .collect();
    let mut text = "<table>\n<thead>\n<tr>".to_owned();
    let place = places.then_some("Namespace");
    let names = shown
        .iter()
        .map(|&place| table.columns[place].name.as_str());
    for name in place.into_iter().chain(names) {
        cell(&mut text, "th", name);
    }
    text += "</tr>\n</thead>\n<tbody>\n";
    for row in table.rows.iter().take(ROWS) {
        text += "<tr>";
        if places {
            cell(&mut text, "td", &row.namespace);
        }
        for &place in &shown {
            cell(&mut text, "td", &words(row.cells.get(place)));
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
