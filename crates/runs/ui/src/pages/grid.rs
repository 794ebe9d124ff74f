//! The tasks of a run as a grid.

use maud::{Markup, html};

use crate::view::{RoleView, TaskView, counts};

/// The grid, which is updated.
pub(crate) fn grid(roles: &[RoleView]) -> Markup {
    html! {
        div.counts {
            @for (state, count) in counts(roles) {
                span { span.cell.{"s-" (state.as_str())} aria-hidden="true" {} " " (count) " " (state.as_str()) }
            }
        }
        @for role in roles {
            div.role data-key=(role.name) {
                h2 {
                    (role.name)
                    @if role.is_service { span.muted { " service" } }
                }
                div.grid role="group" aria-label={"Tasks of " (role.name)} {
                    @for task in &role.tasks { (cell(&role.name, task)) }
                    @if role.more > 0 { span.muted { "and " (role.more) " more" } }
                }
            }
        }
    }
}

fn cell(role: &str, task: &TaskView) -> Markup {
    let name = format!("{role}/{}", task.index);
    let mut title = format!("{name}: {}", task.state.as_str());
    if let Some(last) = task.attempts.last() {
        if let Some(code) = last.exit_code.filter(|code| *code != 0) {
            title.push_str(&format!(", exit code {code}"));
        }
        if let Some(reason) = last
            .reason
            .as_deref()
            .filter(|reason| *reason != "Completed")
        {
            title.push_str(&format!(", {reason}"));
        }
        if !last.node.is_empty() {
            title.push_str(&format!(", on {}", last.node));
        }
    }
    if task.attempts.len() > 1 {
        title.push_str(&format!(", {} attempts", task.attempts.len()));
    }
    html! {
        button.cell.{"s-" (task.state.as_str())} type="button" data-key=(name) data-task=(name) title=(title) aria-label=(title) {
            (task.index)
        }
    }
}
