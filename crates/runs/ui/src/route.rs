//! Paths and queries become values. Pure.

use http::Uri;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// A run in a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RunKey {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// The parsed route of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// Exchange the token of a link.
    Open { token: String },
    /// A route of a session.
    Inside(Inside),
    /// Anything else.
    Unknown,
}

/// The parsed route of a request that needs a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Inside {
    /// The list of runs.
    Runs,
    /// Changed parts of the list.
    RunsEvents,
    /// A script or style.
    Asset(String),
    /// Something of a run.
    Run(RunKey, Part),
    /// The objects of a kind, `pods` by default, in a namespace or all.
    Objects {
        kind: Option<String>,
        namespace: Option<String>,
    },
    /// An object with its events. The namespace is empty for kinds without.
    Object {
        kind: String,
        namespace: String,
        name: String,
    },
    /// Anything else.
    Unknown,
}

/// Something of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// The page of the run.
    Page,
    /// Changed parts of its page.
    Events { shown: Option<Shown> },
    /// The lines of its logs. `after` is the ID of the last event that the tab has.
    Logs { after: Option<String> },
    /// The explanation of a pending or failed run.
    Why,
    /// The last values of its metrics.
    Metrics,
    /// The list of its outputs.
    Outputs,
    /// A file of its outputs.
    File { task: String, path: String },
    /// The list of the run's objects.
    Objects,
    /// An object as YAML.
    Object { kind: String, name: String },
    /// Changes it. `all_users`: also if it belongs to another user.
    Change { change: Change, all_users: bool },
}

/// A change of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// Stops it.
    Cancel,
    /// Removes it.
    Remove,
    /// Runs the failed combinations of a sweep again.
    Retry,
}

/// A part of a run's page that is read repeatedly while a tab shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// The resource usage of the run's tasks.
    Usage,
    /// The combinations of a sweep.
    Sweep,
}

impl Shown {
    /// The name, also of the element.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::Sweep => "sweep",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let all = [Self::Usage, Self::Sweep].into_iter();
        all.into_iter().find(|own| own.as_str() == text)
    }
}

impl Part {
    /// Returns true if the route changes something, and so needs a POST request.
    pub(crate) fn is_change(&self) -> bool {
        matches!(self, Self::Change { .. })
    }
}

/// The route of a request. `base` is the random path of the pages.
pub(crate) fn parse(uri: &Uri, base: &str) -> Route {
    let query = Query(uri.query().unwrap_or_default());
    let path = uri.path();
    if path == "/open" {
        let token = query.get("token").unwrap_or_default();
        return Route::Open { token };
    }
    let below = path.strip_prefix('/');
    let below = below.and_then(|path| path.strip_prefix(base)?.strip_prefix('/'));
    match below {
        Some(below) => Route::Inside(inside(below, query)),
        None => Route::Unknown,
    }
}

fn inside(path: &str, query: Query<'_>) -> Inside {
    let words: Vec<&str> = path.split('/').collect();
    match words.as_slice() {
        [""] => Inside::Runs,
        ["events"] => Inside::RunsEvents,
        ["objects"] => objects(query),
        ["object"] => object(query),
        ["assets", name] => Inside::Asset((*name).to_owned()),
        ["runs", namespace, name, rest @ ..] if is_name(namespace) && is_name(name) => {
            let key = RunKey {
                namespace: (*namespace).to_owned(),
                name: (*name).to_owned(),
            };
            part(rest, query).map_or(Inside::Unknown, |part| Inside::Run(key, part))
        }
        _ => Inside::Unknown,
    }
}

fn objects(query: Query<'_>) -> Inside {
    let (kind, namespace) = (query.get("kind"), query.get("namespace"));
    let is_valid = |text: &Option<String>| text.as_deref().is_none_or(is_name);
    match is_valid(&kind) && is_valid(&namespace) {
        true => Inside::Objects { kind, namespace },
        false => Inside::Unknown,
    }
}

fn object(query: Query<'_>) -> Inside {
    let found = || {
        let namespace = query.get("namespace").unwrap_or_default();
        Some(Inside::Object {
            kind: query.get("kind").filter(|kind| is_name(kind))?,
            name: query.get("name").filter(|name| is_segment(name))?,
            namespace: Some(namespace).filter(|text| text.is_empty() || is_name(text))?,
        })
    };
    found().unwrap_or(Inside::Unknown)
}

fn part(words: &[&str], query: Query<'_>) -> Option<Part> {
    Some(match words {
        [] => Part::Page,
        ["events"] => Part::Events {
            shown: query.get("shown").and_then(|text| Shown::parse(&text)),
        },
        ["logs"] => Part::Logs {
            after: query.get("after"),
        },
        ["why"] => Part::Why,
        ["metrics"] => Part::Metrics,
        ["outputs"] => Part::Outputs,
        ["file"] => Part::File {
            task: query.get("task")?,
            path: query.get("path")?,
        },
        ["objects"] => Part::Objects,
        ["object"] => Part::Object {
            kind: query.get("kind")?,
            name: query.get("name").filter(|name| is_name(name))?,
        },
        [word] => Part::Change {
            change: match *word {
                "cancel" => Change::Cancel,
                "remove" => Change::Remove,
                "retry" => Change::Retry,
                _ => return None,
            },
            all_users: query.get("all-users").is_some_and(|value| value == "true"),
        },
        _ => return None,
    })
}

/// Returns true if a text can be the name of a run, a namespace or an object.
fn is_name(text: &str) -> bool {
    let is_plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
    (1..=253).contains(&text.len()) && !text.starts_with('.') && text.bytes().all(is_plain)
}

/// Returns true if a text can be the name of an object of any kind: names of roles have colons.
fn is_segment(text: &str) -> bool {
    let is_odd = |c: char| c == '/' || c == '%' || c.is_control();
    (1..=253).contains(&text.len()) && !matches!(text, "." | "..") && !text.contains(is_odd)
}

/// A query string.
#[derive(Debug, Clone, Copy)]
struct Query<'a>(&'a str);

impl Query<'_> {
    fn get(self, key: &str) -> Option<String> {
        let mut pairs = self.0.split('&').filter_map(|pair| pair.split_once('='));
        let (_, value) = pairs.find(|(name, _)| *name == key)?;
        let decoded = percent_decode_str(value).decode_utf8().ok()?;
        Some(decoded.into_owned())
    }
}

/// A text in a query or path.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// The path of a run's page below the base.
pub(crate) fn run_path(namespace: &str, name: &str) -> String {
    format!("runs/{namespace}/{name}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn route(path: &str) -> Route {
        parse(&path.parse().unwrap(), "b4se")
    }

    fn of_run(part: Part) -> Route {
        let key = RunKey {
            namespace: "default".to_owned(),
            name: "digits-x7k2p".to_owned(),
        };
        Route::Inside(Inside::Run(key, part))
    }

    #[test]
    fn paths_of_pages() {
        assert_eq!(
            route("/open?token=ab%2Dc"),
            Route::Open {
                token: "ab-c".to_owned()
            }
        );
        assert_eq!(route("/b4se/"), Route::Inside(Inside::Runs));
        assert_eq!(route("/b4se/runs/default/digits-x7k2p"), of_run(Part::Page));
        assert_eq!(
            route("/b4se/runs/default/digits-x7k2p/file?task=worker%2F0&path=a%20b"),
            of_run(Part::File {
                task: "worker/0".to_owned(),
                path: "a b".to_owned()
            })
        );
        assert_eq!(
            route("/b4se/runs/default/digits-x7k2p/cancel"),
            of_run(Part::Change {
                change: Change::Cancel,
                all_users: false
            })
        );
        assert_eq!(
            route("/b4se/runs/default/digits-x7k2p/remove?all-users=true"),
            of_run(Part::Change {
                change: Change::Remove,
                all_users: true
            })
        );
    }

    #[test]
    fn paths_of_objects() {
        assert_eq!(
            route("/b4se/objects"),
            Route::Inside(Inside::Objects {
                kind: None,
                namespace: None
            })
        );
        assert_eq!(
            route("/b4se/object?kind=clusterroles.rbac.authorization.k8s.io&name=system%3Anode"),
            Route::Inside(Inside::Object {
                kind: "clusterroles.rbac.authorization.k8s.io".to_owned(),
                namespace: String::new(),
                name: "system:node".to_owned()
            })
        );
        assert_eq!(
            route("/b4se/runs/default/digits-x7k2p/events?shown=usage"),
            of_run(Part::Events {
                shown: Some(Shown::Usage)
            })
        );
    }

    #[test]
    fn everything_else_is_unknown() {
        for path in [
            "/",
            "/b4se",
            "/b4s/",
            "/b4seX/",
            "/runs/default/x",
            "/opens",
        ] {
            assert_eq!(route(path), Route::Unknown, "{path}");
        }
        for path in [
            "/b4se/runs/default",
            "/b4se/runs/default/../x",
            "/b4se/runs/Default/x",
            "/b4se/runs/default/%2e%2e",
            "/b4se/runs/default/x/secret",
            "/b4se/runs/default/x/file",
            "/b4se/runs/default/x/object?kind=Pod&name=../x",
            "/b4se//",
            "/b4se/objects?kind=Pods%2F..",
            "/b4se/objects?namespace=..%2F",
            "/b4se/object?kind=pods&name=..",
            "/b4se/object?kind=pods&name=a%2Fb",
            "/b4se/object?kind=pods&namespace=a%2Fb&name=x",
            "/b4se/assets/../x",
        ] {
            assert_eq!(route(path), Route::Inside(Inside::Unknown), "{path}");
        }
    }

    #[test]
    fn texts_in_queries_return() {
        let text = "a/b &=?#%\u{e9}";
        let path = format!("/open?x=1&token={}", encoded(text));
        assert_eq!(
            route(&path),
            Route::Open {
                token: text.to_owned()
            }
        );
    }
}
