//! Label and field selectors: the text of a parsed selector parses to an equal selector,
//! which selects the same objects.

use std::collections::BTreeMap;

use longshore_model::{FieldSelector, LabelSelector};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::server;

pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    labels(text);
    fields(text);
    let escaped = utf8_percent_encode(text, NON_ALPHANUMERIC);
    server::with(|server| {
        for parameter in ["labelSelector", "fieldSelector"] {
            let path = format!("/api/v1/pods?limit=1&{parameter}={escaped}");
            let response = server.call("GET", &path, "application/json", b"");
            assert!(
                matches!(response.code, 200 | 400),
                "{text:?}: {}",
                response.text()
            );
        }
    });
}

fn labels(text: &str) {
    let Ok(selector) = text.parse::<LabelSelector>() else {
        return;
    };
    let written = selector.to_string();
    let again: LabelSelector = written
        .parse()
        .unwrap_or_else(|error| panic!("{text:?} became {written:?}: {error}"));
    assert_eq!(again, selector, "{text:?} became {written:?}");
    let one = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
    for labels in [
        BTreeMap::new(),
        one("a", ""),
        one("a", "b"),
        one("a", "7"),
        one("x.y/z", "b"),
    ] {
        assert_eq!(selector.matches(&labels), again.matches(&labels));
    }
    // A text may be a list of alternatives. Each alternative is less strict.
    let parts = LabelSelector::alternatives(text).unwrap();
    for labels in [one("a", "b"), one("a", "7")] {
        let any = parts.iter().any(|part| part.matches(&labels));
        assert!(any || !selector.matches(&labels), "{text:?}");
        let covered = LabelSelector::covering(&parts).is_none_or(|one| one.matches(&labels));
        assert!(covered || !any, "{text:?}");
    }
    if selector.is_everything() {
        assert!(selector.matches(&one("a", "b")));
    }
}

fn fields(text: &str) {
    let Ok(selector) = text.parse::<FieldSelector>() else {
        return;
    };
    let written = selector.to_string();
    let again: FieldSelector = written
        .parse()
        .unwrap_or_else(|error| panic!("{text:?} became {written:?}: {error}"));
    assert_eq!(again, selector, "{text:?} became {written:?}");
    for value in [None, Some(""), Some("a"), Some("=,!\\")] {
        let get = |_: &str| value.map(str::to_owned);
        assert_eq!(selector.matches_with(get), again.matches_with(get));
    }
}
