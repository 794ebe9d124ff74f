//! Evaluates checked expressions.

mod composition;
mod comprehension;
mod cost;

use std::{collections::BTreeMap, rc::Rc};

use crate::{
    ast::{Expr, Kind, Literal},
    error::EvalError,
    library,
    meter::Meter,
    names::{AUTHORIZER, JSON_PATCH, REQUEST_RESOURCE},
    signatures,
    value::{Bytes, Key, Map, Struct, Text, Value},
};

pub(crate) use composition::{Composed, Composition, Definitions};

pub(crate) type Found<'a> = Result<Value<'a>, EvalError>;

/// Evaluates an expression with the values of its variables.
pub(crate) fn evaluate<'a>(
    root: &'a Expr,
    variables: &[(&str, Value<'a>)],
    composed: Option<Composed<'_, 'a>>,
    meter: &mut Meter,
) -> Found<'a> {
    let mut evaluator = Evaluator {
        variables,
        composed,
        locals: Vec::new(),
        meter,
    };
    evaluator.expr(root)
}

struct Evaluator<'e, 'a> {
    variables: &'e [(&'e str, Value<'a>)],
    /// The variables of a policy that the expression can read.
    composed: Option<Composed<'e, 'a>>,
    locals: Vec<(&'a str, Value<'a>)>,
    meter: &'e mut Meter,
}

impl<'a> Evaluator<'_, 'a> {
    fn expr(&mut self, expr: &'a Expr) -> Found<'a> {
        self.meter.step()?;
        match &expr.kind {
            Kind::Literal(literal) => Ok(of_literal(literal)),
            Kind::Ident(name) => self.ident(name),
            Kind::Select {
                operand,
                field,
                test,
                optional,
            } => self.select(operand, field, *test, *optional),
            Kind::Call {
                function,
                target,
                args,
            } => self.call(function, target.as_deref(), args),
            Kind::List(items) => {
                self.meter.charge(if expr.is_constant { 0 } else { 10 })?;
                self.list(items)
            }
            Kind::Map(entries) => {
                self.meter.charge(if expr.is_constant { 0 } else { 30 })?;
                self.map(entries)
            }
            Kind::Struct { name, fields } => {
                self.meter.charge(40)?;
                self.construction(name, fields)
            }
            Kind::Comprehension(inner) => self.comprehension(inner),
            Kind::OptMap {
                target,
                var,
                body,
                flat,
            } => self.opt_map(target, var, body, *flat),
        }
    }

    fn ident(&mut self, name: &'a str) -> Found<'a> {
        let is_known = self.locals.iter().any(|(known, _)| *known == name)
            || self.variables.iter().any(|(known, _)| *known == name);
        self.meter.charge(u64::from(is_known))?;
        if let Some((_, value)) = self.locals.iter().rev().find(|(known, _)| *known == name) {
            return Ok(value.clone());
        }
        if let Some((_, value)) = self.variables.iter().find(|(known, _)| *known == name) {
            return Ok(value.clone());
        }
        signatures::type_named(name)
            .map(Value::Type)
            .ok_or_else(|| EvalError::new(format!("no such attribute(s): {name}")))
    }

    fn select(
        &mut self,
        operand: &'a Expr,
        field: &'a str,
        test: bool,
        optional: bool,
    ) -> Found<'a> {
        if field == REQUEST_RESOURCE
            && matches!(&operand.kind, Kind::Ident(name) if name == AUTHORIZER)
            && let Some(check) = self.request_check()
        {
            self.meter.charge(1)?;
            return Ok(check);
        }
        let value = self.expr(operand)?;
        if !test && !optional {
            // The first access to a computed value has an additional cost.
            let is_computed = !operand.is_attribute();
            self.meter.charge(1 + u64::from(is_computed))?;
        }
        let (value, optional) = match value {
            Value::Optional(None) if test => return Ok(Value::Bool(false)),
            Value::Optional(None) => return Ok(Value::Optional(None)),
            Value::Optional(Some(inner)) => ((*inner).clone(), true),
            value => (value, optional),
        };
        if let Value::Variables = value {
            return self.composed_field(field, test, optional);
        }
        if let Value::Struct(made) = &value {
            let found = match made.fields.get(field) {
                None if made.name == JSON_PATCH && field != "value" => {
                    (!test && !optional).then(|| Value::text(""))
                }
                found => found.cloned(),
            };
            return found_field(found.map(Ok), field, test, optional);
        }
        let Value::Map(map) = value else {
            return match (optional, test) {
                (true, false) => Ok(Value::Optional(None)),
                _ => Err(EvalError::NoSuchOverload),
            };
        };
        let found = map.field(field);
        match (found, test, optional) {
            (found, true, _) => Ok(Value::Bool(found.is_some())),
            (Some(found), false, true) => {
                self.meter.charge(1)?;
                Ok(Value::some(found?))
            }
            (Some(found), false, false) => found,
            (None, false, true) => Ok(Value::Optional(None)),
            (None, false, false) => Err(EvalError::no_such_key(field)),
        }
    }

    /// Returns the check of the request itself, if an authorizer exists.
    fn request_check(&self) -> Option<Value<'a>> {
        let is_local = self.locals.iter().any(|(known, _)| *known == AUTHORIZER);
        let name = [AUTHORIZER, ".", REQUEST_RESOURCE].concat();
        let found = self.variables.iter().find(|(known, _)| *known == name);
        found.filter(|_| !is_local).map(|(_, value)| value.clone())
    }

    /// Reads a variable of a policy.
    fn composed_field(&mut self, field: &str, test: bool, optional: bool) -> Found<'a> {
        let composed = self.composed;
        let found = composed.and_then(|composed| composed.read(field, self.variables));
        found_field(found, field, test, optional)
    }

    fn construction(&mut self, name: &'a str, fields: &'a [(String, Expr, bool)]) -> Found<'a> {
        let mut made = BTreeMap::new();
        for (field, value, optional) in fields {
            let value = match (self.expr(value)?, optional) {
                (Value::Optional(Some(inner)), true) => (*inner).clone(),
                (Value::Optional(None), true) => continue,
                (value, _) => value,
            };
            match (name, field.as_str()) {
                (JSON_PATCH, "op" | "path" | "from") if !matches!(value, Value::String(_)) => {
                    return Err(EvalError::new(format!(
                        "unexpected type {} for JSONPatchType '{field}' field",
                        value.type_name()
                    )));
                }
                (JSON_PATCH, "op" | "path" | "from") => {}
                (JSON_PATCH, "value") => {}
                (JSON_PATCH, other) => {
                    return Err(EvalError::new(format!(
                        "unexpected JSONPatchType field: {other}"
                    )));
                }
                _ => {}
            }
            made.insert(field.as_str(), value);
        }
        let fields = made;
        Ok(Value::Struct(Rc::new(Struct { name, fields })))
    }

    fn call(&mut self, name: &str, target: Option<&'a Expr>, args: &'a [Expr]) -> Found<'a> {
        match (name, args) {
            ("_&&_", args) => return self.all_are(args, true),
            ("_||_", args) => return self.all_are(args, false),
            ("_?_:_", [condition, right, wrong]) => {
                let chosen = match self.expr(condition)? {
                    Value::Bool(true) => right,
                    Value::Bool(false) => wrong,
                    _ => return Err(EvalError::NoSuchOverload),
                };
                let found = self.expr(chosen);
                if right.is_attribute() && wrong.is_attribute() {
                    self.meter.refund(1);
                }
                return found;
            }
            ("or" | "orValue", [other]) if target.is_some() => {
                let Some(target) = target else {
                    return Err(EvalError::NoSuchOverload);
                };
                return match self.expr(target)? {
                    Value::Optional(None) => self.expr(other),
                    Value::Optional(Some(inner)) if name == "orValue" => Ok((*inner).clone()),
                    found @ Value::Optional(_) => Ok(found),
                    _ => Err(EvalError::NoSuchOverload),
                };
            }
            ("_[_]" | "_[?_]", [attribute, index]) => {
                let target = self.expr(attribute)?;
                let is_computed = !attribute.is_attribute();
                let is_attribute = index.is_attribute();
                let index = self.expr(index)?;
                if is_attribute {
                    self.meter.refund(1);
                }
                self.meter.charge(1 + u64::from(is_computed))?;
                return at_index(target, &index, name == "_[?_]");
            }
            _ => {}
        }
        match self.result(name, target, args) {
            Err(EvalError::TooCostly) => Err(EvalError::TooCostly),
            Err(error) => {
                self.meter.charge(1)?;
                Err(error)
            }
            found => found,
        }
    }

    /// The result of a function of the library.
    fn result(&mut self, name: &str, target: Option<&'a Expr>, args: &'a [Expr]) -> Found<'a> {
        let mut values = Vec::with_capacity(args.len() + 1);
        for arg in target.into_iter().chain(args) {
            values.push(self.expr(arg)?);
        }
        let result = library::call(name, &values, self.meter)?;
        // Kubernetes computes these calls when it compiles the expression.
        let is_constant = match args {
            [arg] => target.is_none() && arg.is_constant && library::is_conversion(name),
            [_, list] => name == "@in" && list.is_constant && matches!(list.kind, Kind::List(_)),
            _ => false,
        };
        if !is_constant {
            let cost = cost::of_call(name, &values, &result, self.meter)?;
            self.meter.charge(cost)?;
        }
        Ok(result)
    }

    /// Evaluates conditions until one is not `wanted`. Such a condition hides the errors of others.
    fn all_are(&mut self, args: &'a [Expr], wanted: bool) -> Found<'a> {
        let mut failed = None;
        for arg in args {
            match self.expr(arg) {
                Ok(Value::Bool(flag)) if flag == wanted => {}
                Ok(Value::Bool(flag)) => return Ok(Value::Bool(flag)),
                Ok(_) => {
                    failed.get_or_insert(EvalError::NoSuchOverload);
                }
                Err(EvalError::TooCostly) => return Err(EvalError::TooCostly),
                Err(error) => {
                    failed.get_or_insert(error);
                }
            }
        }
        failed.map_or(Ok(Value::Bool(wanted)), Err)
    }

    fn list(&mut self, items: &'a [(Expr, bool)]) -> Found<'a> {
        let mut out = Vec::with_capacity(items.len());
        for (item, optional) in items {
            match (self.expr(item)?, optional) {
                (Value::Optional(Some(inner)), true) => out.push((*inner).clone()),
                (Value::Optional(None), true) => {}
                (value, _) => out.push(value),
            }
        }
        Ok(Value::list(out))
    }

    fn map(&mut self, entries: &'a [(Expr, Expr, bool)]) -> Found<'a> {
        let mut out = BTreeMap::new();
        for (key, value, optional) in entries {
            let key = self.expr(key)?;
            let key = Key::of(&key).ok_or_else(|| EvalError::new("unsupported key type"))?;
            let value = match (self.expr(value)?, optional) {
                (Value::Optional(Some(inner)), true) => (*inner).clone(),
                (Value::Optional(None), true) => continue,
                (value, _) => value,
            };
            out.insert(key, value);
        }
        Ok(Value::Map(Map::Own(Rc::new(out))))
    }

    fn opt_map(&mut self, target: &'a Expr, var: &'a str, body: &'a Expr, flat: bool) -> Found<'a> {
        let before = self.meter.cost();
        let Value::Optional(inner) = self.expr(target)? else {
            return Err(EvalError::NoSuchOverload);
        };
        // The costs of the calls that Kubernetes expands the macro to: hasValue
        // and none, or hasValue, the target again, value, and of.
        let again = self.meter.cost().saturating_sub(before);
        let Some(inner) = inner else {
            self.meter.charge(2)?;
            return Ok(Value::Optional(None));
        };
        self.meter
            .charge(again.saturating_add(if flat { 2 } else { 3 }))?;
        self.locals.push((var, (*inner).clone()));
        let found = self.expr(body);
        self.locals.pop();
        match flat {
            true => found,
            false => found.map(Value::some),
        }
    }
}

/// The result of reading a field that has been looked up.
fn found_field<'a>(found: Option<Found<'a>>, field: &str, test: bool, optional: bool) -> Found<'a> {
    match (found, test, optional) {
        (Some(found), true, _) => found.map(|_| Value::Bool(true)),
        (None, true, _) => Ok(Value::Bool(false)),
        (Some(found), false, true) => found.map(Value::some),
        (Some(found), false, false) => found,
        (None, false, true) => Ok(Value::Optional(None)),
        (None, false, false) => Err(EvalError::no_such_key(field)),
    }
}

fn of_literal(literal: &Literal) -> Value<'_> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(flag) => Value::Bool(*flag),
        Literal::Int(number) => Value::Int(*number),
        Literal::Uint(number) => Value::Uint(*number),
        Literal::Double(number) => Value::Double(*number),
        Literal::String(text) => Value::String(Text::Part(text)),
        Literal::Bytes(bytes) => Value::Bytes(Bytes::Own(bytes.as_slice().into())),
    }
}

fn at_index<'a>(target: Value<'a>, index: &Value<'a>, optional: bool) -> Found<'a> {
    let (target, optional) = match target {
        Value::Optional(None) => return Ok(Value::Optional(None)),
        Value::Optional(Some(inner)) => ((*inner).clone(), true),
        target => (target, optional),
    };
    let found = match &target {
        Value::List(list) => {
            let number = match index {
                Value::Int(number) => usize::try_from(*number).ok(),
                Value::Uint(number) => usize::try_from(*number).ok(),
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                Value::Double(number) if number.fract() == 0.0 && *number >= 0.0 => {
                    Some(*number as usize)
                }
                Value::Double(_) => None,
                _ => return Err(EvalError::NoSuchOverload),
            };
            number.and_then(|number| list.get(number))
        }
        Value::Map(map) => map.get(index),
        _ => return Err(EvalError::NoSuchOverload),
    };
    match (found, optional) {
        (Some(found), false) => found,
        (Some(found), true) => found.map(Value::some),
        (None, true) => Ok(Value::Optional(None)),
        (None, false) => {
            let text = match index {
                Value::Int(number) => number.to_string(),
                Value::Uint(number) => number.to_string(),
                Value::Double(number) => number.to_string(),
                Value::String(text) => text.chars().take(256).collect(),
                Value::Bool(flag) => flag.to_string(),
                _ => String::new(),
            };
            Err(match target {
                Value::List(_) => EvalError::new(format!("index out of bounds: {text}")),
                _ => EvalError::no_such_key(&text),
            })
        }
    }
}
