//! Elastic jobs: generations of tasks.

use std::{collections::BTreeSet, time::Duration};

use longshore_embedded::{FaultRule, WatchEnd};
use longshore_model::meta::COMPLETION_INDEX;
use longshore_resolver::{Error, Generation, Resolver, Task};
use serde_json::json;

use crate::common::{Fixture, TIMEOUT};

fn names(tasks: &[Task]) -> Vec<&str> {
    tasks.iter().map(|task| task.pod.name.as_str()).collect()
}

async fn next(generations: &mut longshore_resolver::Generations) -> Generation {
    let next = tokio::time::timeout(TIMEOUT, generations.next()).await;
    next.unwrap().unwrap()
}

#[tokio::test]
async fn generations_report_joined_and_left_tasks() {
    let fixture = Fixture::start().await;
    fixture.pod("w-0", "tensorflow", "10.0.0.1").await;
    let resolver = Resolver::new(fixture.cluster.clone());
    let mut generations = resolver.watch().await.unwrap();
    let first = next(&mut generations).await;
    assert_eq!((first.number, names(&first.joined)), (1, vec!["w-0"]));

    // A pending pod is not a task, and causes no generation.
    fixture.pod("w-1", "tensorflow", "").await;
    fixture.runs("w-1", "10.0.0.2").await;
    let second = next(&mut generations).await;
    assert_eq!((second.number, names(&second.joined)), (2, vec!["w-1"]));
    assert!(second.left.is_empty());

    fixture.remove("w-0").await;
    let third = next(&mut generations).await;
    assert_eq!((third.number, names(&third.left)), (3, vec!["w-0"]));
    assert_eq!(third.spec().as_dict(), json!({"worker": ["10.0.0.2:8470"]}));

    // A pod of the same name is another pod.
    fixture.remove("w-1").await;
    fixture.pod("w-1", "tensorflow", "10.0.0.3").await;
    let mut fourth = next(&mut generations).await;
    // There may have been a generation between the two changes.
    let mut left = names(&fourth.left).len();
    if fourth.tasks.is_empty() {
        fourth = next(&mut generations).await;
        left += fourth.left.len();
    }
    assert_eq!((names(&fourth.joined), left), (vec!["w-1"], 1));
    assert_eq!(
        fourth.spec().as_dict(),
        json!({"worker": ["10.0.0.3:8470"]})
    );

    // The address changes: no task joins or leaves.
    fixture.runs("w-1", "10.0.0.4").await;
    let fifth = next(&mut generations).await;
    assert!(fifth.joined.is_empty() && fifth.left.is_empty());
    assert_eq!(fifth.spec().as_dict(), json!({"worker": ["10.0.0.4:8470"]}));
}

#[tokio::test]
async fn simultaneous_changes_are_one_generation() {
    let fixture = Fixture::start().await;
    let resolver = Resolver::new(fixture.cluster.clone());
    let generations = resolver.watch().await.unwrap();
    let mut generations = generations.with_quiet(Duration::from_secs(1));
    assert!(next(&mut generations).await.tasks.is_empty());
    for index in 0..20 {
        let name = format!("w-{index}");
        fixture
            .pod(&name, "tensorflow", &format!("10.0.0.{index}"))
            .await;
    }
    let second = next(&mut generations).await;
    assert_eq!((second.number, second.joined.len()), (2, 20));
}

#[tokio::test]
async fn conflicting_pods_are_reported_and_the_watch_continues() {
    let fixture = Fixture::start().await;
    let index = |index: u32| json!({COMPLETION_INDEX: index.to_string()});
    fixture
        .pod_with("w-a", "tensorflow", "10.0.0.1", index(0))
        .await;
    let resolver = Resolver::new(fixture.cluster.clone());
    let mut generations = resolver.watch().await.unwrap();
    assert_eq!(next(&mut generations).await.number, 1);
    fixture
        .pod_with("w-b", "tensorflow", "10.0.0.2", index(0))
        .await;
    let error = generations.next().await.unwrap_err();
    assert!(matches!(error, Error::Pods(_)), "{error}");
    fixture.remove("w-a").await;
    let second = next(&mut generations).await;
    assert_eq!((second.number, names(&second.joined)), (2, vec!["w-b"]));
}

/// Workers come and go while connections break: the generations add up to the existing
/// tasks, no task joins twice, and none leaves without having joined.
#[tokio::test]
async fn no_generation_is_lost_while_connections_break() {
    let fixture = Fixture::start().await;
    let breaks = FaultRule::watches(WatchEnd::Break)
        .resource("pods")
        .after_events(3);
    fixture.embedded.faults().add(breaks).unwrap();
    let resolver = fixture.resolver(&[
        ("worker", &["job-name=a", "job-name=b"]),
        ("ps", &["role=ps"]),
    ]);
    let generations = resolver.watch().await.unwrap();
    let mut generations = generations.with_quiet(Duration::from_millis(5));
    let (stop, mut stopped) = tokio::sync::oneshot::channel::<()>();
    let following = tokio::spawn(async move {
        let mut members: BTreeSet<String> = BTreeSet::new();
        let (mut number, mut last) = (0, None);
        loop {
            let generation = tokio::select! {
                generation = generations.next() => generation.unwrap(),
                _ = &mut stopped, if last == Some(0) => break,
            };
            number += 1;
            assert_eq!(generation.number, number);
            for task in &generation.left {
                assert!(
                    members.remove(&task.pod.uid),
                    "{} left twice",
                    task.pod.name
                );
            }
            for task in &generation.joined {
                assert!(
                    members.insert(task.pod.uid.clone()),
                    "{} joined twice",
                    task.pod.name
                );
            }
            let there: BTreeSet<String> = generation
                .tasks
                .iter()
                .map(|task| task.pod.uid.clone())
                .collect();
            assert_eq!(there, members);
            last = Some(there.len());
        }
        number
    });
    for round in 0..30 {
        let job = ["a", "b"][round % 2];
        let name = format!("{job}-{}", round % 7);
        fixture.pod(&name, job, &format!("10.0.0.{round}")).await;
        tokio::time::sleep(Duration::from_millis(7)).await;
        fixture.remove(&name).await;
    }
    stop.send(()).unwrap();
    let generations = tokio::time::timeout(TIMEOUT, following)
        .await
        .unwrap()
        .unwrap();
    assert!(generations >= 2, "{generations}");
}
