//! Scenarios of Services with changing pods.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::endpoints::{
    service::TargetPort,
    testing::{pod, port, service},
};

fn pods(names: impl IntoIterator<Item = usize>) -> Vec<Arc<PodFacts>> {
    let pods = names
        .into_iter()
        .map(|number| pod(&format!("p{number:04}")));
    pods.map(Arc::new).collect()
}

fn decide(service: &Service, pods: &[Arc<PodFacts>], existing: &[EndpointSlice]) -> Plan {
    plan(service, pods, |_| Some(String::new()), existing)
}

/// Applies a plan like the server.
fn carry_out(plan: Plan, slices: &mut Vec<EndpointSlice>, counter: &mut usize) {
    let name = |slice: &EndpointSlice| slice.metadata.name.clone();
    for old in &plan.delete {
        slices.retain(|slice| name(slice) != name(old));
    }
    for new in plan.update {
        let found = slices.iter_mut().find(|slice| name(slice) == name(&new));
        *found.unwrap() = new;
    }
    for mut new in plan.create {
        *counter += 1;
        new.metadata.name = Some(format!("web-{counter}"));
        slices.push(new);
    }
}

fn names(slices: &[EndpointSlice]) -> Vec<String> {
    let all = slices.iter().flat_map(endpoints);
    let mut names: Vec<String> = all
        .filter_map(|endpoint| endpoint.target_ref.as_ref()?.name.clone())
        .collect();
    names.sort();
    names
}

#[test]
fn a_service_without_pods_has_one_empty_slice() {
    let (mut service, mut slices, mut counter) = (service(), Vec::new(), 0);
    let first = decide(&service, &[], &slices);
    assert_eq!(
        (first.create.len(), first.create[0].ports.as_deref()),
        (1, Some(&[][..]))
    );
    carry_out(first, &mut slices, &mut counter);
    assert_eq!(decide(&service, &[], &slices), Plan::default());
    // The first pod changes this slice.
    let plan = decide(&service, &pods([1]), &slices);
    assert_eq!(
        (plan.create.len(), plan.update.len(), plan.delete.len()),
        (0, 1, 0)
    );
    assert_eq!(plan.update[0].metadata.name.as_deref(), Some("web-1"));
    carry_out(plan, &mut slices, &mut counter);
    assert_eq!(slices[0].ports.as_ref().unwrap()[0].port, Some(8080));
    // The empty slice follows the labels.
    carry_out(decide(&service, &[], &slices), &mut slices, &mut counter);
    service.labels.clear();
    let plan = decide(&service, &[], &slices);
    assert_eq!(
        (plan.create.len(), plan.update.len(), plan.delete.len()),
        (0, 1, 0)
    );
    service.deleting = true;
    assert_eq!(decide(&service, &[], &[]), Plan::default());
}

#[test]
fn a_slice_has_at_most_a_hundred_endpoints() {
    let (service, mut slices, mut counter) = (service(), Vec::new(), 0);
    carry_out(
        decide(&service, &pods(0..250), &[]),
        &mut slices,
        &mut counter,
    );
    let sizes = |slices: &[EndpointSlice]| -> Vec<usize> {
        slices.iter().map(|slice| endpoints(slice).len()).collect()
    };
    assert_eq!(sizes(&slices), [100, 100, 50]);
    // New endpoints fill the slice with space, and no other slice changes.
    let plan = decide(&service, &pods(0..260), &slices);
    assert_eq!(
        (plan.create.len(), plan.update.len(), plan.delete.len()),
        (0, 1, 0)
    );
    carry_out(plan, &mut slices, &mut counter);
    assert_eq!(sizes(&slices), [100, 100, 60]);
    // A slice without endpoints is deleted.
    let plan = decide(&service, &pods(0..200), &slices);
    assert_eq!(
        (plan.create.len(), plan.update.len(), plan.delete.len()),
        (0, 0, 1)
    );
}

#[test]
fn pods_with_other_ports_have_slices_of_their_own() {
    let mut service = service();
    service.ports = vec![port("http", TargetPort::Name("http".into()))];
    let with_port = |name: &str, number| {
        let mut pod = pod(name);
        pod.ports = vec![crate::endpoints::pod::NamedPort {
            name: "http".into(),
            protocol: "TCP".into(),
            port: number,
        }];
        Arc::new(pod)
    };
    let pods = [with_port("a", 80), with_port("b", 81), with_port("c", 80)];
    let plan = decide(&service, &pods, &[]);
    let found = plan.create.iter().map(|slice| {
        (
            slice.ports.as_ref().unwrap()[0].port,
            names(std::slice::from_ref(slice)),
        )
    });
    let found: Vec<_> = found.collect();
    assert_eq!(found.len(), 2);
    assert_eq!(found[0], (Some(80), vec!["a".to_owned(), "c".to_owned()]));
    assert_eq!(found[1], (Some(81), vec!["b".to_owned()]));
}

#[test]
fn pods_that_ended_or_whose_node_is_gone_are_left_out() {
    let (mut service, mut ended, mut starting) = (service(), pod("a"), pod("b"));
    ended.ended = true;
    starting.addresses.clear();
    let pods = [Arc::new(ended), Arc::new(starting), Arc::new(pod("c"))];
    assert_eq!(names(&decide(&service, &pods, &[]).create), ["c"]);
    let found = plan(&service, &pods, |_| None, &[]);
    assert!(names(&found.create).is_empty());
    service.publish_not_ready = true;
    let found = plan(&service, &pods, |_| None, &[]);
    assert_eq!(names(&found.create), ["c"]);
}

#[test]
fn slices_of_an_earlier_service_are_deleted() {
    let (service, mut slices, mut counter) = (service(), Vec::new(), 0);
    let mut earlier = service.clone();
    earlier.uid = "earlier".into();
    carry_out(decide(&earlier, &pods([1]), &[]), &mut slices, &mut counter);
    let plan = decide(&service, &pods([1]), &slices);
    assert_eq!(
        (plan.create.len(), plan.update.len(), plan.delete.len()),
        (1, 0, 1)
    );
}

proptest! {
    /// For any changes of the pods, the slices converge in one step, contain each pod once, and
    /// have at most the maximum number of endpoints.
    #[test]
    fn slices_converge(steps in prop::collection::vec((prop::collection::btree_set(0..320_usize, 0..320), any::<bool>()), 1..6)) {
        let (service, mut slices, mut counter) = (service(), Vec::new(), 0);
        for (present, ready) in steps {
            let mut wanted = pods(present.iter().copied());
            if let Some(first) = wanted.first_mut() {
                Arc::make_mut(first).ready = ready;
            }
            let planned = decide(&service, &wanted, &slices);
            carry_out(planned, &mut slices, &mut counter);
            let expected: Vec<String> = wanted.iter().map(|pod| pod.name.clone()).collect();
            prop_assert_eq!(names(&slices), expected);
            prop_assert!(slices.iter().all(|slice| endpoints(slice).len() <= MAX_ENDPOINTS));
            prop_assert!(!slices.is_empty());
            prop_assert_eq!(decide(&service, &wanted, &slices), Plan::default());
        }
    }
}
