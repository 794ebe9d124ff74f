//! Requests for versions that aggregated API servers serve.

use http::header;

use crate::{
    aggregation::{Client, Forwarding},
    call::Call,
    input::RequestBody,
    reply::Reply,
};

/// Returns true if the client requests an upgrade of its connection.
pub(crate) fn is_upgrade(call: &Call) -> bool {
    call.upgrade.is_some() && call.headers.contains_key(header::UPGRADE)
}

/// Forwards a request.
pub(crate) async fn forward(call: Call, forwarding: Forwarding, body: RequestBody) -> Reply {
    let upgrade = match is_upgrade(&call) {
        true => call.upgrade,
        false => None,
    };
    let pass = call.shared.passed_on.begin(forwarding.destination())?;
    let client = Client {
        method: call.method,
        headers: call.headers,
        user: call.user,
        upgrade,
        stopping: call.stopping,
        audit: call.audit,
        pass,
    };
    let shared = &call.shared;
    let server = (&*shared.aggregation, &shared.engine);
    forwarding.forward(server, client, body).await
}
