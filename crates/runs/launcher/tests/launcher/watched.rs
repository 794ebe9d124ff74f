//! Following a run whose objects are watched before they are created.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use super::fake::{
    Answer, End, Fake, list,
    run::{ended, job, run, to_end},
};
use longshore_launcher::{
    FollowOptions,
    follow::{Ending, Watched},
};

/// After a restart of the API server, the watches may report the new run late, but a list contains
/// it.
#[tokio::test]
async fn a_run_whose_watches_lag_behind_was_not_removed() {
    let is_created = Arc::new(AtomicBool::new(false));
    let exists = is_created.clone();
    let fake = Fake::new(move |asked| {
        let (jobs, pods) = match exists.load(Ordering::Relaxed) {
            true => (vec![job("main")], vec![ended("main", 0)]),
            false => (vec![], vec![]),
        };
        match asked.path.as_str() {
            _ if asked.query.contains("watch=") => Answer::Stream(vec![], End::StaysOpen),
            path if path.ends_with("/log") => Answer::Stream(vec![], End::Ends),
            path if path.ends_with("/jobs") => list("Job", "batch/v1", jobs),
            path if path.ends_with("/pods") => list("Pod", "v1", pods),
            path => panic!("unexpected request for {path}"),
        }
    });
    let run = run(&[("main", 1, false)]);
    let watched = Watched::open(&fake.cluster(), &run).await.unwrap();
    is_created.store(true, Ordering::Relaxed);
    let follow = watched.follow(&FollowOptions::default()).unwrap();
    let (_, outcome) = to_end(follow).await;
    assert_eq!((outcome.ending, outcome.exit_code), (Ending::Succeeded, 0));
}
