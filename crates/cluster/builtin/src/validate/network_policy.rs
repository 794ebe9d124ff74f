//! Validation of NetworkPolicies, IPAddresses and ServiceCIDRs.

use longshore_model::CauseList;

use super::{
    address::{is_inside, network},
    field_value::{Causes, FieldValue},
    selector,
};
use crate::{cause::Cause, json::Object};

const CIDR: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

pub(crate) fn policy(object: &Object, causes: &mut CauseList) {
    let (spec, causes) = (FieldValue::field(object, "spec"), &mut Causes(causes));
    selector::check(&spec.get("podSelector"), causes);
    for (rules, peers) in [("ingress", "from"), ("egress", "to")] {
        for rule in spec.get(rules).items() {
            rule.get("ports").items().for_each(|one| port(&one, causes));
            rule.get(peers).items().for_each(|one| peer(&one, causes));
        }
    }
    let types = spec.get("policyTypes");
    if types.len() > 2 {
        causes.invalid(&types, "may not specify more than two policyTypes");
        return;
    }
    for kind in types.items() {
        causes.one_of(&kind, &["Ingress", "Egress"]);
    }
}

fn port(port: &FieldValue<'_>, causes: &mut Causes<'_>) {
    causes.one_of_if_set(&port.get("protocol"), &["TCP", "UDP", "SCTP"]);
    let (number, end) = (port.get("port"), port.get("endPort"));
    if number.is_set() {
        causes.port_or_name(&number);
    }
    let Some(last) = end.number() else { return };
    match (number.is_set(), number.number()) {
        (false, _) => causes.invalid(&end, "may not be specified when `port` is not specified"),
        (true, None) => causes.invalid(&end, "may not be specified when `port` is non-numeric"),
        (true, Some(first)) => {
            if last < first {
                causes.invalid(&end, "must be greater than or equal to `port`");
            }
            causes.port(&end);
        }
    }
}

fn peer(peer: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let block = peer.get("ipBlock");
    let mut peers = 0;
    for field in ["podSelector", "namespaceSelector"] {
        if peer.get(field).is_set() {
            peers += 1;
            selector::check(&peer.get(field), causes);
        }
    }
    if block.is_set() {
        peers += 1;
        ip_block(&block, causes);
    }
    if peers == 0 {
        causes.required(peer, "must specify a peer");
    } else if peers > 1 && block.is_set() {
        causes.forbidden(peer, "may not specify both ipBlock and another peer");
    }
}

fn ip_block(block: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let cidr = block.get("cidr");
    if cidr.text().is_empty() {
        return causes.required(&cidr, "");
    }
    let Some(outer) = network(cidr.text()) else {
        return causes.invalid(&cidr, CIDR);
    };
    for except in block.get("except").items() {
        match network(except.text()) {
            None => causes.invalid(&except, CIDR),
            Some(inner) if !is_inside(inner, outer) => {
                causes.invalid(&except, "must be a strict subset of `cidr`");
            }
            Some(_) => {}
        }
    }
}

/// Validates the reference to the object that uses the address.
pub(crate) fn ip_address(object: &Object, causes: &mut CauseList) {
    let causes = &mut Causes(causes);
    let parent = FieldValue::field(object, "spec").get("parentRef");
    if !parent.is_set() {
        return causes.required(&parent, "");
    }
    for field in ["resource", "name"] {
        if parent.get(field).text().is_empty() {
            causes.required(&parent.get(field), "");
        }
    }
}

/// Validates a change: existing CIDR blocks cannot be changed.
pub(crate) fn service_cidr_change(before: &Object, after: &Object, causes: &mut CauseList) {
    let causes = &mut Causes(causes);
    let cidrs = |object| FieldValue::field(object, "spec").get("cidrs");
    let (old, new) = (cidrs(before), cidrs(after));
    if old.len() != new.len() {
        return causes.immutable(&old, &new);
    }
    for (old, new) in old.items().zip(new.items()) {
        causes.immutable(&old, &new);
    }
}

/// Allows at most one CIDR block per IP family.
pub(crate) fn service_cidr(object: &Object, causes: &mut CauseList) {
    let causes = &mut Causes(causes);
    let cidrs = FieldValue::field(object, "spec").get("cidrs");
    if cidrs.len() == 0 {
        return causes.required(&cidrs, "at least one CIDR required");
    }
    if cidrs.len() > 2 {
        causes.invalid(&cidrs, "may only hold up to 2 values");
    }
    let mut families = Vec::new();
    for cidr in cidrs.items() {
        match network(cidr.text()) {
            None => causes.invalid(&cidr, CIDR),
            Some((first, bits)) if format!("{first}/{bits}") != cidr.text() => {
                let detail = format!("must be in canonical form (\"{first}/{bits}\")");
                causes.invalid(&cidr, &detail);
            }
            Some((first, _)) => families.push(first.is_ipv4()),
        }
    }
    if cidrs.len() == 2 && families.len() == 2 && families[0] == families[1] {
        let message = "may specify no more than one IP for each IP family";
        causes
            .0
            .push(Cause::invalid(&cidrs.path, cidrs.value(), message));
    }
}
