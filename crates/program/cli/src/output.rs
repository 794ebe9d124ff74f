//! `--output`: tables for users, and JSON or YAML for programs.

use clap::ValueEnum;
use longshore::model::yaml;
use serde::Serialize;

use crate::{
    error::{Error, Kind, Result},
    ui,
};

/// The output format of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Format {
    /// Table.
    #[default]
    Table,
    /// Table with additional columns.
    Wide,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// One name per line.
    Name,
}

/// The output format of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum TextFormat {
    /// Human-readable text.
    #[default]
    Text,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

impl TextFormat {
    /// Prints a value, or its text, which `text` prints.
    pub(crate) fn print(self, shown: &impl Serialize, text: impl FnOnce()) -> Result<()> {
        match self {
            Self::Text => {
                text();
                Ok(())
            }
            Self::Json => value(Format::Json, shown),
            Self::Yaml => value(Format::Yaml, shown),
        }
    }
}

/// The output format of a table without other columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum TableFormat {
    /// Table.
    #[default]
    Table,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

/// Output format of a followed run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum EventFormat {
    /// Human-readable text
    #[default]
    Text,
    /// One JSON object per line on standard output, whose `event` is started, progress,
    /// waiting, retry, log, gap, finished or detached
    Json,
}

/// Writes a value as JSON or YAML.
pub(crate) fn value(format: Format, value: &impl Serialize) -> Result<()> {
    let unreadable =
        |error: &(dyn std::error::Error + 'static)| Error::from_source(Kind::Failed, error);
    match format {
        Format::Yaml => {
            let value = serde_json::to_value(value).map_err(|error| unreadable(&error))?;
            ui::bytes(yaml::write(&value).as_bytes());
        }
        _ => {
            let text = serde_json::to_string_pretty(value).map_err(|error| unreadable(&error))?;
            ui::json(&text);
        }
    }
    Ok(())
}

/// Prints rows below a header, or prints `empty` to standard error if the table is empty.
pub(crate) fn table(header: &[&str], rows: Vec<Vec<String>>, empty: &str) {
    table_with(Some(header), rows, empty);
}

/// Like [`table`], but prints only the rows if no header is given.
pub(crate) fn table_with(header: Option<&[&str]>, rows: Vec<Vec<String>>, empty: &str) {
    if rows.is_empty() {
        ui::note(empty);
        return;
    }
    let cells = |header: &[&str]| header.iter().map(|&text| text.to_owned()).collect();
    let mut all: Vec<Vec<String>> = header.map(cells).into_iter().collect();
    all.extend(rows);
    let paint = ui::Paint::stdout();
    for (n, line) in ui::columns(&all).into_iter().enumerate() {
        let is_header = n == 0 && header.is_some();
        ui::line(if is_header { paint.bold(&line) } else { line });
    }
}
