//! A limited number of slots, of which each user has a share, so that one user cannot take all
//! slots.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::user::User;

/// All slots.
#[derive(Debug)]
pub(crate) struct Shares {
    all: Arc<Semaphore>,
    of_user: usize,
    users: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// The slots that a user can take.
#[derive(Debug, Clone)]
pub(crate) struct Share {
    all: Arc<Semaphore>,
    own: Option<Arc<Semaphore>>,
}

/// A slot that is taken until this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _own: Option<OwnedSemaphorePermit>,
    _all: OwnedSemaphorePermit,
}

impl Shares {
    pub(crate) fn new(all: usize, of_user: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(all)),
            of_user,
            users: Mutex::default(),
        }
    }

    /// Returns a share that includes all slots.
    pub(crate) fn whole(&self) -> Share {
        Share {
            all: self.all.clone(),
            own: None,
        }
    }

    /// Returns the share of a user. Administrators can take all slots.
    pub(crate) fn of(&self, user: &User) -> Share {
        if user.is_master() {
            return self.whole();
        }
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        let known = users.get(&user.name).and_then(Weak::upgrade);
        let own = known.unwrap_or_else(|| {
            users.retain(|_, own| own.strong_count() > 0);
            let own = Arc::new(Semaphore::new(self.of_user));
            users.insert(user.name.clone(), Arc::downgrade(&own));
            own
        });
        Share {
            own: Some(own),
            ..self.whole()
        }
    }
}

impl Share {
    /// Takes a slot if one is free.
    pub(crate) fn try_take(&self) -> Option<Place> {
        let own = match &self.own {
            Some(own) => Some(own.clone().try_acquire_owned().ok()?),
            None => None,
        };
        Some(Place {
            _own: own,
            _all: self.all.clone().try_acquire_owned().ok()?,
        })
    }

    /// Waits for a slot. The semaphores are never closed.
    pub(crate) async fn take(&self) -> Option<Place> {
        let own = match &self.own {
            Some(own) => Some(own.clone().acquire_owned().await.ok()?),
            None => None,
        };
        Some(Place {
            _own: own,
            _all: self.all.clone().acquire_owned().await.ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_takes_only_a_share() {
        let shares = Shares::new(4, 2);
        let user = |name: &str| User {
            name: name.to_owned(),
            ..User::default()
        };
        let take = |share: &Share| (0..9).map_while(|_| share.try_take()).collect::<Vec<_>>();
        let greedy = take(&shares.of(&user("greedy")));
        assert_eq!(greedy.len(), 2);
        assert!(shares.of(&user("greedy")).try_take().is_none());
        let other = take(&shares.of(&user("other")));
        assert_eq!(other.len(), 2);
        assert!(shares.of(&User::administrator()).try_take().is_none());
        drop(greedy);
        assert_eq!(take(&shares.of(&User::administrator())).len(), 2);
    }
}
