//! The memory for large request bodies that the server holds at the same time. A body takes memory
//! only for the bytes that have arrived, so clients that announce large bodies and send little take
//! almost none. Each user has a share.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;

use crate::{
    input::{BodyError, NoRoom, RequestBody},
    limits,
    user::{MASTERS, User},
};

/// The sizes of the bodies, beyond the size that each may always have.
#[derive(Debug, Default)]
struct Held {
    total: usize,
    by_user: HashMap<String, usize>,
}

static HELD: LazyLock<Mutex<Held>> = LazyLock::new(Mutex::default);

fn held() -> MutexGuard<'static, Held> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Held {
    /// Takes memory for a user; returns false if too little is left. The last quarter is reserved
    /// for administrators.
    fn take(&mut self, user: &User, bytes: usize) -> bool {
        let own = self.by_user.get(&user.name).copied().unwrap_or_default() + bytes;
        let total = self.total + bytes;
        let fits = if user.groups.iter().any(|group| group == MASTERS) {
            total <= limits::BODIES
        } else {
            own <= limits::BODIES_OF_USER && total <= limits::BODIES / 4 * 3
        };
        if fits {
            self.total = total;
            self.by_user.insert(user.name.clone(), own);
        }
        fits
    }

    fn give_back(&mut self, user: &User, bytes: usize) {
        self.total = self.total.saturating_sub(bytes);
        if let Some(own) = self.by_user.get_mut(&user.name) {
            *own = own.saturating_sub(bytes);
            if *own == 0 {
                self.by_user.remove(&user.name);
            }
        }
    }
}

/// The memory of a body, until the request is answered.
#[derive(Debug)]
pub(crate) struct Room {
    user: Arc<User>,
    /// The bytes that have arrived.
    arrived: Mutex<usize>,
}

impl Room {
    fn new(user: Arc<User>) -> Self {
        Self {
            user,
            arrived: Mutex::default(),
        }
    }

    /// The bytes that count: bytes beyond the size that every body may have, up to the limit. Only
    /// bodies that are passed on exceed the limit.
    fn counted(arrived: usize) -> usize {
        arrived
            .min(limits::REQUEST_BODY)
            .saturating_sub(limits::SMALL_BODY)
    }

    fn add(&self, bytes: usize) -> Result<(), NoRoom> {
        let mut arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        let after = arrived.saturating_add(bytes);
        let more = Self::counted(after) - Self::counted(*arrived);
        if more > 0 && !held().take(&self.user, more) {
            return Err(NoRoom);
        }
        *arrived = after;
        Ok(())
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let arrived = self.arrived.get_mut();
        let counted = Self::counted(*arrived.unwrap_or_else(PoisonError::into_inner));
        if counted > 0 {
            held().give_back(&self.user, counted);
        }
    }
}

/// A body that takes memory as it arrives.
struct Counted {
    body: RequestBody,
    room: Arc<Room>,
}

/// Lets a body take memory as it arrives. The memory is released when both results are dropped.
pub(crate) fn counted(body: RequestBody, user: Arc<User>) -> (RequestBody, Arc<Room>) {
    let room = Arc::new(Room::new(user));
    let counted = Counted {
        body,
        room: room.clone(),
    };
    (counted.boxed_unsync(), room)
}

impl Body for Counted {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        let length = match &frame {
            Some(Ok(frame)) => frame.data_ref().map_or(0, Bytes::len),
            _ => 0,
        };
        Poll::Ready(match self.room.add(length) {
            Ok(()) => frame,
            Err(problem) => Some(Err(BodyError(Box::new(problem)))),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str, groups: &[&str]) -> User {
        User {
            name: name.to_owned(),
            groups: groups.iter().map(|&group| group.to_owned()).collect(),
            ..User::default()
        }
    }

    #[test]
    fn users_have_shares_and_administrators_have_a_reserve() {
        let (a, b, c) = (user("a", &[]), user("b", &[]), user("c", &[]));
        let administrator = user("d", &[MASTERS]);
        let mut held = Held::default();
        assert!(held.take(&a, limits::BODIES_OF_USER));
        assert!(!held.take(&a, 1), "the share of a user");
        assert!(held.take(&b, limits::BODIES / 4 * 3 - limits::BODIES_OF_USER));
        assert!(!held.take(&c, 1), "the reserve of administrators");
        assert!(held.take(&administrator, limits::BODIES / 4));
        assert!(!held.take(&administrator, 1));
        held.give_back(&a, limits::BODIES_OF_USER);
        assert!(held.take(&c, 1) && held.take(&a, 1));
        for (user, bytes) in [
            (&a, 1),
            (&b, limits::BODIES / 4 * 3 - limits::BODIES_OF_USER),
            (&c, 1),
            (&administrator, limits::BODIES / 4),
        ] {
            held.give_back(user, bytes);
        }
        assert_eq!(held.total, 0);
        assert!(held.by_user.is_empty());
    }

    #[test]
    fn a_body_takes_what_has_arrived_beyond_a_small_one() {
        assert_eq!(Room::counted(limits::SMALL_BODY), 0);
        assert_eq!(Room::counted(limits::SMALL_BODY + 7), 7);
        let most = limits::REQUEST_BODY - limits::SMALL_BODY;
        assert_eq!(Room::counted(100 * limits::REQUEST_BODY), most);
    }
}
