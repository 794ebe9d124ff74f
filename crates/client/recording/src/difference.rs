//! Explains why a request was not recorded: finds the nearest recorded request and the differences.
//! Pure.

use serde_json::Value;

use crate::{accept, recording::Exchange, request::Request};

/// The maximum number of reported differences of a body.
const MAX_DIFFERENCES: usize = 3;
/// The maximum length of a value in a message, in characters.
const MAX_VALUE: usize = 80;

/// Compares the requests by what they have in common. Later fields decide only if the earlier
/// ones are equal.
fn similarity(request: &Request, recorded: &Request) -> impl Ord + use<> {
    let is_same_path = request.path == recorded.path;
    let common = request
        .path
        .split('/')
        .zip(recorded.path.split('/'))
        .take_while(|(own, other)| own == other)
        .count();
    let (own, other) = (request.compared_query(), recorded.compared_query());
    let equal = own.iter().filter(|pair| other.contains(pair)).count();
    let differing = own.len().max(other.len()).saturating_sub(equal);
    (
        is_same_path,
        request.method == recorded.method,
        common,
        std::cmp::Reverse(differing),
    )
}

/// The recorded request that is most similar; the first of equals.
pub(crate) fn nearest<'a>(request: &Request, exchanges: &'a [Exchange]) -> Option<&'a Exchange> {
    // `max_by_key` returns the last of equals.
    let reversed = exchanges.iter().rev();
    reversed.max_by_key(|exchange| similarity(request, &exchange.request))
}

fn short(text: &str) -> String {
    match text.char_indices().nth(MAX_VALUE) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Returns the differences between a request and a recorded one; empty if there are none.
pub(crate) fn differences(request: &Request, recorded: &Request) -> Vec<String> {
    let mut found = Vec::new();
    if request.method != recorded.method {
        found.push(format!("its method is {}", recorded.method));
    }
    if request.path != recorded.path {
        found.push("its path differs".to_owned());
        return found;
    }
    let (own, other) = (request.compared_query(), recorded.compared_query());
    let value = |query: &[(String, String)], name: &str| {
        let values = query.iter().filter(|(key, _)| key == name);
        let values: Vec<&str> = values.map(|(_, value)| value.as_str()).collect();
        (!values.is_empty()).then(|| short(&values.join(",")))
    };
    let mut names: Vec<&str> = own
        .iter()
        .chain(&other)
        .map(|(name, _)| name.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        match (value(&own, name), value(&other, name)) {
            (Some(own), Some(other)) if own != other => {
                found.push(format!("its {name} is {other:?}, not {own:?}"));
            }
            (Some(own), None) => found.push(format!("it has no {name}={own}")),
            (None, Some(other)) => found.push(format!("it has also {name}={other}")),
            _ => {}
        }
    }
    let representation = |request: &Request| accept::representation(request.header("accept"));
    if representation(request) != representation(recorded) {
        found.push(format!(
            "its Accept is {:?}, not {:?}",
            short(recorded.header("accept")),
            short(request.header("accept"))
        ));
    }
    if request.key() != recorded.key() && found.is_empty() {
        found.push(format!(
            "its Content-Type is {:?}, not {:?}",
            short(recorded.header("content-type")),
            short(request.header("content-type"))
        ));
    }
    if found.is_empty() && !request.has_body_of(recorded) {
        found.extend(body_differences(request, recorded));
    }
    found
}

fn body_differences(request: &Request, recorded: &Request) -> Vec<String> {
    let value = |request: &Request| request.body.as_ref().and_then(|body| body.value());
    let (Some(own), Some(other)) = (value(request), value(recorded)) else {
        return vec!["its body differs".to_owned()];
    };
    let mut found = Vec::new();
    compare("", &own, &other, &mut found);
    found
}

/// Adds the paths at which two values differ. The recursion is limited by the maximum nesting of
/// parsed JSON.
fn compare(path: &str, own: &Value, other: &Value, found: &mut Vec<String>) {
    if own == other || found.len() >= MAX_DIFFERENCES {
        return;
    }
    match (own, other) {
        (Value::Object(own), Value::Object(other)) => {
            let added = other.keys().filter(|name| !own.contains_key(*name));
            for name in own.keys().chain(added) {
                let path = format!("{path}.{name}");
                let none = &Value::Null;
                let (own, other) = (own.get(name), other.get(name));
                compare(&path, own.unwrap_or(none), other.unwrap_or(none), found);
            }
        }
        (Value::Array(own), Value::Array(other)) if own.len() == other.len() => {
            for (index, (own, other)) in own.iter().zip(other).enumerate() {
                compare(&format!("{path}[{index}]"), own, other, found);
            }
        }
        (own, other) => {
            let path = if path.is_empty() { "body" } else { path };
            let (own, other) = (short(&own.to_string()), short(&other.to_string()));
            found.push(format!("its {path} is {other}, not {own}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::tests::request;

    fn differ(own: (&str, &str, &str), other: (&str, &str, &str)) -> Vec<String> {
        let request = |(method, target, body)| request(method, target, "application/json", body);
        differences(&request(own), &request(other))
    }

    #[test]
    fn differences_are_named() {
        let pods = "/api/v1/pods";
        assert_eq!(
            differ(
                ("GET", "/api/v1/pods?limit=1&a=b", ""),
                ("GET", "/api/v1/pods?limit=5", "")
            ),
            ["it has no a=b", "its limit is \"5\", not \"1\""]
        );
        assert_eq!(
            differ(("PUT", pods, "{}"), ("POST", pods, "{}")),
            ["its method is POST"]
        );
        assert_eq!(
            differ(
                ("POST", pods, r#"{"spec":{"replicas":2,"x":[1]},"k":1}"#),
                ("POST", pods, r#"{"spec":{"replicas":3,"x":[2]},"k":1}"#)
            ),
            [
                "its .spec.replicas is 3, not 2",
                "its .spec.x[0] is 2, not 1"
            ]
        );
        assert_eq!(
            differ(("POST", pods, ""), ("POST", pods, "{}")),
            ["its body differs"]
        );
        assert!(differ(("GET", pods, ""), ("GET", pods, "")).is_empty());
    }
}
