//! Charts and a table of the resource usage of a run's tasks.

use jiff::Timestamp;
use longshore_launcher::usage::{RunUsage, TaskUsage};
use maud::{Markup, html};

use crate::{
    text,
    view::{Chart, Measure, Series, Step, TaskLine, axis_end, charts},
};

/// The maximum number of tasks in the table.
const MOST_ROWS: usize = 500;
/// The maximum number of problems.
const MOST_PROBLEMS: usize = 10;
/// The size of a chart's drawing, which is stretched.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 200.0;

/// The resource usage of a run's tasks, which is updated.
pub(crate) fn usage(found: &RunUsage) -> Markup {
    let series: Vec<Series> = found.tasks.iter().filter_map(Series::of).collect();
    let charts = charts(&series);
    let drawn: Vec<&str> = charts
        .first()
        .map(|chart| chart.lines.iter().map(|line| line.task.as_str()).collect())
        .unwrap_or_default();
    html! {
        @if found.tasks.is_empty() {
            p.muted { "No task has started." }
        } @else if charts.is_empty() {
            p.muted { "No task has recorded values yet. " code { "docs/usage.md" } " says where they come from." }
        }
        div.charts { @for chart in &charts { (drawing(chart, &drawn)) } }
        @if !found.tasks.is_empty() { (table(&found.tasks, &drawn)) }
        @for problem in found.unseen.iter().take(MOST_PROBLEMS) { p.muted { "Not seen: " (problem) } }
        @if found.unseen.len() > MOST_PROBLEMS {
            p.muted { (found.unseen.len() - MOST_PROBLEMS) " more problems are not shown." }
        }
    }
}

/// The name of a measure, and how its values of several tasks are combined.
fn title(measure: Measure, is_single: bool) -> (&'static str, &'static str) {
    let name = match measure {
        Measure::Cpu => "CPU",
        Measure::Memory => "Memory",
        Measure::Gpu => "GPU utilisation",
        Measure::GpuMemory => "GPU memory",
    };
    let how = match (is_single, measure.is_summed()) {
        (true, _) => "",
        (false, true) => "sum of all tasks",
        (false, false) => "mean of all tasks",
    };
    (name, how)
}

/// A value with its unit.
fn value(measure: Measure, value: f64) -> String {
    match measure {
        Measure::Cpu if value >= 10.0 => format!("{value:.0} cores"),
        Measure::Cpu if value >= 1.0 => format!("{value:.1} cores"),
        Measure::Cpu => format!("{value:.2} cores"),
        Measure::Memory | Measure::GpuMemory => text::size(value.max(0.0) as u64),
        Measure::Gpu => format!("{value:.0}%"),
    }
}

fn drawing(chart: &Chart, drawn: &[&str]) -> Markup {
    let measure = chart.measure;
    let is_single = chart.lines.len() == 1 && chart.more == 0;
    let (name, how) = title(measure, is_single);
    let peak = chart.lines.iter().map(|line| line.peak).fold(0.0, f64::max);
    html! {
        (figure(chart, name, how, chart.peak(), &html! {
            path.area d=(path(&chart.all, axis_end(measure, chart.peak()), true)) {}
            path.sum d=(path(&chart.all, axis_end(measure, chart.peak()), false)) {}
        }))
        @if !is_single {
            @let each = match chart.more {
                0 => "each task".to_owned(),
                more => format!("the {} tasks with the highest values; {more} more are only in the chart of all tasks", chart.lines.len()),
            };
            (figure(chart, name, &each, peak, &html! {
                @for line in &chart.lines { (task_line(line, measure, peak, drawn)) }
            }))
        }
    }
}

fn task_line(line: &TaskLine, measure: Measure, peak: f64, drawn: &[&str]) -> Markup {
    let colour = drawn.iter().position(|task| *task == line.task);
    html! {
        path.task.{"l-" (colour.map_or("x".to_owned(), |colour| colour.to_string()))} d=(path(&line.steps, axis_end(measure, peak), false)) {
            title { (line.task) ", peak " (value(measure, line.peak)) }
        }
    }
}

fn figure(chart: &Chart, name: &str, how: &str, peak: f64, lines: &Markup) -> Markup {
    let measure = chart.measure;
    let (peak_text, last) = (value(measure, peak), value(measure, chart.last()));
    let span = text::span((chart.seconds * 1000.0) as i64);
    let begin = Timestamp::from_second(chart.begin).map(text::time);
    let is_all = ["", "sum of all tasks", "mean of all tasks"].contains(&how);
    let label = format!("{name} {how}: peak {peak_text} within {span}. The table has the values.");
    html! {
        figure.usage data-key={(name) (is_all)} {
            figcaption {
                strong { (name) } " " span.muted { (how) }
                span.space {}
                @if is_all { span { "last " (last) } }
                span { "peak " (peak_text) }
            }
            div.plot {
                span.end { (value(measure, axis_end(measure, peak))) }
                svg viewBox={"0 0 " (WIDTH) " " (HEIGHT)} preserveAspectRatio="none" role="img" aria-label=(label) {
                    @for part in 1..4 {
                        line.rule x1="0" x2=(WIDTH) y1=(HEIGHT * f64::from(part) / 4.0) y2=(HEIGHT * f64::from(part) / 4.0) {}
                    }
                    (lines)
                }
            }
            div.axis.muted {
                span { @if let Ok(begin) = begin { (begin) } }
                span { "+" (span) }
            }
        }
    }
}

/// The path of a line, or of the area below it. A gap in time is a gap in the line.
fn path(steps: &[Step], end: f64, is_area: bool) -> String {
    let x = |part: f64| format!("{:.1}", part.clamp(0.0, 1.0) * WIDTH);
    let y = |value: f64| format!("{:.1}", HEIGHT - (value / end).clamp(0.0, 1.0) * HEIGHT);
    let (mut text, mut last) = (String::new(), None);
    let close = |text: &mut String| {
        if is_area && !text.is_empty() {
            text.push_str(&format!("V{HEIGHT}Z"));
        }
    };
    for step in steps {
        let (from, to) = (x(step.from), x(step.to));
        if last.as_ref() == Some(&from) {
            text.push_str(&format!("V{}", y(step.value)));
        } else {
            close(&mut text);
            match is_area {
                true => text.push_str(&format!("M{from} {HEIGHT}V{}", y(step.value))),
                false => text.push_str(&format!("M{from} {}", y(step.value))),
            }
        }
        text.push_str(&format!("H{to}"));
        last = Some(to);
    }
    close(&mut text);
    text
}

fn table(tasks: &[TaskUsage], drawn: &[&str]) -> Markup {
    let records = || tasks.iter().filter_map(|task| task.record.as_ref());
    let has_gpus = records().any(|record| record.gpu.is_some());
    html! {
        div.scroll {
            table.usage {
                caption.hidden { "Usage of the tasks" }
                thead {
                    tr {
                        th scope="col" { "Task" }
                        th scope="col" { "State" }
                        th.number scope="col" { "CPU now" }
                        th.number scope="col" { "CPU mean" }
                        th.number scope="col" { "CPU requested" }
                        th.number scope="col" { "Memory now" }
                        th.number scope="col" { "Memory peak" }
                        th.number scope="col" { "Memory requested" }
                        @if has_gpus {
                            th.number scope="col" { "GPUs" }
                            th.number scope="col" { "GPU mean" }
                            th.number scope="col" { "GPU memory peak" }
                        }
                        th.number scope="col" { "Measured" }
                    }
                }
                tbody { @for task in tasks.iter().take(MOST_ROWS) { (row(task, has_gpus, drawn)) } }
            }
        }
        @if tasks.len() > MOST_ROWS {
            p.muted { (tasks.len() - MOST_ROWS) " more tasks are not in the table; " code { "longshore top RUN" } " shows them." }
        }
    }
}

fn row(task: &TaskUsage, has_gpus: bool, drawn: &[&str]) -> Markup {
    let name = task.task.to_string();
    let colour = drawn.iter().position(|drawn| *drawn == name);
    let record = task.record.as_ref();
    let cell = |measure: Measure, number: Option<f64>| {
        html! { td.number { @match number { Some(number) => { (value(measure, number)) } None => { "\u{2013}" } } } }
    };
    let mean = record.filter(|record| record.seconds > 0.0);
    let mean = mean.map(|record| record.cpu_seconds / record.seconds);
    let gpu = record.and_then(|record| record.gpu);
    html! {
        tr data-key=(name) {
            th scope="row" {
                @if let Some(colour) = colour { span.swatch.{"l-" (colour)} aria-hidden="true" {} " " }
                (name)
            }
            td { (if task.is_running { "running" } else { "ended" }) }
            (cell(Measure::Cpu, task.cpu()))
            (cell(Measure::Cpu, mean))
            (cell(Measure::Cpu, task.requested.cpu))
            (cell(Measure::Memory, task.memory()))
            (cell(Measure::Memory, record.map(|record| record.peak_memory as f64)))
            (cell(Measure::Memory, task.requested.memory))
            @if has_gpus {
                td.number { @match gpu { Some(gpu) => { (gpu.count) } None => { "\u{2013}" } } }
                (cell(Measure::Gpu, gpu.map(|gpu| gpu.mean_percent)))
                (cell(Measure::GpuMemory, gpu.map(|gpu| gpu.peak_memory as f64)))
            }
            td.number { @match record { Some(record) => { (text::span((record.seconds * 1000.0) as i64)) } None => { "\u{2013}" } } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(from: f64, to: f64, value: f64) -> Step {
        Step { from, to, value }
    }

    #[test]
    fn lines_have_steps_and_gaps() {
        let steps = [
            step(0.0, 0.5, 1.0),
            step(0.5, 0.6, 2.0),
            step(0.9, 1.0, 0.0),
        ];
        assert_eq!(
            path(&steps, 2.0, false),
            "M0.0 100.0H500.0V0.0H600.0M900.0 200.0H1000.0"
        );
        assert_eq!(path(&steps[..1], 2.0, true), "M0.0 200V100.0H500.0V200Z");
        assert_eq!(path(&[], 1.0, true), "");
        // Values beyond the axis are drawn at its end.
        assert_eq!(path(&[step(-1.0, 9.0, 9.0)], 1.0, false), "M0.0 0.0H1000.0");
    }

    #[test]
    fn values_have_units() {
        assert_eq!(value(Measure::Cpu, 0.25), "0.25 cores");
        assert_eq!(value(Measure::Cpu, 12.4), "12 cores");
        assert_eq!(value(Measure::Memory, 1_610_612_736.0), "1.5 GiB");
        assert_eq!(value(Measure::Gpu, 87.4), "87%");
    }

    #[test]
    fn a_run_without_tasks_says_so() {
        let page = usage(&RunUsage {
            unseen: vec!["<b>".to_owned(); 12],
            ..RunUsage::default()
        });
        let page = page.into_string();
        assert!(page.contains("No task has started."), "{page}");
        assert!(
            page.contains("&lt;b&gt;") && !page.contains("<b>"),
            "{page}"
        );
        assert!(page.contains("2 more problems"), "{page}");
    }
}
