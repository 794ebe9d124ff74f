//! Tests of pages: what users and tasks write is never HTML.
#![allow(clippy::unwrap_used)]

use longshore_launcher::{Run, RunName, RunState, RunSummary, runs::RunRole};

use super::*;
use crate::view::{TaskAttempt, TaskState, tasks};

const EVIL: &str = "<img src=x onerror=alert(1)>\"'&";

fn frame(namespace: Option<&str>) -> Frame<'_> {
    Frame {
        base: "b4se",
        csrf: "token",
        cluster: EVIL,
        namespace,
    }
}

fn run(state: RunState) -> RunSummary {
    RunSummary {
        run: Run {
            name: RunName::existing("digits-x7k2p").unwrap(),
            namespace: "default".to_owned(),
            roles: vec![RunRole {
                name: EVIL.to_owned(),
                count: 2,
                service: false,
            }],
            schedule: None,
        },
        full_name: EVIL.to_owned(),
        state,
        created: Timestamp::from_second(100).ok(),
        submitted: None,
        finished: None,
        command: vec![EVIL.to_owned()],
        bundle: None,
        labels: [(EVIL.to_owned(), EVIL.to_owned())].into(),
        tags: [(EVIL.to_owned(), EVIL.to_owned())].into(),
        note: Some(EVIL.to_owned()),
        exit_code: Some(3),
        outcome: None,
        succeeded: (0, 2),
        restarts: 0,
        schedule: None,
    }
}

fn attempt() -> TaskAttempt {
    TaskAttempt {
        role: EVIL.to_owned(),
        index: 0,
        pod: EVIL.to_owned(),
        node: EVIL.to_owned(),
        state: TaskState::Failed,
        exit_code: Some(1),
        reason: Some(EVIL.to_owned()),
        created: Timestamp::from_second(100).ok(),
        scheduled: Timestamp::from_second(101).ok(),
        started: None,
        finished: None,
    }
}

#[test]
fn texts_are_escaped() {
    let now = Timestamp::from_second(200).unwrap();
    let run = run(RunState::Failed);
    let roles = tasks(&run.run.roles, run.state, vec![attempt()]);
    let away = reachability(&Reachability::Away(EVIL.to_owned(), now));
    let pages = [
        runs_page(frame(None), &away, std::slice::from_ref(&run), now),
        run_page(frame(Some(EVIL)), &away, &run, &roles, now),
        schedule_page(frame(None), &away, &run, std::slice::from_ref(&run), now),
        gone(frame(None), &away, EVIL),
        problem(EVIL),
    ];
    for page in pages {
        let page = page.into_string();
        assert!(!page.contains("<img"), "{page}");
        assert!(page.contains("&lt;img"), "{page}");
    }
}

#[test]
fn pages_have_no_inline_scripts_or_styles() {
    let now = Timestamp::from_second(200).unwrap();
    let run = run(RunState::Running);
    let roles = tasks(&run.run.roles, run.state, vec![attempt()]);
    let status = reachability(&Reachability::Reachable);
    let page = run_page(frame(None), &status, &run, &roles, now).into_string();
    assert!(!page.contains("style="), "{page}");
    assert!(!page.contains("<style"), "{page}");
    assert_eq!(page.matches("<script").count(), 1);
    assert!(page.contains(r#"<script type="module" src="/b4se/assets/main.js"></script>"#));
    for handler in ["onclick", "onload", "javascript:"] {
        assert!(!page.contains(handler), "{page}");
    }
}

#[test]
fn only_active_runs_can_be_cancelled() {
    let now = Timestamp::from_second(200).unwrap();
    let cancel = r#"data-action="cancel""#;
    assert!(
        head(&run(RunState::Running), now)
            .into_string()
            .contains(cancel)
    );
    let over = head(&run(RunState::Failed), now).into_string();
    assert!(!over.contains(cancel));
    assert!(over.contains(r#"data-action="remove""#));
}

#[test]
fn commands_in_texts_are_code() {
    let text = |text| with_code(text).into_string();
    assert_eq!(text("see `a <b>`."), "see <code>a &lt;b&gt;</code>.");
    assert_eq!(text("an odd ` stays"), "an odd ` stays");
}
