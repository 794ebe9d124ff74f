//! Named formats of strings.

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::civil::Date;
use longshore_model::name;

use crate::{
    error::EvalError,
    meter::Meter,
    value::{Format, Opaque, Url, Value, parse_timestamp},
};

type Check = fn(&str) -> Option<String>;

const FORMATS: [(&str, Check); 13] = [
    ("dns1123Label", |text| label(text)),
    ("dns1123Subdomain", |text| subdomain(text)),
    ("dns1035Label", |text| label_1035(text)),
    ("qualifiedName", |text| {
        name::label_key(text).err().map(|e| e.to_string())
    }),
    ("dns1123LabelPrefix", |text| label(without_dash(text))),
    ("dns1123SubdomainPrefix", |text| {
        subdomain(without_dash(text))
    }),
    ("dns1035LabelPrefix", |text| label_1035(without_dash(text))),
    ("labelValue", |text| {
        name::label_value(text).err().map(|e| e.to_string())
    }),
    ("uri", |text| Url::parse(text).err()),
    ("uuid", |text| {
        let groups = [8, 4, 4, 4, 12];
        let hex = |part: &str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
        let parts: Vec<&str> = text.split('-').collect();
        let fits = parts.len() == 5
            && parts
                .iter()
                .zip(groups)
                .all(|(part, length)| part.len() == length && hex(part));
        (!fits).then(|| "does not match the UUID format".to_owned())
    }),
    ("byte", |text| {
        let bad = STANDARD.decode(text).is_err();
        bad.then(|| "invalid base64".to_owned())
    }),
    ("date", |text| {
        let bad = text.len() != 10 || text.parse::<Date>().is_err();
        bad.then(|| "invalid date".to_owned())
    }),
    ("datetime", |text| {
        let bad = parse_timestamp(text).is_none();
        bad.then(|| "invalid datetime".to_owned())
    }),
];

pub(super) fn call<'a>(
    name: &str,
    args: &[Value<'a>],
    meter: &mut Meter,
) -> Option<Result<Value<'a>, EvalError>> {
    match (name, args) {
        ("format.named", [Value::String(name)]) => Some(Ok(Value::Optional(
            find(name).map(|index| std::rc::Rc::new(of(index))),
        ))),
        (name, []) => Some(Ok(of(find(name.strip_prefix("format.")?)?))),
        ("validate", [Value::Opaque(format), Value::String(text)]) => {
            let Opaque::Format(Format(index)) = &**format else {
                return None;
            };
            if let Err(error) = meter.work(text.len()) {
                return Some(Err(error));
            }
            let (_, check) = FORMATS.get(*index)?;
            Some(Ok(match check(text) {
                None => Value::Optional(None),
                Some(problem) => Value::some(Value::list(vec![Value::text(problem)])),
            }))
        }
        _ => None,
    }
}

/// The size of a format's regular expression, which its cost depends on.
pub(crate) fn regex_size(format: &Opaque) -> u64 {
    const SIZES: [u64; 13] = [30, 60, 30, 60, 30, 60, 30, 40, 1103, 72, 84, 72, 72];
    match format {
        Opaque::Format(Format(index)) => SIZES.get(*index).copied().unwrap_or(128),
        _ => 128,
    }
}

fn find(name: &str) -> Option<usize> {
    FORMATS.iter().position(|(known, _)| *known == name)
}

fn of<'a>(index: usize) -> Value<'a> {
    Value::opaque(Opaque::Format(Format(index)))
}

/// A prefix may end with a dash.
fn without_dash(text: &str) -> &str {
    match text.len() > 1 {
        true => text.strip_suffix('-').unwrap_or(text),
        false => text,
    }
}

fn label(text: &str) -> Option<String> {
    name::dns_label("name", text)
        .err()
        .map(|error| error.rule().to_owned())
}

fn subdomain(text: &str) -> Option<String> {
    name::dns_subdomain("name", text)
        .err()
        .map(|error| error.rule().to_owned())
}

fn label_1035(text: &str) -> Option<String> {
    match text.starts_with(|c: char| c.is_ascii_digit()) {
        true => Some("a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')".to_owned()),
        false => label(text),
    }
}
