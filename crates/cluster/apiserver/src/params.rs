//! Typed options of requests, and Kubernetes' rules for combining them.

use std::{
    num::{IntErrorKind, ParseIntError},
    sync::Arc,
    time::Duration,
};

use longshore_engine::{
    DeleteOptions, FieldValidation, ListRequest, ReadVersion, WatchStart, WriteOptions,
};
use longshore_model::{
    FieldSelector, KindInfo, LabelSelector, PatchKind, StatusCause, StatusReason,
};
use serde_json::{Value, json};

use crate::{
    limits,
    query::Query,
    status_error::{StatusError, forbidden, invalid, not_supported, required, too_long},
};

/// The selectors of a list or watch.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selection {
    pub(crate) labels: LabelSelector,
    pub(crate) fields: FieldSelector,
}

impl Selection {
    pub(crate) fn parse(query: &Query) -> Result<Self, StatusError> {
        let bad = |error: longshore_model::SelectorError| {
            StatusError::bad_request(error.server_message())
        };
        let labels = query
            .get("labelSelector")
            .unwrap_or_default()
            .parse()
            .map_err(bad)?;
        let fields = query
            .get("fieldSelector")
            .unwrap_or_default()
            .parse()
            .map_err(bad)?;
        Ok(Self { labels, fields })
    }
}

/// Returns the time limit of a request: `timeout`, up to a minute.
pub(crate) fn timeout(query: &Query) -> Result<Duration, StatusError> {
    let Some(text) = query.get("timeout") else {
        return Ok(limits::REQUEST_TIME);
    };
    match duration(text) {
        Some(Duration::ZERO) => Ok(limits::REQUEST_TIME),
        Some(time) => Ok(time.min(limits::REQUEST_TIME)),
        None => Err(StatusError::bad_request(format!(
            "invalid timeout specified in the request URL - time: invalid duration {text:?}"
        ))),
    }
}

/// Parses a duration in Go's format: `1m30s`, `1.5h`, `300ms`. A negative
/// duration is zero.
fn duration(text: &str) -> Option<Duration> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let mut rest = unsigned;
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    let mut seconds = 0.0_f64;
    while !rest.is_empty() || unsigned.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(rest.len());
        seconds += number
            * match &rest[..letters] {
                "ns" => 1e-9,
                "us" | "µs" => 1e-6,
                "ms" => 1e-3,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3600.0,
                _ => return None,
            };
        rest = &rest[letters..];
    }
    if text.starts_with('-') {
        return Some(Duration::from_nanos(1));
    }
    Duration::try_from_secs_f64(seconds).ok()
}

/// Parses a resource version in a query: absent or a number.
fn version(query: &Query) -> Result<Option<u64>, StatusError> {
    let Some(text) = query.get("resourceVersion") else {
        return Ok(None);
    };
    text.parse().map(Some).map_err(|error: ParseIntError| {
        let problem = match error.kind() {
            IntErrorKind::PosOverflow => "value out of range",
            _ => "invalid syntax",
        };
        // This is a mistake of the client, but Kubernetes answers 500 without a reason.
        StatusError::new(
            StatusReason::Unknown,
            format!(
                "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: {problem}"
            ),
        )
    })
}

/// Returns the version that a GET requests.
pub(crate) fn get_version(query: &Query) -> Result<ReadVersion, StatusError> {
    Ok(match version(query)? {
        None => ReadVersion::Latest,
        Some(0) => ReadVersion::Any,
        Some(at) => ReadVersion::AtLeast(at),
    })
}

/// The options of a list.
#[derive(Debug)]
pub(crate) struct ListParams {
    pub(crate) version: ReadVersion,
    pub(crate) limit: Option<usize>,
    pub(crate) cursor: Option<String>,
}

/// Builds the engine's list request for a collection.
pub(crate) fn list_request(
    query: &Query,
    kind: Arc<KindInfo>,
    namespace: Option<String>,
) -> Result<ListRequest, StatusError> {
    let params = ListParams::parse(query)?;
    let selection = Selection::parse(query)?;
    Ok(ListRequest {
        kind,
        namespace,
        labels: selection.labels,
        fields: selection.fields,
        limit: params.limit,
        cursor: params.cursor,
        version: params.version,
    })
}

fn check_list_match(query: &Query, matching: &str) -> Vec<StatusCause> {
    let mut causes = Vec::new();
    let field = "resourceVersionMatch";
    if query.get("resourceVersion").is_none() {
        let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
        causes.push(forbidden(field, why));
    }
    if query.get("continue").is_some() {
        causes.push(forbidden(
            field,
            "resourceVersionMatch is forbidden when continue is provided",
        ));
    }
    if !matches!(matching, "Exact" | "NotOlderThan") {
        causes.push(not_supported(
            field,
            matching,
            &["Exact", "NotOlderThan", ""],
        ));
    }
    if matching == "Exact" && query.get("resourceVersion") == Some("0") {
        let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
        causes.push(forbidden(field, why));
    }
    causes
}

impl ListParams {
    pub(crate) fn parse(query: &Query) -> Result<Self, StatusError> {
        let matching = query.get("resourceVersionMatch");
        let mut causes = matching.map_or_else(Vec::new, |text| check_list_match(query, text));
        if query.flag("sendInitialEvents").is_some() {
            causes.push(forbidden(
                "sendInitialEvents",
                "sendInitialEvents is forbidden for list",
            ));
        }
        if !causes.is_empty() {
            return Err(StatusError::invalid_options("ListOptions", causes));
        }
        query.number("timeoutSeconds")?;
        let limit = query.number("limit")?.filter(|limit| *limit > 0);
        let limit = limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let cursor = query.get("continue").map(str::to_owned);
        let requested = version(query).map_err(|error| {
            let problem = &error.status().message;
            StatusError::bad_request(format!("invalid resource version: {problem}"))
        })?;
        if cursor.is_some() && requested.is_some_and(|requested| requested != 0) {
            return Err(StatusError::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        let version = match (requested, matching) {
            (None, _) => ReadVersion::Latest,
            (Some(0), _) => ReadVersion::Any,
            (Some(at), Some("Exact")) => ReadVersion::Exact(at),
            // A limited read at a version without a match rule is an exact
            // read.
            (Some(at), None) if limit.is_some() => ReadVersion::Exact(at),
            (Some(at), _) => ReadVersion::AtLeast(at),
        };
        Ok(Self {
            version,
            limit,
            cursor,
        })
    }
}

/// The options of a watch.
#[derive(Debug)]
pub(crate) struct WatchParams {
    pub(crate) since: Option<WatchStart>,
    pub(crate) initial_events: bool,
    pub(crate) bookmarks: bool,
    pub(crate) timeout_seconds: Option<u64>,
}

impl WatchParams {
    /// Parses the options. `since` is `None` if the watch starts at the current
    /// version without initial events.
    pub(crate) fn parse(query: &Query) -> Result<Self, StatusError> {
        let matching = query.get("resourceVersionMatch");
        let initial = query.flag("sendInitialEvents");
        let mut causes = Vec::new();
        let field = "resourceVersionMatch";
        if initial.is_some() && matching != Some("NotOlderThan") {
            let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            causes.push(forbidden(field, why));
        }
        if let Some(matching) = matching {
            if initial.is_none() {
                let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
                causes.push(forbidden(field, why));
            }
            if matching != "NotOlderThan" {
                causes.push(not_supported(field, matching, &["NotOlderThan"]));
            }
            if query.get("continue").is_some() {
                let why = "resourceVersionMatch is forbidden when continue is provided";
                causes.push(forbidden(field, why));
            }
        }
        if !causes.is_empty() {
            return Err(StatusError::invalid_options("ListOptions", causes));
        }
        let since = match version(query)? {
            None | Some(0) if initial == Some(false) => None,
            None | Some(0) => Some(WatchStart::Latest),
            Some(at) => Some(WatchStart::After(at)),
        };
        Ok(Self {
            since,
            initial_events: initial == Some(true),
            bookmarks: query.flag("allowWatchBookmarks") == Some(true),
            timeout_seconds: query
                .number("timeoutSeconds")?
                .and_then(|seconds| u64::try_from(seconds).ok())
                .filter(|seconds| *seconds > 0),
        })
    }
}

/// Returns the options of a write; `kind` is for example `CreateOptions`.
pub(crate) fn write_options(
    query: &Query,
    kind: &str,
    patch: Option<PatchKind>,
    user_agent: Option<&str>,
) -> Result<WriteOptions, StatusError> {
    let mut causes = Vec::new();
    let dry_run = dry_run(query, &mut causes);
    let field_validation = match query.get("fieldValidation") {
        None | Some("Warn") => FieldValidation::Warn,
        Some("Ignore") => FieldValidation::Ignore,
        Some("Strict") => FieldValidation::Strict,
        Some(other) => {
            causes.push(not_supported(
                "fieldValidation",
                other,
                &["Ignore", "Strict", "Warn"],
            ));
            FieldValidation::Warn
        }
    };
    let field_manager = query.get("fieldManager");
    if let Some(manager) = field_manager {
        if manager.len() > 128 {
            causes.push(too_long("fieldManager", 128));
        }
        for (at, odd) in manager.char_indices().filter(|(_, c)| c.is_control()) {
            let code = u32::from(odd);
            let why = format!("invalid character U+{code:04X} (at position {at})");
            causes.push(invalid("fieldManager", manager, &why));
        }
    }
    let force = query.flag("force");
    match patch {
        Some(PatchKind::Apply) if field_manager.is_none() => {
            causes.push(required("fieldManager", "is required for apply patch"));
        }
        Some(PatchKind::Apply) | None => {}
        Some(_) if force.is_some() => {
            causes.push(forbidden(
                "force",
                "may not be specified for non-apply patch",
            ));
        }
        Some(_) => {}
    }
    if !causes.is_empty() {
        return Err(StatusError::invalid_options(kind, causes));
    }
    Ok(WriteOptions {
        dry_run,
        field_manager: field_manager.map(str::to_owned),
        user_agent: user_agent.map(str::to_owned),
        force: force == Some(true),
        field_validation,
        ..WriteOptions::default()
    })
}

fn dry_run(query: &Query, causes: &mut Vec<StatusCause>) -> bool {
    let values = query.all("dryRun");
    if values.iter().any(|value| value != "All") {
        let mut cause = not_supported("dryRun", "", &["All"]);
        // Kubernetes lists all values.
        let listed = json!(values).to_string();
        cause.message = cause.message.replacen("\"\"", &listed, 1);
        causes.push(cause);
    }
    values.iter().any(|value| value == "All")
}

/// Returns the options of a delete from the body, or from the query if the request has no body.
pub(crate) fn delete_options(
    query: &Query,
    body: Option<Value>,
) -> Result<DeleteOptions, StatusError> {
    if let Some(body) = body {
        return Ok(DeleteOptions::from_body(&body)?);
    }
    let mut options = json!({});
    if let Some(policy) = query.get("propagationPolicy") {
        options["propagationPolicy"] = policy.into();
    }
    if let Some(orphan) = query.flag("orphanDependents") {
        options["orphanDependents"] = orphan.into();
    }
    if let Some(seconds) = query.number("gracePeriodSeconds")? {
        options["gracePeriodSeconds"] = seconds.into();
    }
    let dry_run = query.all("dryRun");
    if !dry_run.is_empty() {
        options["dryRun"] = json!(dry_run);
    }
    Ok(DeleteOptions::from_body(&options)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn query(text: &str) -> Query {
        Query::parse(Some(text)).unwrap()
    }

    #[test]
    fn list_versions() {
        for (text, expected) in [
            ("", ReadVersion::Latest),
            ("resourceVersion=0", ReadVersion::Any),
            ("resourceVersion=7", ReadVersion::AtLeast(7)),
            ("resourceVersion=7&limit=2", ReadVersion::Exact(7)),
            (
                "resourceVersion=7&resourceVersionMatch=Exact",
                ReadVersion::Exact(7),
            ),
            (
                "resourceVersion=7&limit=2&resourceVersionMatch=NotOlderThan",
                ReadVersion::AtLeast(7),
            ),
        ] {
            assert_eq!(
                ListParams::parse(&query(text)).unwrap().version,
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn contradictory_list_options_are_rejected() {
        for (text, code) in [
            ("resourceVersionMatch=Exact", 422),
            ("resourceVersion=0&resourceVersionMatch=Exact", 422),
            ("resourceVersion=5&resourceVersionMatch=Sometimes", 422),
            (
                "resourceVersion=5&resourceVersionMatch=Exact&continue=x",
                422,
            ),
            ("sendInitialEvents=true", 422),
            ("resourceVersion=5&continue=x", 400),
            ("resourceVersion=-5", 400),
            ("limit=x", 400),
        ] {
            assert_eq!(
                ListParams::parse(&query(text)).unwrap_err().status().code,
                code,
                "{text}"
            );
        }
    }

    #[test]
    fn watches() {
        let parse = |text| WatchParams::parse(&query(text));
        assert_eq!(
            parse("sendInitialEvents=true").unwrap_err().status().code,
            422
        );
        assert_eq!(
            parse("resourceVersionMatch=NotOlderThan")
                .unwrap_err()
                .status()
                .code,
            422
        );
        let params = parse(
            "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=5",
        )
        .unwrap();
        assert!(params.initial_events && params.bookmarks);
        assert_eq!(params.timeout_seconds, Some(5));
        let none = parse("sendInitialEvents=false&resourceVersionMatch=NotOlderThan").unwrap();
        assert_eq!(none.since, None);
        assert_eq!(
            parse("resourceVersion=9").unwrap().since,
            Some(WatchStart::After(9))
        );
    }

    #[test]
    fn request_times() {
        for (text, expected) in [
            ("", Ok(60_000)),
            ("timeout=", Ok(60_000)),
            ("timeout=0", Ok(60_000)),
            ("timeout=0s", Ok(60_000)),
            ("timeout=1m0s", Ok(60_000)),
            ("timeout=2h", Ok(60_000)),
            ("timeout=34s", Ok(34_000)),
            ("timeout=1.5s", Ok(1500)),
            ("timeout=300ms", Ok(300)),
            ("timeout=-5s", Ok(0)),
            ("timeout=5", Err(400)),
            ("timeout=s", Err(400)),
            ("timeout=x", Err(400)),
            ("timeout=5y", Err(400)),
            ("timeout=-", Err(400)),
            ("timeout=1..5s", Err(400)),
            ("timeout=5é", Err(400)),
        ] {
            let found = timeout(&query(text))
                .map(|time| time.as_millis())
                .map_err(|error| error.status().code);
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn write_rules() {
        let parse = |text, patch| write_options(&query(text), "PatchOptions", patch, None);
        let message = |text, patch| parse(text, patch).unwrap_err().status().message.clone();
        assert_eq!(
            message("dryRun=Some", None),
            "PatchOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Some\"]: supported values: \"All\""
        );
        assert_eq!(
            message("", Some(PatchKind::Apply)),
            "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch"
        );
        assert!(message("force=true", Some(PatchKind::Merge)).contains("non-apply"));
        assert!(
            parse("dryRun=All&fieldManager=me&force=1", Some(PatchKind::Apply))
                .unwrap()
                .force
        );
    }
}
