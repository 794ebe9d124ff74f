//! The outputs of a run.

use longshore_launcher::outputs::{Manifest, OutputFile};
use maud::{Markup, html};

use super::with_code;
use crate::{route::encoded, text};

/// The maximum number of files in the list.
const MOST_FILES: usize = 2000;
/// The maximum number of files of a task that were left out in the list.
const MOST_LEFT_OUT: usize = 20;

/// The list. `path` is the path of the run's page, and `problems` lists missing outputs.
pub(crate) fn outputs(path: &str, tasks: &[Manifest], problems: &[String]) -> Markup {
    let files: Vec<(&Manifest, &OutputFile)> = tasks
        .iter()
        .flat_map(|task| task.files.iter().map(move |file| (task, file)))
        .collect();
    html! {
        @for problem in problems { p.notice { (problem) } }
        @if files.is_empty() { p.muted { "No file matched." } }
        @else {
            div.scroll {
                table.files {
                    caption.hidden { "Files of the tasks" }
                    thead {
                        tr {
                            th scope="col" { "Task" }
                            th scope="col" { "File" }
                            th.number scope="col" { "Size" }
                            th scope="col" { "SHA-256" }
                        }
                    }
                    tbody {
                        @for (task, file) in files.iter().take(MOST_FILES) { (row(path, task, file)) }
                    }
                }
            }
        }
        @if files.len() > MOST_FILES {
            p.muted { (files.len() - MOST_FILES) " more files are not shown; " code { "longshore outputs" } " fetches all." }
        }
        @for task in tasks { (remarks(task)) }
    }
}

fn row(path: &str, task: &Manifest, file: &OutputFile) -> Markup {
    let query = format!(
        "task={}&path={}",
        encoded(&task.task()),
        encoded(&file.path)
    );
    html! {
        tr {
            td { (task.task()) }
            td { a href={(path) "/file?" (query)} download { (file.path) } }
            td.number { (text::size(file.size)) }
            td { code { (file.sha256.get(..12).unwrap_or_default()) } }
        }
    }
}

/// Remarks on incomplete or excluded files of a task.
fn remarks(task: &Manifest) -> Markup {
    let name = task.task();
    html! {
        @if !task.ended { p.muted { (name) " has not ended, or was killed: its files are those of " (task.collected.strftime("%Y-%m-%d %H:%M:%S UTC")) "." } }
        @if let Some(problem) = &task.problem {
            p.notice { "Not all files of " (name) " were kept: " (problem) }
        }
        @for file in task.left_out.iter().take(MOST_LEFT_OUT) {
            p.muted { "Not kept: " (name) " " (file.path) " " (file.reason) }
        }
        @let more = task.left_out_count().saturating_sub(MOST_LEFT_OUT as u64);
        @if more > 0 { p.muted { (more) " more files of " (name) " were not kept." } }
    }
}

/// A notice with an error.
pub(crate) fn problem(message: &str) -> Markup {
    html! { p.notice { (with_code(message)) } }
}
