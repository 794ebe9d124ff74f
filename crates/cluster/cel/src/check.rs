//! Checks the types of an expression.

use std::sync::Arc;

use crate::{
    ast::{Comprehension, Expr, Kind, Literal, Macro},
    library,
    names::{AUTHORIZER, JSON_PATCH, OBJECT, REQUEST_RESOURCE},
    signatures::{self, Overload},
    source::Problem,
    types::{Opaque, Type},
};

/// Number of problems that are reported.
const MAX_PROBLEMS: usize = 100;

/// The types of the nodes of an expression, by the nodes' ids.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) types: Vec<Type>,
    /// Names of the variables that the expression uses.
    pub(crate) uses: Vec<String>,
}

/// Checks an expression with `nodes` nodes that may use `variables`. `constructs` is true if it may
/// construct objects and patches.
pub(crate) fn check(
    root: &Expr,
    nodes: usize,
    variables: &[(String, Type)],
    constructs: bool,
) -> Result<Checked, Vec<Problem>> {
    let mut checker = Checker {
        types: vec![Type::Error; nodes],
        variables,
        constructs,
        locals: Vec::new(),
        bound: Vec::new(),
        trail: Vec::new(),
        problems: Vec::new(),
        uses: Vec::new(),
        formats: 0,
    };
    checker.expr(root);
    if !checker.problems.is_empty() {
        return Err(checker.problems);
    }
    let types = std::mem::take(&mut checker.types);
    Ok(Checked {
        types: types.iter().map(|found| checker.resolve(found)).collect(),
        uses: checker.uses,
    })
}

struct Checker<'v> {
    types: Vec<Type>,
    variables: &'v [(String, Type)],
    /// True if the expression may construct objects and patches.
    constructs: bool,
    locals: Vec<(String, Type)>,
    /// The types that are known for type variables.
    bound: Vec<Option<Type>>,
    /// Changes of `bound`, to undo them.
    trail: Vec<(usize, Option<Type>)>,
    problems: Vec<Problem>,
    uses: Vec<String>,
    /// The number of enclosing calls of `format`, whose lists may have mixed types.
    formats: usize,
}

impl Checker<'_> {
    fn report(&mut self, at: usize, message: String) -> Type {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(Problem { at, message });
        }
        Type::Error
    }

    fn mismatch(&mut self, at: usize, expected: &Type, found: &Type) {
        let found = self.resolve(found);
        self.report(
            at,
            format!("expected type '{expected}' but found '{found}'"),
        );
    }

    fn expr(&mut self, expr: &Expr) -> Type {
        let found = match &expr.kind {
            Kind::Literal(literal) => of_literal(literal),
            Kind::Ident(name) => self.ident(expr, name),
            Kind::Select {
                operand,
                field,
                test,
                optional,
            } => {
                let found = self.select(expr, operand, field, *optional);
                if *test { Type::Bool } else { found }
            }
            Kind::Call {
                function,
                target,
                args,
            } => self.call(expr, function, target.as_deref(), args),
            Kind::List(items) => {
                let items = items.iter().map(|(item, optional)| (item, *optional));
                Type::list(self.common(items))
            }
            Kind::Map(entries) => {
                let key = self.common(entries.iter().map(|(key, ..)| (key, false)));
                let value = self.common(entries.iter().map(|(_, value, opt)| (value, *opt)));
                Type::map(self.resolve(&key), value)
            }
            Kind::Struct { name, fields } => self.construction(expr.at, name, fields),
            Kind::Comprehension(inner) => self.comprehension(expr.at, inner),
            Kind::OptMap {
                target,
                var,
                body,
                flat,
            } => self.opt_map(target, var, body, *flat),
        };
        let found = self.resolve(&found);
        if let Some(slot) = self.types.get_mut(expr.id) {
            *slot = found.clone();
        }
        found
    }

    fn fresh(&mut self) -> Type {
        self.bound.push(None);
        Type::Var(self.bound.len() - 1)
    }

    /// The type with everything that is known about it.
    fn resolve(&self, of: &Type) -> Type {
        match of {
            Type::Var(id) => match self.bound.get(*id).and_then(Option::as_ref) {
                Some(known) => self.resolve(known),
                None => of.clone(),
            },
            Type::List(inner) => Type::list(self.resolve(inner)),
            Type::Optional(inner) => Type::optional(self.resolve(inner)),
            Type::Map(key, value) => Type::map(self.resolve(key), self.resolve(value)),
            _ => of.clone(),
        }
    }

    fn bind(&mut self, id: usize, to: Type) {
        if let Some(slot) = self.bound.get_mut(id) {
            self.trail.push((id, slot.replace(to)));
        }
    }

    fn undo(&mut self, length: usize) {
        while self.trail.len() > length
            && let Some((id, before)) = self.trail.pop()
            && let Some(slot) = self.bound.get_mut(id)
        {
            *slot = before;
        }
    }

    /// Returns true if a value of type `from` can be used as `to`.
    fn fits(&mut self, from: &Type, to: &Type) -> bool {
        if let Type::Var(id) = to {
            let known = self.bound.get(*id).cloned().flatten();
            return match known {
                None => {
                    let from = self.resolve(from);
                    if !matches!(from, Type::Var(same) if same == *id) {
                        if mentions(&from, *id) {
                            return false;
                        }
                        self.bind(*id, from);
                    }
                    true
                }
                Some(known) => {
                    let fits = self.fits(from, &known) || self.fits(&known, from);
                    let from = self.resolve(from);
                    // The more general type is kept.
                    if fits && (from.is_dyn() || matches!(known, Type::Null)) {
                        self.bind(*id, from);
                    }
                    fits
                }
            };
        }
        if let Type::Var(id) = from {
            return match self.bound.get(*id).cloned().flatten() {
                Some(known) => self.fits(&known, to),
                None => {
                    let to = self.resolve(to);
                    if mentions(&to, *id) {
                        return false;
                    }
                    self.bind(*id, to);
                    true
                }
            };
        }
        match (from, to) {
            _ if from.is_dyn() || to.is_dyn() => true,
            (Type::Null, to) => to.is_nullable(),
            (from, Type::Null) => from.is_nullable(),
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => {
                self.fits(a, b)
            }
            (Type::Map(ka, va), Type::Map(kb, vb)) => self.fits(ka, kb) && self.fits(va, vb),
            (Type::Object(a), Type::Object(b)) => Arc::ptr_eq(a, b),
            (Type::Opaque(a), Type::Opaque(b)) => a == b,
            (Type::Struct(a), Type::Struct(b)) => a == b,
            (Type::Object(_) | Type::Opaque(_) | Type::Struct(_), _) => false,
            _ => std::mem::discriminant(from) == std::mem::discriminant(to),
        }
    }

    fn ident(&mut self, expr: &Expr, name: &str) -> Type {
        if let Some((_, found)) = self.locals.iter().rev().find(|(known, _)| known == name) {
            return found.clone();
        }
        if let Some((_, found)) = self.variables.iter().find(|(known, _)| known == name) {
            if !self.uses.iter().any(|used| used == name) {
                self.uses.push(name.to_owned());
            }
            return found.clone();
        }
        if signatures::type_named(name).is_some() {
            return Type::Meta;
        }
        self.report(expr.at, undeclared(name))
    }

    fn select(&mut self, expr: &Expr, operand: &Expr, field: &str, optional: bool) -> Type {
        if field == REQUEST_RESOURCE
            && !optional
            && matches!(&operand.kind, Kind::Ident(name) if name == AUTHORIZER)
            && let Type::Opaque(Opaque::Authorizer) = self.expr(operand)
        {
            return Type::Opaque(Opaque::ResourceCheck);
        }
        let found = self.expr(operand);
        let (target, is_optional) = match &found {
            Type::Optional(inner) => ((**inner).clone(), true),
            _ => (found, false),
        };
        let result = match &target {
            Type::Map(_, value) => (**value).clone(),
            Type::Object(decl) => match decl.field(field) {
                Some(field) => Type::of(&field.decl),
                None => self.report(expr.at, format!("undefined field '{field}'")),
            },
            Type::Variables(fields) => match fields.get(field) {
                Some(found) => found.clone(),
                None => self.report(expr.at, format!("undefined field '{field}'")),
            },
            Type::Struct(name) => match (&**name, field) {
                (JSON_PATCH, "op" | "path" | "from") => Type::String,
                _ => Type::Dyn,
            },
            Type::Dyn | Type::Error => Type::Dyn,
            Type::Var(id) => {
                self.bind(*id, Type::Dyn);
                Type::Dyn
            }
            other => {
                let message = format!("type '{other}' does not support field selection");
                self.report(expr.at, message);
                Type::Dyn
            }
        };
        match optional || is_optional {
            true => Type::optional(result),
            false => result,
        }
    }

    fn call(&mut self, expr: &Expr, name: &str, target: Option<&Expr>, args: &[Expr]) -> Type {
        let is_format = usize::from(name == "format");
        self.formats += is_format;
        let types: Vec<Type> = target
            .into_iter()
            .chain(args)
            .map(|arg| self.expr(arg))
            .collect();
        self.formats -= is_format;
        if !signatures::is_function(name) {
            return self.report(expr.at, undeclared(name));
        }
        if matches!(name, "_&&_" | "_||_") {
            for (arg, found) in args.iter().zip(&types) {
                if !self.fits(found, &Type::Bool) {
                    self.mismatch(arg.at, &Type::Bool, found);
                }
            }
            return Type::Bool;
        }
        self.literals(name, target, args);
        if let ("format", Some(text)) = (name, target) {
            self.format(expr.at, text, args);
        }
        let mut result: Option<Type> = None;
        for overload in signatures::overloads(name) {
            if overload.is_method == target.is_some()
                && let Some(found) = self.overload(overload, &types)
            {
                result = Some(match result {
                    None => found,
                    Some(Type::Dyn) => Type::Dyn,
                    Some(before) if before.to_string() == found.to_string() => before,
                    Some(_) => Type::Dyn,
                });
            }
        }
        result.unwrap_or_else(|| {
            let texts: Vec<String> = types.iter().map(|t| self.resolve(t).to_string()).collect();
            let signature = match (target.is_some(), texts.split_first()) {
                (true, Some((receiver, rest))) => format!("{receiver}.({})", rest.join(", ")),
                _ => format!("({})", texts.join(", ")),
            };
            let message =
                format!("found no matching overload for '{name}' applied to '{signature}'");
            self.report(expr.at, message)
        })
    }

    fn overload(&mut self, overload: &Overload, args: &[Type]) -> Option<Type> {
        if overload.args.len() != args.len() {
            return None;
        }
        let (start, base) = (self.trail.len(), self.bound.len());
        // Adds a variable for each of the two parameters that signatures have.
        self.fresh();
        self.fresh();
        let mut pairs = args.iter().zip(&overload.args);
        if pairs.all(|(found, expected)| self.fits(found, &shifted(expected, base))) {
            let result = self.resolve(&shifted(&overload.result, base));
            return Some(result);
        }
        self.undo(start);
        self.bound.truncate(base);
        None
    }

    /// Reports constants that are not valid patterns, durations or times.
    fn literals(&mut self, name: &str, target: Option<&Expr>, args: &[Expr]) {
        let arg = match (name, target, args) {
            ("matches", Some(_), [arg]) | ("matches", None, [_, arg]) => arg,
            ("duration" | "timestamp", None, [arg]) => arg,
            _ => return,
        };
        if let Kind::Literal(Literal::String(text)) = &arg.kind
            && !library::is_valid_literal(name, text)
        {
            self.report(arg.at, format!("invalid {name} argument"));
        }
    }

    /// Reports a constant format that does not fit its arguments.
    fn format(&mut self, at: usize, text: &Expr, args: &[Expr]) {
        let (Kind::Literal(Literal::String(text)), [list]) = (&text.kind, args) else {
            return;
        };
        let Kind::List(items) = &list.kind else {
            return;
        };
        let clauses = match library::clauses(text) {
            Ok(clauses) => clauses,
            Err(why) => {
                self.report(at, format!("could not parse formatting clause: {why}"));
                return;
            }
        };
        if clauses.len() > items.len() {
            self.report(at, format!("index {} out of range", items.len()));
            return;
        }
        for (clause, (item, _)) in clauses.iter().zip(items) {
            let found = self.types.get(item.id).cloned().unwrap_or(Type::Dyn);
            let expected = match (clause, &found) {
                (_, Type::Dyn | Type::Error | Type::Var(_)) => continue,
                ('d', Type::Int | Type::Uint) => continue,
                ('d', _) => "decimal clause can only be used on integers",
                ('f', Type::Double) => continue,
                ('f', _) => "fixed-point clause can only be used on doubles",
                ('e', Type::Double) => continue,
                ('e', _) => "scientific clause can only be used on doubles",
                _ => continue,
            };
            let message = format!("error during formatting: {expected}, was given {found}");
            self.report(item.at, message);
        }
    }

    /// The common type of elements.
    fn common<'e>(&mut self, items: impl Iterator<Item = (&'e Expr, bool)>) -> Type {
        let mut common: Option<Type> = None;
        for (item, optional) in items {
            let mut found = self.expr(item);
            if optional {
                found = match found {
                    Type::Optional(inner) => (*inner).clone(),
                    Type::Dyn | Type::Error => Type::Dyn,
                    other => {
                        self.mismatch(item.at, &Type::optional(Type::Dyn), &other);
                        Type::Error
                    }
                };
            }
            common = Some(match common {
                None => found,
                Some(before) if self.fits(&found, &before) => match (&before, &found) {
                    (Type::Null, _) | (_, Type::Dyn) => found,
                    _ => before,
                },
                Some(_) if self.formats > 0 => Type::Dyn,
                Some(before) => {
                    let expected = self.resolve(&before);
                    self.mismatch(item.at, &expected, &found);
                    before
                }
            });
        }
        common.unwrap_or_else(|| self.fresh())
    }

    fn construction(&mut self, at: usize, name: &str, fields: &[(String, Expr, bool)]) -> Type {
        let is_object = name == OBJECT || name.starts_with("Object.");
        if !self.constructs || !(is_object || name == JSON_PATCH) {
            return self.report(at, undeclared(name));
        }
        for (field, value, optional) in fields {
            let mut found = self.expr(value);
            if *optional {
                found = match found {
                    Type::Optional(inner) => (*inner).clone(),
                    Type::Dyn | Type::Error => Type::Dyn,
                    other => {
                        self.mismatch(value.at, &Type::optional(Type::Dyn), &other);
                        Type::Error
                    }
                };
            }
            let is_text = !is_object && matches!(&**field, "op" | "path" | "from");
            if is_text && !self.fits(&found, &Type::String) {
                self.mismatch(value.at, &Type::String, &found);
            }
        }
        Type::Struct(name.into())
    }

    fn comprehension(&mut self, at: usize, inner: &Comprehension) -> Type {
        let range = self.expr(&inner.range);
        let (key, value) = match &range {
            Type::List(of) => (Type::Int, (**of).clone()),
            Type::Map(key, value) => ((**key).clone(), (**value).clone()),
            Type::Dyn | Type::Error => (Type::Dyn, Type::Dyn),
            Type::Var(id) => {
                self.bind(*id, Type::Dyn);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.report(inner.range.at, message);
                (Type::Error, Type::Error)
            }
        };
        let is_map = matches!(range, Type::Map(..));
        let single = if is_map { key.clone() } else { value.clone() };
        let depth = self.locals.len();
        match &inner.var2 {
            Some(var2) => {
                self.locals.push((inner.var.clone(), key.clone()));
                self.locals.push((var2.clone(), value));
            }
            None => self.locals.push((inner.var.clone(), single.clone())),
        }
        let filter = inner.filter.as_ref().map(|filter| self.expr(filter));
        let body = self.expr(&inner.body);
        // Conditions of loops that collect are conditions of `_?_:_`.
        let (condition, result) = match (inner.name, filter) {
            (_, Some(filter)) => (filter, Type::list(body.clone())),
            (Macro::Filter, None) => (body.clone(), Type::list(single.clone())),
            (Macro::ExistsOne, None) => (body.clone(), Type::Int),
            _ => (Type::Bool, Type::Bool),
        };
        if !self.fits(&condition, &Type::Bool) {
            let message = format!(
                "found no matching overload for '_?_:_' applied to '({condition}, {result}, {result})'"
            );
            self.report(at, message);
        }
        self.locals.truncate(depth);
        match inner.name {
            Macro::All | Macro::Exists => {
                self.require_bool(&inner.body, &body);
                Type::Bool
            }
            Macro::ExistsOne => Type::Bool,
            Macro::Filter => Type::list(single),
            Macro::Map => Type::list(body),
            Macro::TransformMap => Type::map(key, body),
            Macro::TransformMapEntry => match body {
                Type::Map(..) | Type::Dyn | Type::Error => body,
                other => {
                    self.mismatch(inner.body.at, &Type::map(Type::Dyn, Type::Dyn), &other);
                    Type::Error
                }
            },
            Macro::SortBy => Type::list(single),
        }
    }

    fn require_bool(&mut self, expr: &Expr, found: &Type) {
        if !self.fits(found, &Type::Bool) {
            self.mismatch(expr.at, &Type::Bool, found);
        }
    }

    fn opt_map(&mut self, target: &Expr, var: &str, body: &Expr, flat: bool) -> Type {
        let inner = match self.expr(target) {
            Type::Optional(inner) => (*inner).clone(),
            Type::Dyn | Type::Error => Type::Dyn,
            other => {
                self.mismatch(target.at, &Type::optional(Type::Dyn), &other);
                Type::Error
            }
        };
        self.locals.push((var.to_owned(), inner));
        let found = self.expr(body);
        self.locals.pop();
        match (flat, found) {
            (false, found) => Type::optional(found),
            (true, found @ (Type::Optional(_) | Type::Dyn | Type::Error)) => found,
            (true, found) => {
                self.mismatch(body.at, &Type::optional(Type::Dyn), &found);
                Type::Error
            }
        }
    }
}

fn undeclared(name: &str) -> String {
    format!("undeclared reference to '{name}' (in container '')")
}

fn mentions(of: &Type, id: usize) -> bool {
    match of {
        Type::Var(found) => *found == id,
        Type::List(inner) | Type::Optional(inner) => mentions(inner, id),
        Type::Map(key, value) => mentions(key, id) || mentions(value, id),
        _ => false,
    }
}

/// A type of a signature, with parameters that count from `base`.
fn shifted(of: &Type, base: usize) -> Type {
    match of {
        Type::Var(id) => Type::Var(base + id),
        Type::List(inner) => Type::list(shifted(inner, base)),
        Type::Optional(inner) => Type::optional(shifted(inner, base)),
        Type::Map(key, value) => Type::map(shifted(key, base), shifted(value, base)),
        other => other.clone(),
    }
}

fn of_literal(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}
