//! URLs.

use std::{collections::BTreeMap, rc::Rc};

use crate::{
    error::EvalError,
    meter::Meter,
    value::{Key, Map, Opaque, Url, Value},
};

pub(super) fn call<'a>(
    name: &str,
    args: &[Value<'a>],
    meter: &mut Meter,
) -> Option<Result<Value<'a>, EvalError>> {
    let [arg] = args else { return None };
    if let ("url" | "isURL", Value::String(text)) = (name, arg) {
        if let Err(error) = meter.work(text.len()) {
            return Some(Err(error));
        }
        let found = Url::parse(text);
        return Some(match name {
            "url" => found
                .map(|url| Value::opaque(Opaque::Url(url)))
                .map_err(|why| {
                    EvalError::new(format!(
                        "URL parse error during conversion from string: {why}"
                    ))
                }),
            _ => Ok(Value::Bool(found.is_ok())),
        });
    }
    let Value::Opaque(opaque) = arg else {
        return None;
    };
    let Opaque::Url(url) = &**opaque else {
        return None;
    };
    Some(Ok(match name {
        "getScheme" => Value::text(&*url.scheme),
        "getHost" => Value::text(&*url.host),
        "getHostname" => Value::text(url.hostname()),
        "getPort" => Value::text(url.port()),
        "getEscapedPath" => Value::text(&*url.path),
        "getQuery" => {
            if let Err(error) = meter.work(url.query.len().saturating_mul(16)) {
                return Some(Err(error));
            }
            let entries = url.parameters().into_iter().map(|(name, values)| {
                let values = values.into_iter().map(Value::text).collect();
                (Key::String(name.into()), Value::list(values))
            });
            Value::Map(Map::Own(Rc::new(entries.collect::<BTreeMap<_, _>>())))
        }
        _ => return None,
    }))
}
