//! Tests of pages: texts of users and tasks are never interpreted as HTML.
#![allow(clippy::unwrap_used)]

use longshore_launcher::{
    Run, RunName, RunState, RunSummary,
    metrics::Metrics,
    runs::RunRole,
    sweep::{CombinationState, Row},
    sweeps::SweepTable,
};

use super::*;
use crate::view::{TaskAttempt, TaskState, tasks};

const EVIL: &str = "<img src=x onerror=alert(1)>\"'&";

fn frame(namespace: Option<&str>) -> Frame<'_> {
    Frame {
        base: "b4se",
        csrf: "token",
        cluster: EVIL,
        namespace,
        has_objects: true,
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
        owner: None,
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
        webhook_problem: None,
        sweep: None,
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
fn tags_notes_and_restarts_are_shown() {
    let now = Timestamp::from_second(200).unwrap();
    let mut plain = run(RunState::Failed);
    (plain.tags, plain.note) = (Default::default(), None);
    let page = runs_table(frame(None), std::slice::from_ref(&plain), now).into_string();
    assert!(
        !page.contains("Restarts") && !page.contains("Tags"),
        "{page}"
    );
    let mut tagged = run(RunState::Failed);
    tagged.restarts = 7;
    tagged.tags = [("team", "a&b"), ("bare", "")]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
    let page = runs_table(frame(None), &[plain, tagged.clone()], now).into_string();
    assert!(page.contains(r#"<td class="number">7</td>"#), "{page}");
    assert!(
        page.contains(r#"<span class="tag">team=a&amp;b</span>"#),
        "{page}"
    );
    assert!(page.contains(r#"<span class="tag">bare</span>"#), "{page}");
    assert!(
        page.contains("data-tags=\"{&quot;bare&quot;:&quot;&quot;,"),
        "{page}"
    );
    let head = head(&tagged, now).into_string();
    assert!(head.contains("<dt>Restarts</dt><dd>7</dd>"), "{head}");
    assert!(head.contains(r#"<p class="note">&lt;img"#), "{head}");
}

#[test]
fn only_ended_sweeps_with_failed_combinations_can_be_retried() {
    let now = Timestamp::from_second(200).unwrap();
    let can = |run: &RunSummary| {
        head(run, now)
            .into_string()
            .contains(r#"data-action="retry""#)
    };
    let mut sweep = run(RunState::Failed);
    assert!(!can(&sweep));
    sweep.sweep = Some("digits-x7k2p".to_owned());
    assert!(can(&sweep));
    sweep.succeeded = (2, 2);
    assert!(!can(&sweep));
    sweep.succeeded = (1, 2);
    sweep.state = RunState::Running;
    assert!(!can(&sweep));
    let page = |run: &RunSummary| {
        let status = reachability(&Reachability::Reachable);
        run_page(frame(None), &status, run, &[], now).into_string()
    };
    assert!(page(&sweep).contains("tab-sweep"));
    assert!(!page(&run(RunState::Failed)).contains("tab-sweep"));
}

/// A table of a sweep, whose texts are hostile.
fn table(rows: u32) -> SweepTable {
    let row = |index: u32| {
        let mut metrics = Metrics::default();
        metrics.read_json_lines(&format!("{{\"val_loss\": {index}}}"));
        Row {
            index,
            run: "digits-x7k2p".to_owned(),
            task: longshore_launcher::names::Task {
                role: EVIL.to_owned(),
                index,
            },
            values: vec![EVIL.to_owned(), index.to_string()],
            state: CombinationState::Succeeded,
            exit_code: Some(0),
            started: Timestamp::from_second(100).ok(),
            finished: Timestamp::from_second(160).ok(),
            metrics,
        }
    };
    SweepTable {
        run: run(RunState::Failed).run,
        retries: vec![EVIL.to_owned()],
        parameters: vec![EVIL.to_owned(), "seed".to_owned()],
        metrics: vec!["<b>loss".to_owned(), "val_loss".to_owned()],
        seed: Some(7),
        rows: (0..rows).map(row).collect(),
        unread: vec![EVIL.to_owned(); 11],
    }
}

#[test]
fn sweeps_are_escaped_and_limited() {
    let now = Timestamp::from_second(200).unwrap();
    let page = |rows: u32| sweep("b4se", &run(RunState::Failed), &table(rows), now).into_string();
    let few = page(3);
    assert!(!few.contains("<img") && !few.contains("<b>"), "{few}");
    assert_eq!(few.matches("<path").count(), 3);
    assert_eq!(few.matches("role=\"slider\"").count(), 3);
    assert!(
        few.contains("1m0s") && few.contains("1 more problems"),
        "{few}"
    );
    assert!(!few.contains("style"), "{few}");
    let many = page(1200);
    assert_eq!(many.matches("<path").count(), 1000);
    assert!(many.contains("200 more combinations are not shown"));
    // Without metrics there is nothing to colour by.
    let mut plain = table(2);
    plain.metrics.clear();
    let plain = sweep("b4se", &run(RunState::Failed), &plain, now).into_string();
    assert!(!plain.contains("sweep-metric"), "{plain}");
}

#[test]
fn objects_and_events_are_escaped_and_limited() {
    let status = reachability(&Reachability::Reachable);
    let column = |name: &str, priority| longshore_client::Column {
        name: name.to_owned(),
        description: String::new(),
        priority,
    };
    let row = longshore_client::Row {
        name: EVIL.to_owned(),
        namespace: "default".to_owned(),
        cells: vec![EVIL.into(), 3.into(), "hidden-column".into()],
    };
    let table = longshore_client::Table {
        columns: vec![column("Name", 0), column(EVIL, 0), column("Wide", 1)],
        rows: vec![row; 500],
    };
    let selected = Selected {
        kind: "pods",
        namespace: None,
        is_namespaced: true,
        kinds: &["pods".to_owned()],
        namespaces: &["default".to_owned()],
    };
    let list = browse(frame(None), &status, &selected, &Ok(table)).into_string();
    assert!(!list.contains("<img") && !list.contains("hidden-column"));
    assert!(list.contains("Only the first 500 objects"));
    let failed = browse(frame(None), &status, &selected, &Err(EVIL.to_owned())).into_string();
    assert!(failed.contains("&lt;img"), "{failed}");
    let event = |count| EventView {
        last_seen: None,
        count,
        kind: EVIL.to_owned(),
        reason: EVIL.to_owned(),
        source: EVIL.to_owned(),
        message: EVIL.to_owned(),
    };
    let events = Ok((0..120).map(event).collect());
    let which = ("pods", "default", EVIL);
    let page = browsed(frame(None), &status, which, EVIL, &events).into_string();
    assert!(!page.contains("<img"), "{page}");
    assert!(page.contains("20 older events"), "{page}");
    // The newest are shown.
    assert!(page.contains(r#"<td class="number">119</td>"#), "{page}");
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
