//! Validation of values, worded as API servers word it.

use longshore_model::StatusCause;
use serde_json::Value;

use super::{Additional, Structural, Type, causes, formats};

impl Structural {
    /// What is wrong with a value by the schema; each cause has its path below
    /// `path`.
    #[must_use]
    pub fn validate(&self, path: &str, value: &Value) -> Vec<StatusCause> {
        let mut report = Report::default();
        check(self, value, path, &mut report);
        report.causes
    }
}

/// What was found, and how much of it was fine: of several alternatives that
/// do not fit, the one that fits best is told about.
#[derive(Debug, Default)]
struct Report {
    causes: Vec<StatusCause>,
    /// Bytes of their messages.
    size: usize,
    matched: usize,
}

/// Bytes of messages after which no further causes are told: each may name all
/// values that a schema lists.
const CAUSES: usize = 1 << 20;

impl Report {
    fn add(&mut self, cause: StatusCause) {
        if self.size <= CAUSES {
            self.size += cause.message.len();
            self.causes.push(cause);
        }
    }

    fn take(&mut self, other: Self) {
        other.causes.into_iter().for_each(|cause| self.add(cause));
        self.matched += other.matched;
    }
}

fn check(schema: &Structural, value: &Value, path: &str, report: &mut Report) {
    check_type(schema, value, path, report);
    if !value.is_null() {
        check_logic(schema, value, path, report);
    }
    match value {
        Value::String(text) => check_text(schema, text, value, path, report),
        Value::Number(_) => check_number(schema, value, path, report),
        Value::Array(items) => check_items(schema, items, path, report),
        _ => {}
    }
    check_enum(schema, value, path, report);
    if let Value::Object(fields) = value {
        check_fields(schema, fields, path, report);
    }
    report.matched += 1;
}

/// JSON's types as the messages call them.
fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn fits(kind: Type, value: &Value) -> bool {
    match kind {
        Type::Object => value.is_object(),
        Type::Array => value.is_array(),
        Type::String => value.is_string(),
        Type::Boolean => value.is_boolean(),
        Type::Number => value.is_number(),
        Type::Integer => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0)
        }
    }
}

fn check_type(schema: &Structural, value: &Value, path: &str, report: &mut Report) {
    let kinds: &[Type] = match (&schema.kind, schema.int_or_string) {
        (_, true) => &[Type::Integer, Type::String],
        (Some(kind), false) => std::slice::from_ref(kind),
        (None, false) => &[],
    };
    let right = kinds.is_empty()
        || (value.is_null() && schema.nullable)
        || kinds.iter().any(|kind| fits(*kind, value));
    if right {
        report.matched += 1;
        return;
    }
    let words: Vec<_> = kinds.iter().map(|kind| kind.word()).collect();
    let (expected, found) = (words.join(","), type_of(value));
    let detail = format!("{path} in body must be of type {expected}: {found:?}");
    report.add(causes::mistyped(path, &found.into(), &detail));
    // The real server looks at such a number once more, and names no field then.
    if kinds == [Type::Integer] && value.is_number() {
        let detail = format!("Checked value must be of type integer (default format) in {path}");
        report.add(causes::invalid("<nil>", &"".into(), &detail));
    }
}

fn alone(schema: &Structural, value: &Value, path: &str) -> Report {
    let mut report = Report::default();
    check(schema, value, path, &mut report);
    report
}

/// The alternative that fits, or else the one that fits best.
fn best(reports: Vec<Report>) -> (usize, Report) {
    let right = reports.iter().filter(|r| r.causes.is_empty()).count();
    let chosen = reports
        .into_iter()
        .fold(None, |best: Option<Report>, next| match best {
            Some(best) if best.causes.is_empty() => Some(best),
            Some(best) if !next.causes.is_empty() && next.matched <= best.matched => Some(best),
            _ => Some(next),
        });
    (right, chosen.unwrap_or_default())
}

fn check_logic(schema: &Structural, value: &Value, path: &str, report: &mut Report) {
    let checks = &schema.checks;
    let say = |report: &mut Report, problem: String| {
        report.add(causes::invalid("", &"".into(), &problem));
    };
    let all = |schemas: &[Structural]| -> Vec<Report> {
        schemas
            .iter()
            .map(|schema| alone(schema, value, path))
            .collect()
    };
    if !checks.any_of.is_empty() {
        let (right, best) = best(all(&checks.any_of));
        if right == 0 {
            say(
                report,
                format!("{path:?} must validate at least one schema (anyOf)"),
            );
        }
        report.take(best);
    }
    if !checks.one_of.is_empty() {
        let (right, best) = best(all(&checks.one_of));
        if right != 1 {
            let found = match right {
                0 => "Found none valid".to_owned(),
                right => format!("Found {right} valid alternatives"),
            };
            say(
                report,
                format!("{path:?} must validate one and only one schema (oneOf). {found}"),
            );
        }
        report.take(best);
    }
    if !checks.all_of.is_empty() {
        let reports = all(&checks.all_of);
        let right = reports.iter().filter(|r| r.causes.is_empty()).count();
        let whole = reports.len();
        reports.into_iter().for_each(|one| report.take(one));
        if right != whole {
            let none = if right == 0 { ". None validated" } else { "" };
            say(
                report,
                format!("{path:?} must validate all the schemas (allOf){none}"),
            );
        }
    }
    if let Some(not) = &checks.not
        && alone(not, value, path).causes.is_empty()
    {
        say(
            report,
            format!("{path:?} must not validate the schema (not)"),
        );
    }
}

fn check_text(schema: &Structural, text: &str, value: &Value, path: &str, report: &mut Report) {
    let checks = &schema.checks;
    let length = text.chars().count() as u64;
    if let Some(limit) = checks.max_length.filter(|limit| length > *limit) {
        report.add(causes::too_long(path, limit));
    }
    if let Some(least) = checks.min_length.filter(|least| length < *least) {
        let detail = format!("{path} in body should be at least {least} chars long");
        report.add(causes::invalid(path, value, &detail));
    }
    if let Some(pattern) = &checks.pattern
        && let Some(regex) = &pattern.regex
        && !regex.is_match(text)
    {
        let detail = format!("{path} in body should match '{}'", pattern.text);
        report.add(causes::invalid(path, value, &detail));
    }
    let of_text = matches!(schema.kind, None | Some(Type::String));
    if let Some(format) = checks.format.as_deref().filter(|_| of_text)
        && !formats::fits(format, text)
    {
        let detail = format!("{path} in body must be of type {format}: {text:?}");
        report.add(causes::mistyped(path, value, &detail));
    }
}

/// A bound as the messages write it.
fn plain(number: f64) -> String {
    if number.fract() == 0.0 && number.abs() < 1e15 {
        format!("{number:.0}")
    } else {
        number.to_string()
    }
}

fn check_number(schema: &Structural, value: &Value, path: &str, report: &mut Report) {
    let (checks, Some(number)) = (&schema.checks, value.as_f64()) else {
        return;
    };
    let mut broken = |words: &str, bound: f64| {
        let detail = format!("{path} in body should be {words} {}", plain(bound));
        report.add(causes::invalid(path, value, &detail));
    };
    if let Some(of) = checks.multiple_of.filter(|of| *of > 0.0) {
        let times = number / of;
        if (times - times.round()).abs() > 1e-9 * times.abs().max(1.0) {
            broken("a multiple of", of);
        }
    }
    match checks.maximum {
        Some(bound) if checks.exclusive_maximum && number >= bound => broken("less than", bound),
        Some(bound) if number > bound => broken("less than or equal to", bound),
        _ => {}
    }
    match checks.minimum {
        Some(bound) if checks.exclusive_minimum && number <= bound => {
            broken("greater than", bound);
        }
        Some(bound) if number < bound => broken("greater than or equal to", bound),
        _ => {}
    }
}

fn check_items(schema: &Structural, items: &[Value], path: &str, report: &mut Report) {
    if let Some(inner) = schema.items.as_deref() {
        for (index, item) in items.iter().enumerate() {
            check(inner, item, &format!("{path}[{index}]"), report);
        }
    }
    let (checks, count) = (&schema.checks, items.len());
    if let Some(least) = checks.min_items.filter(|least| (count as u64) < *least) {
        let detail = format!("{path} in body should have at least {least} items");
        report.add(causes::invalid(path, &count.into(), &detail));
    }
    if let Some(limit) = checks.max_items.filter(|limit| count as u64 > *limit) {
        report.add(causes::too_many(path, count, limit));
    }
}

fn check_enum(schema: &Structural, value: &Value, path: &str, report: &mut Report) {
    let values = &schema.checks.one_of_values;
    let same = |one: &Value| match (one.as_f64(), value.as_f64()) {
        (Some(one), Some(value)) => one == value,
        _ => one == value,
    };
    if values.is_empty() || (!value.is_null() && values.iter().any(same)) {
        return;
    }
    let words: Vec<_> = values
        .iter()
        .map(|value| {
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned)
        })
        .collect();
    report.add(causes::not_supported(path, value, &words));
}

fn check_fields(
    schema: &Structural,
    fields: &serde_json::Map<String, Value>,
    path: &str,
    report: &mut Report,
) {
    let (checks, count) = (&schema.checks, fields.len());
    if let Some(least) = checks
        .min_properties
        .filter(|least| (count as u64) < *least)
    {
        let detail = format!("{path} in body should have at least {least} properties");
        return report.add(causes::invalid(path, &count.into(), &detail));
    }
    if let Some(limit) = checks.max_properties.filter(|limit| count as u64 > *limit) {
        return report.add(causes::too_many(path, count, limit));
    }
    let at = |name: &str| {
        if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}.{name}")
        }
    };
    for (name, value) in fields {
        let inner = match (schema.properties.get(name), &schema.additional) {
            (Some(property), _) => property,
            (None, Additional::Of(values)) => values,
            (None, _) => continue,
        };
        check(inner, value, &at(name), report);
    }
    for name in &checks.required {
        if !fields.contains_key(name) {
            report.add(causes::required(&at(name), ""));
        }
    }
}
