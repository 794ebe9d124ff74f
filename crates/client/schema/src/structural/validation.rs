//! Validates values, with the messages of API servers.

use longshore_model::{CauseList, StatusCause};
use serde_json::Value;

use super::{Additional, Structural, Type, causes, formats};

impl Structural {
    /// Validates a value; the path of each cause starts with `path`.
    #[must_use]
    pub fn validate(&self, path: &str, value: &Value) -> CauseList {
        let mut report = Report::default();
        check(self, value, path, &mut report);
        report.causes
    }
}

/// The errors that were found, and how much of the value matched: if several
/// alternatives fail, the best match is reported.
#[derive(Debug, Default)]
struct Report {
    causes: CauseList,
    matched: usize,
}

impl Report {
    fn add(&mut self, cause: StatusCause) {
        self.causes.push(cause);
    }

    fn take(&mut self, other: Self) {
        self.causes.merge(other.causes);
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

/// The name of a JSON type in messages.
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
    let words: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
    let (expected, found) = (words.join(","), type_of(value));
    let detail = format!("{path} in body must be of type {expected}: {found:?}");
    report.add(causes::mistyped(path, &found.into(), &detail));
    // Kubernetes checks such a number a second time and then reports no field.
    if kinds == [Type::Integer] && value.is_number() {
        let detail = format!("Checked value must be of type integer (default format) in {path}");
        report.add(causes::invalid("<nil>", &"".into(), &detail));
    }
}

fn check_separately(schema: &Structural, value: &Value, path: &str) -> Report {
    let mut report = Report::default();
    check(schema, value, path, &mut report);
    report
}

/// The alternative that matches, or the best match.
fn best_match(reports: Vec<Report>) -> (usize, Report) {
    let right = reports.iter().filter(|r| r.causes.is_empty()).count();
    let chosen =
        reports
            .into_iter()
            .fold(None, |best_match: Option<Report>, next| match best_match {
                Some(best_match) if best_match.causes.is_empty() => Some(best_match),
                Some(best_match)
                    if !next.causes.is_empty() && next.matched <= best_match.matched =>
                {
                    Some(best_match)
                }
                _ => Some(next),
            });
    (right, chosen.unwrap_or_default())
}

fn check_logic(schema: &Structural, value: &Value, path: &str, report: &mut Report) {
    let constraints = &schema.constraints;
    let say = |report: &mut Report, problem: String| {
        report.add(causes::invalid("", &"".into(), &problem));
    };
    let all = |schemas: &[Structural]| -> Vec<Report> {
        schemas
            .iter()
            .map(|schema| check_separately(schema, value, path))
            .collect()
    };
    if !constraints.any_of.is_empty() {
        let (right, best_match) = best_match(all(&constraints.any_of));
        if right == 0 {
            say(
                report,
                format!("{path:?} must validate at least one schema (anyOf)"),
            );
        }
        report.take(best_match);
    }
    if !constraints.one_of.is_empty() {
        let (right, best_match) = best_match(all(&constraints.one_of));
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
        report.take(best_match);
    }
    if !constraints.all_of.is_empty() {
        let reports = all(&constraints.all_of);
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
    if let Some(not) = &constraints.not
        && check_separately(not, value, path).causes.is_empty()
    {
        say(
            report,
            format!("{path:?} must not validate the schema (not)"),
        );
    }
}

fn check_text(schema: &Structural, text: &str, value: &Value, path: &str, report: &mut Report) {
    let constraints = &schema.constraints;
    let length = text.chars().count() as u64;
    if let Some(limit) = constraints.max_length.filter(|limit| length > *limit) {
        report.add(causes::too_long(path, limit));
    }
    if let Some(least) = constraints.min_length.filter(|least| length < *least) {
        let detail = format!("{path} in body should be at least {least} chars long");
        report.add(causes::invalid(path, value, &detail));
    }
    if let Some(pattern) = &constraints.pattern
        && let Some(regex) = &pattern.regex
        && !regex.is_match(text)
    {
        let detail = format!("{path} in body should match '{}'", pattern.text);
        report.add(causes::invalid(path, value, &detail));
    }
    let of_text = matches!(schema.kind, None | Some(Type::String));
    if let Some(format) = constraints.format.as_deref().filter(|_| of_text)
        && !formats::fits(format, text)
    {
        let detail = format!("{path} in body must be of type {format}: {text:?}");
        report.add(causes::mistyped(path, value, &detail));
    }
}

/// Formats a bound as Kubernetes does.
fn format_bound(number: f64) -> String {
    if number.fract() == 0.0 && number.abs() < 1e15 {
        format!("{number:.0}")
    } else {
        number.to_string()
    }
}

fn check_number(schema: &Structural, value: &Value, path: &str, report: &mut Report) {
    let (constraints, Some(number)) = (&schema.constraints, value.as_f64()) else {
        return;
    };
    let mut broken = |words: &str, bound: f64| {
        let detail = format!("{path} in body should be {words} {}", format_bound(bound));
        report.add(causes::invalid(path, value, &detail));
    };
    if let Some(of) = constraints.multiple_of.filter(|of| *of > 0.0) {
        let times = number / of;
        if (times - times.round()).abs() > 1e-9 * times.abs().max(1.0) {
            broken("a multiple of", of);
        }
    }
    match constraints.maximum {
        Some(bound) if constraints.exclusive_maximum && number >= bound => {
            broken("less than", bound)
        }
        Some(bound) if number > bound => broken("less than or equal to", bound),
        _ => {}
    }
    match constraints.minimum {
        Some(bound) if constraints.exclusive_minimum && number <= bound => {
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
    let (constraints, count) = (&schema.constraints, items.len());
    if let Some(least) = constraints
        .min_items
        .filter(|least| (count as u64) < *least)
    {
        let detail = format!("{path} in body should have at least {least} items");
        report.add(causes::invalid(path, &count.into(), &detail));
    }
    if let Some(limit) = constraints.max_items.filter(|limit| count as u64 > *limit) {
        report.add(causes::too_many(path, count, limit));
    }
}

fn check_enum(schema: &Structural, value: &Value, path: &str, report: &mut Report) {
    let values = &schema.constraints.one_of_values;
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
    let (constraints, count) = (&schema.constraints, fields.len());
    if let Some(least) = constraints
        .min_properties
        .filter(|least| (count as u64) < *least)
    {
        let detail = format!("{path} in body should have at least {least} properties");
        return report.add(causes::invalid(path, &count.into(), &detail));
    }
    if let Some(limit) = constraints
        .max_properties
        .filter(|limit| count as u64 > *limit)
    {
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
    for name in &constraints.required {
        if !fields.contains_key(name) {
            report.add(causes::required(&at(name), ""));
        }
    }
}
