//! Tests of the rules of the Kubernetes API. The name of a test, `rule_NN_what`, contains
//! the number of the rule in docs/conformance.md.
//!
//! They are written from the rules, at the HTTP level, and run on the embedded server and
//! on real kube-apiservers.
#![allow(clippy::unwrap_used)]

mod common;
mod rule_01;
mod rule_02;
mod rule_03;
mod rule_04;
mod rule_05;
mod rule_06;
mod rule_07;
mod rule_08;
mod rule_09;
mod rule_10;
mod rule_11;
mod rule_12;
mod rule_13;
mod rule_14;
mod rule_15;
mod rule_15_scale;
mod rule_16;
mod rule_17;
mod rule_18;
mod rule_18_recorded;
mod rule_19;
mod rule_20;
mod rule_21;
mod rule_22;
mod rule_23;
mod rule_24;
mod rule_25;
mod rule_26;
mod rule_27;
mod rule_28_events;
mod rule_28_eviction;
mod rule_29;
mod rule_30;
mod rule_31;
mod rule_32;
