//! Long work does not block the threads that serve other requests.

use bytes::Bytes;
use futures::FutureExt as _;
use http::Request;
use http_body::Body as _;
use http_body_util::Full;
use std::{future::poll_fn, pin::Pin, sync::mpsc, task::Poll};

use crate::common::Server;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Returns true if the calling thread generates a response: the only other thread is busy
/// meanwhile.
async fn is_generated_by_this_thread(server: &Server, path: &str, accept: &str) -> bool {
    let (free, busy) = mpsc::channel::<()>();
    let other = tokio::task::spawn_blocking(move || busy.recv());
    let request = Request::get(path).header("accept", accept);
    let request = request.body(Full::new(Bytes::new())).unwrap();
    let mut answer = Box::pin(server.send(request));
    let here = (&mut answer).now_or_never();
    drop(free);
    assert!(other.await.unwrap().is_err());
    if here.is_none() {
        assert_eq!(answer.await.status(), 200);
    }
    here.is_some()
}

#[test]
fn large_lists_are_generated_on_another_thread_and_sent_in_pieces() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .max_blocking_threads(1)
        .enable_all()
        .build();
    runtime.unwrap().block_on(large_lists());
}

async fn large_lists() {
    let server = Server::new();
    server.config_map("a").await;
    let few = format!("{MAPS}?labelSelector=a");
    assert!(is_generated_by_this_thread(&server, &few, "application/json").await);
    for n in 0..1000 {
        server.config_map(&format!("m{n}")).await;
    }
    for path in [
        MAPS.to_owned(),
        few,
        format!("{MAPS}?fieldSelector=metadata.name%3Da"),
        format!("{MAPS}?watch=1"),
        "/api/v1/configmaps?limit=1".to_owned(),
    ] {
        let json = is_generated_by_this_thread(&server, &path, "application/json").await;
        assert!(!json, "{path}");
    }
    assert!(is_generated_by_this_thread(&server, &format!("{MAPS}/a"), "application/json").await);
    assert!(!is_generated_by_this_thread(&server, MAPS, "application/yaml").await);

    let request = Request::get(MAPS).body(Full::new(Bytes::new())).unwrap();
    let mut body = server.send(request).await.into_body();
    let (mut frames, mut turns) = (0, 0);
    poll_fn(|context| {
        loop {
            match Pin::new(&mut body).poll_frame(context) {
                Poll::Ready(Some(frame)) => {
                    frame.unwrap();
                    frames += 1;
                }
                Poll::Ready(None) => return Poll::Ready(()),
                Poll::Pending => {
                    turns += 1;
                    return Poll::Pending;
                }
            }
        }
    })
    .await;
    assert!(frames > 4, "{frames}");
    assert_eq!(turns, frames / 2, "{frames}");
}
