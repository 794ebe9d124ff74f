//! Cluster specs, ports, formats, and pods: each is parsed or rejected, the text of a spec
//! parses to an equal spec, and every format can be rendered for every task.

use longshore_resolver::{
    Act, Address, Assembly, ClusterSpec, Doubled, Order, PodFacts, Policy, Port, Selected,
    assemble, missing,
    render::{Format, Job},
};
use serde_json::Value;

pub fn check(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = text.parse::<Port>();
        let _ = text.parse::<Format>();
    }
    let Ok(value) = serde_json::from_slice::<Value>(data) else {
        return;
    };
    spec(&value);
    if let Ok(facts) = serde_json::from_value::<Vec<PodFacts>>(value) {
        pods(&facts);
    }
}

fn spec(value: &Value) {
    let Ok(spec) = ClusterSpec::from_value(value) else {
        assert!(serde_json::from_value::<ClusterSpec>(value.clone()).is_err());
        return;
    };
    let dict = spec.as_dict();
    assert_eq!(ClusterSpec::from_value(&dict).as_ref(), Ok(&spec));
    let text = serde_json::to_string(&spec).unwrap();
    assert_eq!(serde_json::from_str::<ClusterSpec>(&text).unwrap(), spec);
    render(&spec);
}

fn render(spec: &ClusterSpec) {
    let job = Job::new(spec.clone());
    for (format, _) in Format::ALL {
        let _ = job.render(format, None);
        for role in spec.jobs() {
            for (index, _) in spec.tasks(role) {
                job.render(format, Some((role, index))).unwrap();
            }
        }
    }
}

fn pods(facts: &[PodFacts]) {
    let (first, second) = facts.split_at(facts.len() / 2);
    let selected = [
        Selected {
            role: "worker",
            pods: vec![first.iter().collect()],
        },
        Selected {
            role: "ps",
            pods: vec![second.iter().collect(), vec![]],
        },
    ];
    let lenient = Policy {
        pending: Act::Keep,
        unready: Act::Keep,
        terminating: Act::Keep,
        finished: Act::Keep,
        doubled: Doubled::First,
    };
    for policy in [Policy::default(), Policy::running(), lenient] {
        for order in [Order::Natural, Order::Lexical, Order::CompletionIndex] {
            for address in [Address::PodIp, Address::Dns, Address::Hostname] {
                let how = Assembly {
                    policy,
                    order,
                    address,
                    ..Assembly::default()
                };
                if let Ok(tasks) = assemble(&selected, &how) {
                    render(&tasks.spec());
                }
                let needed = [("worker".to_owned(), 3), ("chief".to_owned(), 1)].into();
                for lack in missing(&selected, &needed, &how) {
                    assert!(!lack.to_string().is_empty());
                }
            }
        }
    }
}
