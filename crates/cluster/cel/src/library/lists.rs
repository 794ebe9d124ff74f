//! Functions of lists.

use std::cmp::Ordering;

use crate::{
    error::EvalError,
    library::add,
    meter::Meter,
    value::{self, List, Value, equal, position},
};

pub(super) fn call<'a>(
    name: &str,
    args: &[Value<'a>],
    meter: &mut Meter,
) -> Option<Result<Value<'a>, EvalError>> {
    if name == "lists.range" {
        return Some(match args {
            [Value::Int(count)] => range(*count, meter),
            _ => Err(EvalError::NoSuchOverload),
        });
    }
    if let ("size", [Value::Map(map)]) = (name, args) {
        return Some(Ok(int(map.len())));
    }
    let [Value::List(list), rest @ ..] = args else {
        return None;
    };
    Some(match (name, rest) {
        ("size", []) => Ok(int(list.len())),
        ("indexOf", [item]) => position(list, item, meter).map(found),
        ("lastIndexOf", [item]) => last_position(list, item, meter).map(found),
        ("isSorted", []) => is_sorted(list, meter),
        ("sum", []) => sum(list, meter),
        ("min", []) => extreme(list, "min", Ordering::Less, meter),
        ("max", []) => extreme(list, "max", Ordering::Greater, meter),
        ("slice", [Value::Int(from), Value::Int(to)]) => slice(list, *from, *to),
        ("flatten", []) => flatten(list, 1, meter),
        ("flatten", [Value::Int(depth)]) => match u64::try_from(*depth) {
            Ok(depth) => flatten(list, depth, meter),
            Err(_) => Err(EvalError::new("level must be non-negative")),
        },
        ("sort", []) => list.to_vec().and_then(|items| {
            let pairs = items.iter().map(|item| (item.clone(), item.clone()));
            sorted_by(pairs.collect(), meter)
        }),
        ("distinct", []) => distinct(list, meter),
        ("reverse", []) => list.to_vec().map(|mut items| {
            items.reverse();
            Value::list(items)
        }),
        ("first", []) => end(list.get(0)),
        ("last", []) => end(list.len().checked_sub(1).and_then(|last| list.get(last))),
        _ => return None,
    })
}

fn int<'a>(number: usize) -> Value<'a> {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

fn found<'a>(index: Option<usize>) -> Value<'a> {
    index.map_or(Value::Int(-1), int)
}

fn end<'a>(item: Option<Result<Value<'a>, EvalError>>) -> Result<Value<'a>, EvalError> {
    Ok(match item {
        Some(item) => Value::some(item?),
        None => Value::Optional(None),
    })
}

fn range<'a>(count: i64, meter: &mut Meter) -> Result<Value<'a>, EvalError> {
    let Ok(length) = u64::try_from(count) else {
        return Err(EvalError::new(format!(
            "lists.range: size must be non-negative, got {count}"
        )));
    };
    meter.steps(length)?;
    Ok(Value::list((0..count).map(Value::Int).collect()))
}

fn last_position(
    list: &List<'_>,
    wanted: &Value<'_>,
    meter: &mut Meter,
) -> Result<Option<usize>, EvalError> {
    let mut last = None;
    for (index, item) in list.iter().enumerate() {
        if equal(&item?, wanted, meter)? {
            last = Some(index);
        }
    }
    Ok(last)
}

fn is_sorted<'a>(list: &List<'a>, meter: &mut Meter) -> Result<Value<'a>, EvalError> {
    let mut before: Option<Value<'a>> = None;
    for item in list.iter() {
        let item = item?;
        meter.step()?;
        if let Some(before) = &before
            && value::compare(before, &item, meter)?.is_gt()
        {
            return Ok(Value::Bool(false));
        }
        before = Some(item);
    }
    Ok(Value::Bool(true))
}

fn sum<'a>(list: &List<'a>, meter: &mut Meter) -> Result<Value<'a>, EvalError> {
    let mut total: Option<Value<'a>> = None;
    for item in list.iter() {
        let item = item?;
        meter.step()?;
        total = Some(match total {
            None => item,
            Some(total) => add(&total, &item, meter)?,
        });
    }
    Ok(total.unwrap_or(Value::Int(0)))
}

fn extreme<'a>(
    list: &List<'a>,
    name: &str,
    wanted: Ordering,
    meter: &mut Meter,
) -> Result<Value<'a>, EvalError> {
    let mut best: Option<Value<'a>> = None;
    for item in list.iter() {
        let item = item?;
        meter.step()?;
        let better = match &best {
            None => true,
            Some(best) => value::compare(&item, best, meter)? == wanted,
        };
        if better {
            best = Some(item);
        }
    }
    best.ok_or_else(|| EvalError::new(format!("{name} called on empty list")))
}

fn slice<'a>(list: &List<'a>, from: i64, to: i64) -> Result<Value<'a>, EvalError> {
    let wrong = |why: String| Err(EvalError::new(format!("cannot slice({from}, {to}), {why}")));
    let (Ok(start), Ok(end)) = (usize::try_from(from), usize::try_from(to)) else {
        return wrong("negative indexes not supported".to_owned());
    };
    if start > end {
        return wrong("start index must be less than or equal to end index".to_owned());
    }
    if end > list.len() {
        return wrong(format!("list is length {}", list.len()));
    }
    let items: Result<_, _> = (start..end).filter_map(|index| list.get(index)).collect();
    Ok(Value::list(items?))
}

fn flatten<'a>(list: &List<'a>, depth: u64, meter: &mut Meter) -> Result<Value<'a>, EvalError> {
    fn fill<'a>(
        list: &List<'a>,
        depth: u64,
        out: &mut Vec<Value<'a>>,
        meter: &mut Meter,
    ) -> Result<(), EvalError> {
        for item in list.iter() {
            meter.step()?;
            match item? {
                Value::List(inner) if depth > 0 => fill(&inner, depth - 1, out, meter)?,
                item => out.push(item),
            }
        }
        Ok(())
    }
    let mut out = Vec::new();
    fill(list, depth, &mut out, meter)?;
    Ok(Value::list(out))
}

fn distinct<'a>(list: &List<'a>, meter: &mut Meter) -> Result<Value<'a>, EvalError> {
    let mut out: Vec<Value<'a>> = Vec::new();
    'items: for item in list.iter() {
        let item = item?;
        for known in &out {
            if equal(known, &item, meter)? {
                continue 'items;
            }
        }
        out.push(item);
    }
    Ok(Value::list(out))
}

/// Sorts items by their keys: pairs of a key and an item.
pub(crate) fn sorted_by<'a>(
    mut pairs: Vec<(Value<'a>, Value<'a>)>,
    meter: &mut Meter,
) -> Result<Value<'a>, EvalError> {
    let same = pairs
        .windows(2)
        .all(|pair| pair[0].0.type_name() == pair[1].0.type_name());
    if !same {
        return Err(EvalError::new("list elements must have the same type"));
    }
    // Values that equal themselves have a total order within their type.
    let mut longest = 0;
    for (key, _) in &pairs {
        longest = longest.max(key.size());
        value::compare(key, key, meter).map_err(|error| match error {
            EvalError::NoSuchOverload => EvalError::new("list elements must be comparable"),
            error => error,
        })?;
    }
    let rounds = u64::from(pairs.len().checked_ilog2().unwrap_or_default()) + 1;
    let comparisons = (pairs.len() as u64).saturating_mul(rounds);
    meter.steps(comparisons.saturating_mul(longest / 16 + 1))?;
    let mut unlimited = Meter::new(u64::MAX);
    pairs.sort_by(|a, b| value::compare(&a.0, &b.0, &mut unlimited).unwrap_or(Ordering::Equal));
    Ok(Value::list(
        pairs.into_iter().map(|(_, item)| item).collect(),
    ))
}
