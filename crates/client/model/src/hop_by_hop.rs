//! Headers of HTTP that concern a single connection: a proxy does not forward them.

/// The headers that always concern a single connection.
const ALWAYS: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Returns the names of the headers that concern a single connection, in lowercase: the standard
/// ones, and those that the values of the header `Connection` name.
///
/// ```
/// use longshore_model::hop_by_hop::names;
///
/// let names = names(["close, X-Session"]);
/// assert!(names.iter().any(|name| name == "keep-alive"));
/// assert!(names.iter().any(|name| name == "x-session"));
/// ```
pub fn names<'a>(connection: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let named = connection.into_iter().flat_map(|value| value.split(','));
    let named = named.map(str::trim).filter(|name| !name.is_empty());
    ALWAYS
        .into_iter()
        .chain(named)
        .map(str::to_ascii_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_and_named_headers_are_listed() {
        let all = names(["close, X-Own ,", "upgrade"]);
        assert_eq!(all[..ALWAYS.len()], ALWAYS);
        assert_eq!(all[ALWAYS.len()..], ["close", "x-own", "upgrade"]);
        assert_eq!(names([]), ALWAYS);
    }
}
