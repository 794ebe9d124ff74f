//! The combinations of a sweep as a table and as parallel coordinates.

use jiff::Timestamp;
use longshore_launcher::{
    RunSummary,
    sweep::{CombinationState, Row},
    sweeps::SweepTable,
};
use maud::{Markup, html};

use super::{badge, took};
use crate::{
    route::run_path,
    view::{AXIS_LENGTH, Axis, MOST_METRICS, Scale, axes},
};

/// The maximum number of combinations in the table and the plot.
const MOST_ROWS: usize = 1000;
/// The maximum number of problems.
const MOST_PROBLEMS: usize = 10;
/// The maximum number of characters of a value in a cell, and next to an axis.
const LONGEST_CELL: usize = 40;
const LONGEST_LABEL: usize = 14;
/// The position of the axes in the drawing.
const TOP: f64 = 40.0;
const HEIGHT: f64 = 220.0;
const SIDE: f64 = 70.0;

/// The combinations of a sweep, which are updated. `base` is the random path of the pages.
pub(crate) fn sweep(base: &str, run: &RunSummary, table: &SweepTable, now: Timestamp) -> Markup {
    let rows: Vec<&Row> = table.rows.iter().take(MOST_ROWS).collect();
    let (axes, without) = axes(&table.parameters, &table.metrics, &rows);
    let metrics = axes.iter().enumerate().filter(|(_, axis)| axis.is_metric);
    let metrics: Vec<_> = metrics.collect();
    html! {
        div.bar {
            span #combinations role="status" { (table.rows.len()) " combinations" }
            span.muted { (table.states()) }
            @if let Some(seed) = table.seed { span.muted { "random samples, seed " (seed) } }
            span.space {}
            @if !metrics.is_empty() {
                label.select {
                    "Colour by "
                    select #sweep-metric {
                        @for (place, axis) in &metrics { option value=(place) data-name=(axis.name) { (cut(&axis.name, LONGEST_CELL)) } }
                    }
                }
                label.select {
                    "best is "
                    select #sweep-best { option value="low" { "lowest" } option value="high" { "highest" } }
                }
            }
            button type="button" #sweep-clear hidden { "Show all" }
        }
        @if axes.len() > 1 {
            p.muted #sweep-help { "Drag along an axis, or focus it and press the arrow keys, to select a range; Shift and arrow keys change its size, Escape clears it." }
            (plot(&axes, &rows))
        }
        @if without > 0 {
            p.muted { (without) " parameters or metrics have no axis: more than 40 different texts, no finite number, or more than 12." }
        }
        (combinations(base, run, table, &rows, now))
        @if table.rows.len() > MOST_ROWS {
            p.muted { (table.rows.len() - MOST_ROWS) " more combinations are not shown; " code { "longshore sweep " (run.run.name.as_str()) " --output csv" } " has all." }
        }
        @if table.metrics.len() > MOST_METRICS {
            p.muted { (table.metrics.len() - MOST_METRICS) " more metrics are not shown; " code { "longshore sweep " (run.run.name.as_str()) " --output csv" } " has all." }
        }
        @for problem in table.unread.iter().take(MOST_PROBLEMS) { p.muted { "Not read: " (problem) } }
        @if table.unread.len() > MOST_PROBLEMS {
            p.muted { (table.unread.len() - MOST_PROBLEMS) " more problems are not shown." }
        }
    }
}

/// A text of limited length.
fn cut(text: &str, most: usize) -> String {
    match text.chars().count() > most {
        true => text.chars().take(most - 1).chain(['\u{2026}']).collect(),
        false => text.to_owned(),
    }
}

fn column(name: &str, title: &str, is_number: bool) -> Markup {
    html! {
        th.number[is_number] scope="col" aria-sort="none" data-key=(name) {
            button.sort type="button" title=(title) { (cut(title, LONGEST_CELL)) }
        }
    }
}

/// Returns true if all values of a parameter are numbers.
fn is_numeric(rows: &[&Row], place: usize) -> bool {
    let mut values = rows.iter().filter_map(|row| row.values.get(place));
    values.all(|value| value.parse::<f64>().is_ok())
}

fn combinations(
    base: &str,
    run: &RunSummary,
    table: &SweepTable,
    rows: &[&Row],
    now: Timestamp,
) -> Markup {
    let metrics = table.metrics.get(..MOST_METRICS).unwrap_or(&table.metrics);
    let has_retries = !table.retries.is_empty();
    let numeric: Vec<bool> = (0..table.parameters.len())
        .map(|place| is_numeric(rows, place))
        .collect();
    html! {
        div.scroll {
            table.sweep {
                caption.hidden { "Combinations of the sweep. Buttons in the header sort." }
                thead {
                    tr {
                        (column("index", "Index", true))
                        @for (place, name) in table.parameters.iter().enumerate() {
                            (column(&format!("p{place}"), name, numeric[place]))
                        }
                        (column("state", "State", false))
                        (column("exit", "Exit", true))
                        (column("took", "Took", true))
                        @for (place, name) in metrics.iter().enumerate() { (column(&format!("m{place}"), name, true)) }
                        @if has_retries { (column("run", "Run", false)) }
                    }
                }
                tbody {
                    @for row in rows {
                        tr data-key=(row.index) data-state=(row.state.as_str()) {
                            td.number data-sort=(row.index) { (link(base, run, row)) }
                            @for (place, value) in row.values.iter().enumerate() {
                                td.number[numeric.get(place) == Some(&true)] data-sort=(value) title=[is_long(value)] { (cut(value, LONGEST_CELL)) }
                            }
                            td data-sort=(row.state.as_str()) { (badge(row.state.as_str())) }
                            td.number data-sort=[row.exit_code] { @match row.exit_code { Some(code) => { (code) } None => { "\u{2013}" } } }
                            (duration(row, now))
                            @for name in metrics {
                                td.number data-sort=[row.metric(name)] data-metric=(name) { @match row.metric(name) { Some(value) => { (value) } None => { "\u{2013}" } } }
                            }
                            @if has_retries { td data-sort=(row.run) { (row.run) } }
                        }
                    }
                }
            }
        }
    }
}

fn is_long(value: &str) -> Option<&str> {
    (value.chars().count() > LONGEST_CELL).then_some(value)
}

/// The index, which leads to the lines of the task.
fn link(base: &str, run: &RunSummary, row: &Row) -> Markup {
    let title = format!("Logs of combination {}", row.index);
    html! {
        @if row.run == run.run.name.as_str() {
            button.link type="button" data-lines=(row.task.to_string()) title=(title) aria-label=(title) { (row.index) }
        } @else {
            a href={"/" (base) "/" (run_path(&run.run.namespace, &row.run))} title={(title) ", in the run " (row.run)} { (row.index) }
        }
    }
}

fn duration(row: &Row, now: Timestamp) -> Markup {
    let end = match row.state {
        CombinationState::Running => Some(now),
        _ => row.finished,
    };
    let times = row.started.zip(end);
    let seconds = times.map(|(from, to)| to.as_second().saturating_sub(from.as_second()));
    html! {
        td.number data-sort=[seconds] {
            @match times { Some((from, to)) => { (took(from, to)) } None => { "\u{2013}" } }
        }
    }
}

/// The distance of two axes.
fn distance(axes: usize) -> f64 {
    (960.0 / axes.saturating_sub(1).max(1) as f64).clamp(110.0, 240.0)
}

fn plot(axes: &[Axis], rows: &[&Row]) -> Markup {
    let distance = distance(axes.len());
    let width = SIDE * 2.0 + distance * axes.len().saturating_sub(1) as f64;
    let height = TOP + HEIGHT + 24.0;
    let x = |axis: usize| SIDE + distance * axis as f64;
    html! {
        div.scroll {
            svg #plot.parallel width=(width) height=(height) viewBox={"0 0 " (width) " " (height)} role="group" aria-label="Parallel coordinates of the combinations. The table below has the values." {
                g.lines {
                    @for (place, row) in rows.iter().enumerate() {
                        @let positions = axes.iter().map(|axis| axis.positions.get(place).copied().flatten());
                        @let positions: Vec<Option<u32>> = positions.collect();
                        path data-key=(row.index) data-at=(listed(&positions)) d=(path(&positions, x)) {
                            title { "Combination " (row.index) ", " (row.state.as_str()) }
                        }
                    }
                }
                @for (place, axis) in axes.iter().enumerate() { (axis_of(axis, place, x(place))) }
            }
        }
    }
}

/// The positions for the script: `12 - 1000`.
fn listed(positions: &[Option<u32>]) -> String {
    let texts = positions.iter().map(|position| match position {
        Some(position) => position.to_string(),
        None => "-".to_owned(),
    });
    texts.collect::<Vec<_>>().join(" ")
}

fn y(position: u32) -> f64 {
    let part = f64::from(position) / f64::from(AXIS_LENGTH);
    TOP + HEIGHT * (1.0 - part)
}

/// The line of a combination, with gaps where it has no value.
fn path(positions: &[Option<u32>], x: impl Fn(usize) -> f64) -> String {
    let (mut text, mut is_drawn) = (String::new(), false);
    for (axis, position) in positions.iter().enumerate() {
        if let Some(position) = position {
            let command = if is_drawn { 'L' } else { 'M' };
            text.push_str(&format!("{command}{:.1} {:.1}", x(axis), y(*position)));
        }
        is_drawn = position.is_some();
    }
    text
}

fn axis_of(axis: &Axis, place: usize, x: f64) -> Markup {
    let (low, high, kind) = match &axis.scale {
        Scale::Linear(low, high) => (low.as_str(), high.as_str(), "numbers"),
        Scale::Logarithmic(low, high) => (low.as_str(), high.as_str(), "logarithmic"),
        Scale::Texts(texts) => (
            texts.first().map_or("", String::as_str),
            texts.last().map_or("", String::as_str),
            "texts",
        ),
    };
    let between: &[String] = match &axis.scale {
        // Labels need space.
        Scale::Texts(texts) if texts.len() <= 12 => {
            texts.get(1..texts.len() - 1).unwrap_or_default()
        }
        _ => &[],
    };
    let is_single = low == high;
    html! {
        g.axis data-axis=(place) data-metric=(axis.is_metric) transform={"translate(" (x) ",0)"} {
            text.name y="16" text-anchor="middle" { title { (axis.name) ", " (kind) } (cut(&axis.name, LONGEST_LABEL)) }
            line y1=(TOP) y2=(TOP + HEIGHT) {}
            @if is_single {
                (label(low, y(AXIS_LENGTH / 2) + 4.0))
            } @else {
                (label(high, TOP - 6.0))
                @for (own, text) in between.iter().enumerate() {
                    @let part = (own + 1) as f64 / (between.len() + 1) as f64;
                    (label(text, TOP + HEIGHT * (1.0 - part) + 4.0))
                }
                (label(low, TOP + HEIGHT + 15.0))
            }
            rect.selected x="-9" width="18" y=(TOP) height="0" {}
            rect.brush x="-14" width="28" y=(TOP) height=(HEIGHT) tabindex="0" role="slider" aria-orientation="vertical" aria-valuemin="0" aria-valuemax="100" aria-valuenow="50" aria-valuetext="all" aria-label={"Range of " (axis.name) " from " (low) " to " (high)} aria-describedby="sweep-help" {}
        }
    }
}

fn label(text: &str, y: f64) -> Markup {
    html! { text.value y=(y) text-anchor="middle" { title { (text) } (cut(text, LONGEST_LABEL)) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_value_is_a_gap() {
        let x = |axis: usize| axis as f64 * 100.0;
        let positions = [Some(0), Some(1000), None, Some(500), Some(500)];
        assert_eq!(
            path(&positions, x),
            "M0.0 260.0L100.0 40.0M300.0 150.0L400.0 150.0"
        );
        assert_eq!(listed(&positions), "0 1000 - 500 500");
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(cut("\u{e9}t\u{e9}", 3), "\u{e9}t\u{e9}");
        assert_eq!(cut("learning_rate", 9), "learning\u{2026}");
    }
}
