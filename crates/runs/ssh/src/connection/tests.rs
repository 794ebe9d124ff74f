//! Tests with clients that do not behave.
#![allow(clippy::unwrap_used)]

use futures::future::BoxFuture;
use proptest::prelude::*;

use super::*;
use crate::{Request, Started, Stream};

/// A host whose sessions and connections never start.
struct Silent;

impl Host for Silent {
    fn start(&self, _: Request) -> BoxFuture<'_, Result<Started, String>> {
        Box::pin(std::future::pending())
    }

    fn connect(&self, _: String, _: u16) -> BoxFuture<'_, Result<Box<dyn Stream>, Refusal>> {
        Box::pin(std::future::pending())
    }

    fn note(&self, _: &str) {}
}

fn connection() -> Connection {
    Connection::new(Arc::new(Silent))
}

fn open(kind: &str) -> Vec<u8> {
    let mut message = vec![message::OPEN];
    message.put_string(kind);
    for number in [7, u32::MAX, u32::MAX] {
        message.put_number(number);
    }
    if kind == "direct-tcpip" {
        message.put_string("localhost");
        message.put_number(80);
    }
    message
}

fn request(id: u32, name: &str, argument: &str) -> Vec<u8> {
    let mut message = to(message::REQUEST, id);
    message.put_string(name);
    message.put_boolean(true);
    message.put_string(argument);
    message
}

/// The numbers of confirmed channels among replies.
fn confirmed(replies: &Replies) -> Option<u32> {
    let reply = replies
        .iter()
        .find(|reply| reply[0] == message::OPEN_CONFIRMATION)?;
    let mut fields = Fields::new(&reply[5..]);
    fields.number().ok()
}

#[tokio::test]
async fn channels_that_are_opened_and_closed_do_not_accumulate_tasks() {
    let mut connection = connection();
    for _ in 0..4 * MAX_CHANNELS {
        // Without a yield to the runtime, no task ends.
        let replies = connection.on_message(&open("session")).unwrap();
        if let Some(id) = confirmed(&replies) {
            connection
                .on_message(&request(id, "exec", "sleep 600"))
                .unwrap();
            connection.on_message(&to(message::CLOSE, id)).unwrap();
        }
        assert!(connection.tasks.len() <= MAX_CHANNELS);
    }
    assert_eq!(connection.tasks.len(), MAX_CHANNELS);
    let refused = connection.on_message(&open("session")).unwrap();
    assert_eq!(refused[0][0], message::OPEN_FAILURE);
    // The tasks end with their channels.
    while !connection.has_room() || !connection.tasks.is_empty() {
        tokio::task::yield_now().await;
    }
    let replies = connection.on_message(&open("session")).unwrap();
    assert!(confirmed(&replies).is_some());
    connection.close().await;
}

#[tokio::test]
async fn forwarded_connections_that_never_answer_are_limited() {
    let mut connection = connection();
    let failed = |replies: &Replies| {
        replies
            .iter()
            .any(|reply| reply[0] == message::OPEN_FAILURE)
    };
    let mut refused = 0;
    for _ in 0..2 * MAX_CHANNELS {
        let replies = connection.on_message(&open("direct-tcpip")).unwrap();
        refused += usize::from(failed(&replies));
    }
    assert_eq!(
        (refused, connection.channels.len()),
        (MAX_CHANNELS, MAX_CHANNELS)
    );
    connection.close().await;
}

#[tokio::test]
async fn a_client_sends_no_more_than_the_window() {
    let mut connection = connection();
    let id = confirmed(&connection.on_message(&open("session")).unwrap()).unwrap();
    connection.on_message(&request(id, "exec", "cat")).unwrap();
    let data = |length: usize| {
        let mut message = to(message::DATA, id);
        message.put_string(vec![b'x'; length]);
        message
    };
    for _ in 0..WINDOW / MAX_DATA {
        connection.on_message(&data(MAX_DATA as usize)).unwrap();
    }
    // Messages without bytes do not circumvent the limit.
    for _ in 0..10_000 {
        connection.on_message(&data(0)).unwrap();
    }
    let error = connection.on_message(&data(1)).unwrap_err();
    assert!(matches!(error, Error::Protocol(_)), "{error}");
    connection.close().await;
}

proptest! {
    /// Any message is answered or refused. A reply is longer than the message by at most one text
    /// of the server.
    #[test]
    fn any_messages_are_handled_without_a_panic(
        messages in prop::collection::vec(
            (80u8..101, 0u32..3, prop::collection::vec(any::<u8>(), 0..60)), 0..40,
        ),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut connection = connection();
            connection.on_message(&open("session")).unwrap();
            for (kind, id, rest) in messages {
                let mut message = vec![kind];
                if kind >= 91 {
                    message.put_number(id);
                }
                message.extend_from_slice(&rest);
                match connection.on_message(&message) {
                    Ok(replies) => {
                        let length: usize = replies.iter().map(Vec::len).sum();
                        assert!(length <= message.len() + 200, "{length}");
                    }
                    Err(_) => break,
                }
            }
            connection.close().await;
        });
    }
}
