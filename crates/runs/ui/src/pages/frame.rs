//! The parts that all pages have in common.

use maud::{DOCTYPE, Markup, html};

use crate::access::Refusal;

/// Data for the frame of each page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame<'a> {
    /// The random path of the pages.
    pub(crate) base: &'a str,
    /// The token for changes.
    pub(crate) csrf: &'a str,
    /// The cluster's name.
    pub(crate) cluster: &'a str,
    /// The namespace, if the runs of only one are shown.
    pub(crate) namespace: Option<&'a str>,
    /// True if there are pages of all objects of the cluster.
    pub(crate) has_objects: bool,
}

const SHORTCUTS: &[(&str, &str)] = &[
    ("?", "Show these shortcuts"),
    ("/", "Search or filter"),
    ("Esc", "Leave the search, clear the selected task"),
    ("r", "Go to the list of runs"),
    ("j k", "Next and previous run in the list"),
    ("1 2 3", "Logs, timeline, usage"),
    ("4 5 6", "Metrics, outputs, objects"),
    ("7", "Combinations of a sweep"),
    ("f", "Follow the end of the logs"),
    ("n N", "Next and previous match in the logs"),
    ("Home End PgUp PgDn", "Move in the logs"),
];

impl Frame<'_> {
    /// A page.
    pub(crate) fn page(
        &self,
        title: &str,
        name: &str,
        events: &str,
        status: &Markup,
        main: &Markup,
    ) -> Markup {
        let base = self.base;
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    meta name="csrf" content=(self.csrf);
                    title { (title) " \u{b7} Longshore" }
                    link rel="stylesheet" href={"/" (base) "/assets/style.css"};
                    script type="module" src={"/" (base) "/assets/main.js"} {}
                }
                body data-page=(name) data-base={"/" (base) "/"} data-events={"/" (base) "/" (events)} {
                    a.skip href="#main" { "Skip to the content" }
                    header.top {
                        a.brand href={"/" (base) "/"} { "Longshore" }
                        @if self.has_objects { a href={"/" (base) "/objects"} { "Objects" } }
                        span.where {
                            (self.cluster) " \u{b7} "
                            @match self.namespace {
                                Some(namespace) => { (namespace) }
                                None => { "all namespaces" }
                            }
                        }
                        span #status role="status" { (status) }
                        button type="button" #help-button title="Keyboard shortcuts" aria-label="Keyboard shortcuts" { "?" }
                    }
                    noscript { p.notice { "This page shows the state at the time it was loaded: without scripts, it is not updated, and logs are not shown." } }
                    p.notice #lost role="alert" hidden {}
                    main #main tabindex="-1" { (main) }
                    (dialogs())
                }
            }
        }
    }
}

fn dialogs() -> Markup {
    html! {
        dialog #help aria-labelledby="help-title" {
            h2 #help-title { "Keyboard shortcuts" }
            dl.keys {
                @for (key, what) in SHORTCUTS {
                    div { dt { @for key in key.split(' ') { kbd { (key) } " " } } dd { (what) } }
                }
            }
            form method="dialog" { button value="close" { "Close" } }
        }
        dialog #confirm aria-labelledby="confirm-title" {
            h2 #confirm-title {}
            p #confirm-text {}
            p.error #confirm-error role="alert" {}
            div.row {
                button type="button" #confirm-no { "Keep it" }
                button.danger type="button" #confirm-yes {}
            }
        }
    }
}

/// The page without a session.
pub(crate) fn refused(refusal: Refusal) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Longshore" }
            }
            body { main { h1 { "Longshore" } p { (refusal.message()) } } }
        }
    }
}

/// The page that follows a link. A redirect would not send the new cookie, because the browser
/// counts it as caused by the site that the link was on.
pub(crate) fn opened(base: &str) -> Markup {
    let target = format!("/{base}/");
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="refresh" content={"0; url=" (target)};
                title { "Longshore" }
            }
            body { a href=(target) { "Continue" } }
        }
    }
}
