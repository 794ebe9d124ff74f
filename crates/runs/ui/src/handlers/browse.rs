//! The objects of the embedded cluster.

use http::{Response, StatusCode};
use longshore_client::{
    Cluster, Error, Item, View,
    kinds::{Any, Event},
};
use longshore_model::kind;

use crate::{
    access::Session,
    app::App,
    body::{Body, html},
    pages::{self, EventView, MOST_OBJECTS, Selected},
};

/// The kind that the page shows at first.
const FIRST_KIND: &str = "pods";

fn unavailable(app: &App, session: &Session, status: StatusCode, message: &str) -> Response<Body> {
    let reachability = pages::reachability(&app.feed.now().reachability);
    let page = pages::unavailable(app.frame(session), &reachability, message);
    html(status, page)
}

/// Refuses the request unless the cluster is an embedded one: other clusters have their own tools,
/// and objects that are not related to runs.
fn refused(app: &App, session: &Session) -> Option<Response<Body>> {
    let message = "This page shows the objects of the embedded cluster only.";
    (!app.browse).then(|| unavailable(app, session, StatusCode::NOT_FOUND, message))
}

/// The objects of a kind.
pub(super) async fn list(
    app: &App,
    session: &Session,
    kind: Option<&str>,
    namespace: Option<&str>,
) -> Response<Body> {
    if let Some(response) = refused(app, session) {
        return response;
    }
    let kind = kind.unwrap_or(FIRST_KIND);
    let _permit = app.queries.acquire().await;
    let (kinds, namespaces) = futures::join!(kinds(&app.cluster), namespaces(&app.cluster));
    let view = match app.cluster.kind(kind).await {
        Ok(view) => view,
        Err(error) => {
            return unavailable(app, session, StatusCode::NOT_FOUND, &error.to_string());
        }
    };
    let is_namespaced = view.kind().is_namespaced();
    let qualified = view.kind().qualified();
    let namespace = namespace.filter(|_| is_namespaced);
    let selected = Selected {
        kind: &qualified,
        namespace,
        is_namespaced,
        kinds: &kinds,
        namespaces: &namespaces,
    };
    let table = match placed(view, namespace) {
        Ok(view) => view.table_of_first(MOST_OBJECTS).await,
        Err(error) => Err(error),
    };
    let table = table.map_err(|error| error.to_string());
    let status = pages::reachability(&app.feed.now().reachability);
    let page = pages::browse(app.frame(session), &status, &selected, &table);
    html(StatusCode::OK, page)
}

fn placed(view: View<Any>, namespace: Option<&str>) -> Result<View<Any>, Error> {
    match namespace {
        Some(namespace) => view.in_namespace(namespace),
        None => Ok(view),
    }
}

/// The names of the cluster's kinds, built-in and from CustomResourceDefinitions.
async fn kinds(cluster: &Cluster) -> Vec<String> {
    let mut kinds: Vec<String> = kind::BUILTIN
        .iter()
        .map(kind::KindInfo::qualified)
        .collect();
    if let Ok(view) = cluster.kind("customresourcedefinitions").await
        && let Ok(added) = view.list().await
    {
        kinds.extend(added.items.iter().map(|item| item.name().to_owned()));
    }
    kinds.sort();
    kinds
}

async fn namespaces(cluster: &Cluster) -> Vec<String> {
    let found = cluster.namespaces().list().await;
    let found = found.map(|list| list.items).unwrap_or_default();
    found.iter().map(|item| item.name().to_owned()).collect()
}

/// An object with its events.
pub(super) async fn object(
    app: &App,
    session: &Session,
    (kind, namespace, name): (&str, &str, &str),
) -> Response<Body> {
    if let Some(response) = refused(app, session) {
        return response;
    }
    let _permit = app.queries.acquire().await;
    let found = async {
        let view = app.cluster.kind(kind).await?;
        let namespace = Some(namespace).filter(|text| !text.is_empty());
        placed(view, namespace)?.find(name).await
    };
    let item = match found.await {
        Ok(Some(item)) => item,
        Ok(None) => {
            let message = "The object does not exist, or was deleted.";
            return unavailable(app, session, StatusCode::NOT_FOUND, message);
        }
        Err(error) => {
            return unavailable(app, session, StatusCode::BAD_GATEWAY, &error.to_string());
        }
    };
    let yaml = match item.raw() {
        Ok(value) => pages::object(value),
        Err(error) => {
            return unavailable(app, session, StatusCode::BAD_GATEWAY, &error.to_string());
        }
    };
    let events = match item.events().await {
        Ok(events) => events.iter().map(event).collect::<Result<Vec<_>, _>>(),
        Err(error) => Err(error),
    };
    let events = events.map_err(|error| format!("The events cannot be read: {error}"));
    let status = pages::reachability(&app.feed.now().reachability);
    let which = (kind, namespace, name);
    let page = pages::browsed(app.frame(session), &status, which, &yaml, &events);
    html(StatusCode::OK, page)
}

fn event(event: &Item<Event>) -> Result<EventView, Error> {
    Ok(EventView {
        last_seen: event.last_seen()?,
        count: event.count()?,
        kind: event.event_type()?.to_string(),
        reason: event.reason()?,
        source: event.source()?,
        message: event.message()?,
    })
}
