//! `pods/proxy`, `services/proxy`: forwards a request to a port of a pod.

mod admit;
mod connect;
mod html;
mod links;
mod location;
mod pages;
mod pods;

use http::{Method, Request, Response, StatusCode, Uri, header};
use longshore_engine::Target;
use longshore_model::StatusReason;

use self::{links::Links, location::Location};
use crate::{
    body::Body, call::Call, input::RequestBody, proxied, reply::Reply, status_error::StatusError,
};
pub(super) use admit::admit;

/// Forwards a request, and returns the response of the pod.
pub(super) async fn proxy(
    call: Call,
    target: Target,
    path: Option<String>,
    body: RequestBody,
) -> Reply {
    let path = admit(&call, &target, path).await?;
    let kind = target.kind.singular.to_string();
    let location = Location::parse(&target.name).ok_or_else(|| {
        let name = &target.name;
        StatusError::bad_request(format!("invalid {kind} request {name:?}"))
    })?;
    let namespace = target.namespace.clone().unwrap_or_default();
    let destination = match &*target.kind.gvk.kind {
        "Pod" => pods::of_pod(&call, &namespace, &location)?,
        _ => pods::of_service(&call, &namespace, &location)?,
    };
    let prefix = format!(
        "/api/v1/namespaces/{namespace}/{}/{}/proxy",
        target.kind.plural, target.name
    );
    let is_read = matches!(call.method, Method::GET | Method::HEAD);
    if is_read && path.as_ref().is_none_or(String::is_empty) {
        return redirect(&call, &prefix);
    }
    let links = Links {
        prefix,
        pod: destination.authority(),
        client: client_host(&call),
    };
    let request = request(&call, &links, path, body)?;
    let pass = call.shared.passed_on.begin(destination.described())?;
    let response = connect::send(&call, &destination, location.is_tls, request).await;
    let mut response = response.map_err(|problem| {
        let text = format!("error trying to reach service: {problem}");
        StatusError::new(StatusReason::ServiceUnavailable, text)
    })?;
    proxied::remove_hop_by_hop(response.headers_mut());
    Ok(pages::through_proxy(
        response.map(|body| Body::passed_on(body, pass)),
        links,
    ))
}

/// The host to which the client has sent the request.
fn client_host(call: &Call) -> Option<String> {
    let header = call.headers.get(header::HOST);
    let header = header.and_then(|host| host.to_str().ok().map(str::to_owned));
    header.or_else(|| call.authority.as_ref().map(ToString::to_string))
}

/// Redirects to the root of the pod's server, because relative links of its pages need the slash.
fn redirect(call: &Call, prefix: &str) -> Reply {
    let mut location = format!("{prefix}/");
    call.query.append_to(&mut location);
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    let location = proxied::value(&location)?;
    response.headers_mut().insert(header::LOCATION, location);
    Ok(response)
}

/// The request for the pod. As in Kubernetes, the pod receives the host that the client has sent.
fn request(
    call: &Call,
    links: &Links,
    path: Option<String>,
    body: RequestBody,
) -> Result<Request<RequestBody>, StatusError> {
    let path = path.filter(|path| !path.is_empty());
    let mut uri = path.unwrap_or_else(|| "/".to_owned());
    let forwarded = format!("{}{uri}", links.prefix);
    call.query.append_to(&mut uri);
    let uri: Uri = uri.parse().map_err(StatusError::internal)?;
    let mut request = Request::new(body);
    *request.method_mut() = call.method.clone();
    *request.uri_mut() = uri;
    let headers = request.headers_mut();
    headers.clone_from(&call.headers);
    proxied::remove_hop_by_hop(headers);
    proxied::remove_credentials(headers);
    let host = links.client.as_ref().unwrap_or(&links.pod);
    headers.insert(header::HOST, proxied::value(host)?);
    headers.insert("x-forwarded-uri", proxied::value(&forwarded)?);
    Ok(request)
}
