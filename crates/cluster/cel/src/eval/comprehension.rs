//! Macros that iterate. Their costs equal the costs of the loops that Kubernetes expands them to.

use std::{collections::BTreeMap, rc::Rc};

use super::{Evaluator, Found};
use crate::{
    ast::{Comprehension, Macro},
    error::EvalError,
    library,
    value::{Key, Map, Value},
};

/// The values that a loop has collected.
#[derive(Default)]
struct Collected<'a> {
    items: Vec<Value<'a>>,
    entries: BTreeMap<Key, Value<'a>>,
    pairs: Vec<(Value<'a>, Value<'a>)>,
    count: u64,
    failed: Option<EvalError>,
}

impl<'a> Evaluator<'_, 'a> {
    pub(super) fn comprehension(&mut self, inner: &'a Comprehension) -> Found<'a> {
        let range = self.expr(&inner.range)?;
        let start = match inner.name {
            Macro::ExistsOne => 2,
            _ => 1,
        };
        self.meter.charge(start)?;
        let (length, keys) = match &range {
            Value::List(list) => (list.len(), None),
            Value::Map(map) => {
                self.meter.steps(map.len() as u64)?;
                (map.len(), Some(map.keys()))
            }
            _ => return Err(EvalError::NoSuchOverload),
        };
        let depth = self.locals.len();
        let mut out = Collected::default();
        for index in 0..length {
            self.meter.step()?;
            let value = match (&range, keys.as_ref().and_then(|keys| keys.get(index))) {
                (Value::Map(map), Some(key)) => map.get(key),
                (Value::List(list), _) => list.get(index),
                _ => None,
            };
            let Some(value) = value else { continue };
            let (key, value) = match &keys {
                Some(keys) => (keys[index].clone(), value?),
                None => (int(index), value?),
            };
            let item = if keys.is_some() {
                key.clone()
            } else {
                value.clone()
            };
            match &inner.var2 {
                Some(var2) => {
                    self.locals.push((&inner.var, key.clone()));
                    self.locals.push((var2, value));
                }
                None => self.locals.push((&inner.var, item.clone())),
            }
            let goes_on = self.turn(inner, key, item, &mut out);
            self.locals.truncate(depth);
            if !goes_on? {
                // The next iteration only finds that the result is known.
                let is_last = index + 1 == length;
                let cost = if inner.name == Macro::All { 2 } else { 3 };
                self.meter.charge(if is_last { 0 } else { cost })?;
                return Ok(Value::Bool(inner.name == Macro::Exists));
            }
        }
        if let Some(failed) = out.failed {
            return Err(failed);
        }
        Ok(match inner.name {
            Macro::All => Value::Bool(true),
            Macro::Exists => Value::Bool(false),
            Macro::ExistsOne => Value::Bool(out.count == 1),
            Macro::Map | Macro::Filter => Value::list(out.items),
            Macro::TransformMap | Macro::TransformMapEntry => {
                Value::Map(Map::Own(Rc::new(out.entries)))
            }
            Macro::SortBy => {
                let first = out.pairs.first().map(|(key, _)| key);
                let cost = super::cost::of_sort(out.pairs.len(), first);
                self.meter.charge(cost.saturating_add(2))?;
                library::sorted_by(out.pairs, self.meter)?
            }
        })
    }

    /// Executes one iteration of the loop. Returns false if the loop ends.
    fn turn(
        &mut self,
        inner: &'a Comprehension,
        key: Value<'a>,
        item: Value<'a>,
        out: &mut Collected<'a>,
    ) -> Result<bool, EvalError> {
        if let Some(filter) = &inner.filter
            && !truth(self.expr(filter)?)?
        {
            return Ok(true);
        }
        let found = self.expr(&inner.body);
        match inner.name {
            Macro::All | Macro::Exists => {
                let is_all = inner.name == Macro::All;
                self.meter.charge(if is_all { 3 } else { 4 })?;
                match found.and_then(truth) {
                    Ok(flag) => return Ok(flag == is_all),
                    Err(EvalError::TooCostly) => return Err(EvalError::TooCostly),
                    Err(error) => {
                        out.failed.get_or_insert(error);
                    }
                }
            }
            Macro::ExistsOne => {
                let fits = truth(found?)?;
                self.meter.charge(if fits { 2 } else { 0 })?;
                out.count += u64::from(fits);
            }
            Macro::Filter => {
                let fits = truth(found?)?;
                self.meter.charge(if fits { 13 } else { 0 })?;
                if fits {
                    out.items.push(item);
                }
            }
            Macro::Map => {
                self.meter.charge(12)?;
                out.items.push(found?);
            }
            Macro::TransformMap => {
                self.meter.charge(3)?;
                self.insert(&key, found?, out)?;
            }
            Macro::TransformMapEntry => {
                self.meter.charge(2)?;
                let Value::Map(map) = found? else {
                    return Err(EvalError::NoSuchOverload);
                };
                for key in map.keys() {
                    self.meter.step()?;
                    if let Some(value) = map.get(&key) {
                        self.insert(&key, value?, out)?;
                    }
                }
            }
            Macro::SortBy => {
                self.meter.charge(12)?;
                out.pairs.push((found?, item));
            }
        }
        Ok(true)
    }

    fn insert(
        &mut self,
        key: &Value<'a>,
        value: Value<'a>,
        out: &mut Collected<'a>,
    ) -> Result<(), EvalError> {
        let known = Key::of(key).ok_or_else(|| EvalError::new("unsupported key type"))?;
        match out.entries.insert(known, value) {
            None => Ok(()),
            Some(_) => Err(EvalError::new("insert failed: key already exists")),
        }
    }
}

fn int<'a>(number: usize) -> Value<'a> {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

fn truth(value: Value<'_>) -> Result<bool, EvalError> {
    match value {
        Value::Bool(flag) => Ok(flag),
        _ => Err(EvalError::NoSuchOverload),
    }
}
