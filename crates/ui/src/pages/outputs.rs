//! The outputs of a run.

use longshore_launcher::outputs::Manifest;
use maud::{Markup, html};

use crate::{route::encoded, text};

/// The maximum number of files of a task in the list.
const MOST_FILES: usize = 1000;

/// The list. `path` is that of the run's page.
pub(crate) fn outputs(path: &str, tasks: &[Manifest]) -> Markup {
    html! {
        @for task in tasks {
            h2 { (task.task()) @if !task.ended { span.muted { " still running: the files of now" } } }
            @if task.files.is_empty() { p.muted { "No file matched." } }
            @else {
                div.scroll {
                    table {
                        caption.hidden { "Files of " (task.task()) }
                        thead { tr { th scope="col" { "File" } th.number scope="col" { "Size" } th scope="col" { "SHA-256" } } }
                        tbody {
                            @for file in task.files.iter().take(MOST_FILES) {
                                tr {
                                    td { a href={(path) "/file?task=" (encoded(&task.task())) "&path=" (encoded(&file.path))} download { (file.path) } }
                                    td.number { (text::size(file.size)) }
                                    td { code { (file.sha256.get(..12).unwrap_or_default()) } }
                                }
                            }
                        }
                    }
                }
            }
            @if task.files.len() > MOST_FILES {
                p.muted { (task.files.len() - MOST_FILES) " more files are not shown; " code { "longshore outputs" } " fetches all." }
            }
            @if let Some(problem) = &task.problem { p.notice { "Not all files were kept: " (problem) } }
            @for file in task.left_out.iter().take(20) {
                p.muted { "Not kept: " (file.path) " " (file.reason) }
            }
        }
    }
}

/// Why something cannot be shown.
pub(crate) fn problem(message: &str) -> Markup {
    html! { p.notice { (message) } }
}
