//! `/metrics`: request counters and resource usage of the process, with
//! Kubernetes' names and labels, in Prometheus' text format.

use std::{
    collections::HashMap,
    fmt::Write as _,
    hash::{BuildHasher as _, RandomState},
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicI64, Ordering},
    },
};

use http::Method;

use crate::{
    query::Query,
    route::{Resource, Route},
    verb::verb,
};

/// Maximum number of rows with different labels. Clients choose the paths, so
/// requests beyond the limit are counted without their resource.
const MAX_ROWS: usize = 2000;

/// The counters.
#[derive(Default)]
pub(crate) struct Metrics {
    /// Request counters by the hash of their labels.
    rows: RwLock<HashMap<u64, Arc<Row>>>,
    hasher: RandomState,
    reading: AtomicI64,
    mutating: AtomicI64,
}

/// Counters of requests with the same labels.
struct Row {
    labels: String,
    codes: Mutex<Vec<(u16, u64)>>,
}

/// A request in progress.
pub(crate) struct Tally<'a> {
    row: Arc<Row>,
    inflight: Option<&'a AtomicI64>,
}

impl Tally<'_> {
    /// Records the response.
    pub(crate) fn done(self, code: u16) {
        let mut codes = self
            .row
            .codes
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match codes.iter_mut().find(|(known, _)| *known == code) {
            Some((_, count)) => *count += 1,
            None => codes.push((code, 1)),
        }
    }
}

impl Drop for Tally<'_> {
    fn drop(&mut self) {
        if let Some(inflight) = self.inflight {
            inflight.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Metrics {
    /// Records the start of a request.
    pub(crate) fn begin(&self, method: &Method, route: Option<&Route>, query: &Query) -> Tally<'_> {
        let labels = Labels::of(method, route, query);
        let inflight = match labels.verb {
            "WATCH" | "CONNECT" => None,
            "GET" | "LIST" => Some(&self.reading),
            _ => Some(&self.mutating),
        };
        if let Some(inflight) = inflight {
            inflight.fetch_add(1, Ordering::Relaxed);
        }
        Tally {
            row: self.row(&labels),
            inflight,
        }
    }

    fn row(&self, labels: &Labels<'_>) -> Arc<Row> {
        let key = self.hasher.hash_one(labels);
        let rows = self.rows.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(row) = rows.get(&key) {
            return row.clone();
        }
        let is_full = rows.len() >= MAX_ROWS;
        drop(rows);
        let bare = Labels {
            verb: labels.verb,
            ..Labels::default()
        };
        if is_full && *labels != bare {
            return self.row(&bare);
        }
        let mut rows = self.rows.write().unwrap_or_else(PoisonError::into_inner);
        let row = rows.entry(key).or_insert_with(|| {
            Arc::new(Row {
                labels: labels.to_text(),
                codes: Mutex::default(),
            })
        });
        row.clone()
    }

    /// Returns the metrics document.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        head(
            &mut out,
            "apiserver_request_total",
            "counter",
            "Requests by verb, resource and HTTP response code.",
        );
        for line in self.requests() {
            out.push_str(&line);
        }
        head(
            &mut out,
            "apiserver_current_inflight_requests",
            "gauge",
            "Requests that are being handled, watches aside.",
        );
        for (kind, count) in [("readOnly", &self.reading), ("mutating", &self.mutating)] {
            let count = count.load(Ordering::Relaxed);
            let _ = writeln!(
                out,
                "apiserver_current_inflight_requests{{request_kind=\"{kind}\"}} {count}"
            );
        }
        for (name, kind, help, value) in process() {
            head(&mut out, name, kind, help);
            let _ = writeln!(out, "{name} {value}");
        }
        out
    }

    fn requests(&self) -> Vec<String> {
        let rows = self.rows.read().unwrap_or_else(PoisonError::into_inner);
        let mut lines = Vec::new();
        for row in rows.values() {
            let codes = row.codes.lock().unwrap_or_else(PoisonError::into_inner);
            for (code, count) in codes.iter() {
                let labels = &row.labels;
                lines.push(format!(
                    "apiserver_request_total{{code=\"{code}\",component=\"apiserver\",{labels}}} {count}\n"
                ));
            }
        }
        lines.sort();
        lines
    }
}

pub(crate) fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
}

/// The labels of a request.
#[derive(Debug, Default, Hash, PartialEq, Eq)]
struct Labels<'a> {
    verb: &'static str,
    group: &'a str,
    version: &'a str,
    resource: &'a str,
    subresource: &'a str,
    scope: &'static str,
    dry_run: &'static str,
}

impl<'a> Labels<'a> {
    fn of(method: &Method, route: Option<&'a Route>, query: &Query) -> Self {
        let Some(Route::Resource(resource)) = route else {
            return Self {
                verb: method_word(method),
                subresource: route.map_or("", path_word),
                ..Self::default()
            };
        };
        let Resource {
            group,
            version,
            namespace,
            plural,
            name,
            subresource,
            ..
        } = resource;
        let verb = match verb(method, resource, query) {
            "watch" => "WATCH",
            "list" => "LIST",
            "deletecollection" => "DELETECOLLECTION",
            _ if subresource.as_deref() == Some("log") => "CONNECT",
            _ => method_word(method),
        };
        let is_dry = query.first("dryRun").is_some_and(|word| word == "All");
        Self {
            verb,
            group,
            version,
            resource: plural,
            subresource: subresource.as_deref().unwrap_or_default(),
            scope: match (name, namespace) {
                (Some(_), _) => "resource",
                // A create concerns one object.
                (None, _) if *method == Method::POST => "resource",
                (None, Some(_)) => "namespace",
                (None, None) => "cluster",
            },
            dry_run: if is_dry { "All" } else { "" },
        }
    }

    fn to_text(&self) -> String {
        let labels = [
            ("dry_run", self.dry_run),
            ("group", self.group),
            ("resource", self.resource),
            ("scope", self.scope),
            ("subresource", self.subresource),
            ("verb", self.verb),
            ("version", self.version),
        ];
        let labels = labels.map(|(name, value)| {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"");
            format!("{name}=\"{}\"", value.replace('\n', "\\n"))
        });
        labels.join(",")
    }
}

fn method_word(method: &Method) -> &'static str {
    match *method {
        Method::GET | Method::HEAD => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

/// Non-resource requests are labelled by their path.
fn path_word(route: &Route) -> &'static str {
    match route {
        Route::Health("healthz", _) => "/healthz",
        Route::Health("livez", _) => "/livez",
        Route::Health(..) => "/readyz",
        Route::Metrics => "/metrics",
        Route::Version => "/version",
        Route::OpenApiV2 => "/openapi/v2",
        Route::OpenApiV3Index | Route::OpenApiV3(_) => "/openapi/v3",
        Route::CoreVersions => "/api",
        Route::Groups | Route::Group(_) | Route::GroupVersion { .. } => "/apis",
        Route::OpenIdConfiguration => "/.well-known/openid-configuration",
        Route::OpenIdKeys => "/openid/v1/jwks",
        Route::Root | Route::Resource(_) | Route::ForTests(_) => "",
    }
}

type Sample = (&'static str, &'static str, &'static str, String);

/// Returns the resource usage of the process, as far as the system reports it.
#[cfg(target_os = "linux")]
fn process() -> Vec<Sample> {
    let mut samples = Vec::new();
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let status = read("/proc/self/status");
    let bytes = |field: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(field))?;
        let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some((kib * 1024).to_string())
    };
    if let Some(bytes) = bytes("VmRSS:") {
        samples.push((
            "process_resident_memory_bytes",
            "gauge",
            "Resident memory size in bytes.",
            bytes,
        ));
    }
    if let Some(bytes) = bytes("VmSize:") {
        samples.push((
            "process_virtual_memory_bytes",
            "gauge",
            "Virtual memory size in bytes.",
            bytes,
        ));
    }
    // The name in parentheses may contain spaces; the numbers follow it.
    let stat = read("/proc/self/stat");
    let numbers: Vec<u64> = stat
        .rsplit_once(')')
        .map(|(_, rest)| rest.split_whitespace().flat_map(str::parse).collect())
        .unwrap_or_default();
    // After the state, a letter: fields 14 and 15 are times in hundredths of a
    // second.
    if let (Some(user), Some(system)) = (numbers.get(10), numbers.get(11)) {
        let hundredths = user + system;
        samples.push((
            "process_cpu_seconds_total",
            "counter",
            "Total user and system CPU time spent in seconds.",
            format!("{}.{:02}", hundredths / 100, hundredths % 100),
        ));
    }
    if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
        samples.push((
            "process_open_fds",
            "gauge",
            "Number of open file descriptors.",
            open.count().to_string(),
        ));
    }
    samples
}

/// Resource usage is reported on Linux only.
#[cfg(not(target_os = "linux"))]
fn process() -> Vec<Sample> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn count(metrics: &Metrics, method: &Method, path: &str, query: &str, code: u16) {
        let route = Route::parse(path).ok();
        let query = Query::parse(Some(query)).unwrap();
        metrics.begin(method, route.as_ref(), &query).done(code);
    }

    #[test]
    fn requests_are_counted_by_their_labels() {
        let metrics = Metrics::default();
        let pods = "/api/v1/namespaces/a/pods";
        for _ in 0..2 {
            count(&metrics, &Method::GET, pods, "", 200);
        }
        count(&metrics, &Method::GET, pods, "watch=1", 200);
        count(&metrics, &Method::POST, pods, "dryRun=All", 201);
        count(
            &metrics,
            &Method::PATCH,
            "/apis/apps/v1/namespaces/a/deployments/x/scale",
            "",
            409,
        );
        count(&metrics, &Method::GET, "/version", "", 200);
        let expected = [
            r#"{code="200",component="apiserver",dry_run="",group="",resource="",scope="",subresource="/version",verb="GET",version=""} 1"#,
            r#"{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="namespace",subresource="",verb="LIST",version="v1"} 2"#,
            r#"{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="namespace",subresource="",verb="WATCH",version="v1"} 1"#,
            r#"{code="201",component="apiserver",dry_run="All",group="",resource="pods",scope="resource",subresource="",verb="POST",version="v1"} 1"#,
            r#"{code="409",component="apiserver",dry_run="",group="apps",resource="deployments",scope="resource",subresource="scale",verb="PATCH",version="v1"} 1"#,
        ];
        let lines = metrics.requests();
        let lines: Vec<_> = lines.iter().map(|line| line.trim_end()).collect();
        assert_eq!(
            lines,
            expected.map(|line| format!("apiserver_request_total{line}"))
        );
    }

    #[test]
    fn arbitrary_paths_do_not_exhaust_memory() {
        let metrics = Metrics::default();
        for n in 0..MAX_ROWS * 2 {
            count(
                &metrics,
                &Method::GET,
                &format!("/api/v1/things{n}"),
                "",
                404,
            );
        }
        let lines = metrics.requests();
        assert_eq!(lines.len(), MAX_ROWS + 1);
        let rest = r#"resource="",scope="",subresource="",verb="LIST",version=""} 2000"#;
        assert!(lines.iter().any(|line| line.contains(rest)));
    }

    #[test]
    fn requests_in_progress_are_counted() {
        let metrics = Metrics::default();
        let route = Route::parse("/api/v1/pods").ok();
        let query = Query::parse(None).unwrap();
        let one = metrics.begin(&Method::GET, route.as_ref(), &query);
        let line = "apiserver_current_inflight_requests{request_kind=\"readOnly\"} ";
        assert!(metrics.text().contains(&format!("{line}1\n")));
        drop(one);
        assert!(metrics.text().contains(&format!("{line}0\n")));
    }
}
