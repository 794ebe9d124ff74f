//! The explanation of a pending or failed run.

use longshore_launcher::why::{State, Why};
use maud::{Markup, html};

use super::with_code;

/// The explanation with its evidence. Empty if nothing is wrong.
pub(crate) fn why(why: &Why) -> Markup {
    let is_bad = matches!(why.state, State::Failed | State::NotStarted);
    let class = if is_bad {
        "explanation bad"
    } else {
        "explanation"
    };
    html! {
        @if let Some(known) = &why.explanation {
            div class=(class) {
                p.summary { strong { "Why: " } (why.summary) }
                p { strong { "Remedy: " } (with_code(&known.remedy)) }
                @if !known.evidence.is_empty() {
                    details open[known.evidence.len() <= 4] {
                        summary { "Evidence" }
                        ul { @for fact in &known.evidence { li { (fact) } } }
                    }
                }
                (unseen(&why.unseen))
            }
        } @else if why.state == State::Cancelled {
            p.muted { (why.summary) }
        }
    }
}

fn unseen(unseen: &[String]) -> Markup {
    html! {
        @for problem in unseen { p.muted { "Not seen: " (problem) } }
    }
}
