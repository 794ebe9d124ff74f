//! The header `Accept`: the representation of an object that a client requests. Pure.

/// Formats that a recording cannot show as text.
const BINARY: &[&str] = &["application/vnd.kubernetes.protobuf", "application/cbor"];
const JSON: &str = "application/json";

/// Requests JSON where the client also or only accepts a binary format. Keeps the parameters, for
/// example `as=Table`.
pub(crate) fn without_binary(accept: &str) -> String {
    let mut kept: Vec<String> = Vec::new();
    for choice in accept.split(',') {
        let choice = choice.trim();
        let (media_type, parameters) = match choice.split_once(';') {
            Some((media_type, parameters)) => (media_type.trim(), Some(parameters)),
            None => (choice, None),
        };
        let is_binary = BINARY
            .iter()
            .any(|binary| media_type.eq_ignore_ascii_case(binary));
        let choice = match (is_binary, parameters) {
            (false, _) => choice.to_owned(),
            (true, None) => JSON.to_owned(),
            (true, Some(parameters)) => format!("{JSON};{parameters}"),
        };
        if !choice.is_empty() && !kept.contains(&choice) {
            kept.push(choice);
        }
    }
    kept.join(",")
}

/// The representation that the client prefers: the type of the object, if it is not the
/// resource itself but, for example, a Table.
pub(crate) fn representation(accept: &str) -> String {
    let first = accept.split(',').next().unwrap_or_default();
    let parameters = first.split(';').skip(1).map(str::trim);
    let mut chosen: Vec<&str> = parameters
        .filter(|parameter| {
            ["as=", "g=", "v="]
                .iter()
                .any(|name| parameter.starts_with(name))
        })
        .collect();
    chosen.sort_unstable();
    chosen.join(";")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_requested_instead_of_binary_formats() {
        for (accept, expected) in [
            ("application/json", "application/json"),
            ("application/vnd.kubernetes.protobuf", "application/json"),
            (
                "application/vnd.kubernetes.protobuf,application/json",
                "application/json",
            ),
            (
                "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io, application/json",
                "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
            ),
            ("application/cbor, */*", "application/json,*/*"),
            ("", ""),
        ] {
            assert_eq!(without_binary(accept), expected);
        }
    }

    #[test]
    fn a_table_is_another_representation() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        assert_eq!(representation(table), "as=Table;g=meta.k8s.io;v=v1");
        assert_eq!(representation("application/json, */*"), "");
        assert_eq!(representation("application/json;q=0.9"), "");
    }
}
