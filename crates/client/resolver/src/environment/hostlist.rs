//! Expands Slurm's lists of hosts, such as `gpu[01-03,7],login1`, and its numbers of tasks per node,
//! such as `2(x3),1`.

/// The maximum number of hosts or nodes of a list.
const MAX: usize = 65_536;

/// Expands a list of hosts, in its order. Numbers keep their leading zeros; a host may have
/// several brackets.
pub(super) fn hosts(text: &str) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    for part in split_outside_brackets(text)? {
        all.extend(expand(part)?);
        check_size(all.len())?;
    }
    Ok(all)
}

fn check_size(count: usize) -> Result<(), String> {
    if count > MAX {
        return Err(format!("it has more than {MAX} hosts"));
    }
    Ok(())
}

/// Splits at the commas that are not in brackets.
fn split_outside_brackets(text: &str) -> Result<Vec<&str>, String> {
    let (mut parts, mut begin, mut inside) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        match c {
            '[' if inside => return Err(format!("a bracket in a bracket at byte {at}")),
            '[' => inside = true,
            ']' if !inside => return Err(format!("a bracket that was not opened at byte {at}")),
            ']' => inside = false,
            ',' if !inside => {
                parts.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    if inside {
        return Err("a bracket is not closed".to_owned());
    }
    parts.push(&text[begin..]);
    match parts.iter().any(|part| part.is_empty()) {
        true => Err("a name is empty".to_owned()),
        false => Ok(parts),
    }
}

/// Expands one part, whose brackets are complete.
fn expand(part: &str) -> Result<Vec<String>, String> {
    let Some((prefix, rest)) = part.split_once('[') else {
        return Ok(vec![part.to_owned()]);
    };
    let (ranges, suffix) = rest.split_once(']').unwrap_or((rest, ""));
    let suffixes = expand(suffix)?;
    let mut all = Vec::new();
    for range in ranges.split(',') {
        for number in numbers(range)? {
            for suffix in &suffixes {
                all.push(format!("{prefix}{number}{suffix}"));
                check_size(all.len())?;
            }
        }
    }
    Ok(all)
}

/// Expands a range such as `01-03`.
fn numbers(range: &str) -> Result<Vec<String>, String> {
    let invalid = || format!("{range:?} is not a range of numbers, such as 01-03");
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(first) || !is_number(last) {
        return Err(invalid());
    }
    let parse = |text: &str| text.parse::<usize>().map_err(|_| invalid());
    let (from, to) = (parse(first)?, parse(last)?);
    if from > to {
        return Err(invalid());
    }
    check_size((to - from).saturating_add(1))?;
    let width = first.len();
    Ok((from..=to)
        .map(|number| format!("{number:0width$}"))
        .collect())
}

/// Expands the numbers of tasks per node, such as `2(x3),1`, which is `2, 2, 2, 1`.
pub(super) fn tasks_per_node(text: &str) -> Result<Vec<u32>, String> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let invalid = || format!("{part:?} is not a number of tasks, such as 2 or 2(x3)");
        let (tasks, times) = match part.split_once("(x") {
            None => (part, 1),
            Some((tasks, times)) => {
                let times = times.strip_suffix(')').ok_or_else(invalid)?;
                (tasks, times.parse::<usize>().map_err(|_| invalid())?)
            }
        };
        let tasks: u32 = tasks.parse().map_err(|_| invalid())?;
        check_size(all.len().saturating_add(times))?;
        all.extend(std::iter::repeat_n(tasks, times));
    }
    Ok(all)
}
