//! API priority and fairness. Keeps the default FlowSchemas and PriorityLevelConfigurations, and
//! the condition `Dangling` of FlowSchemas. [`revise`] decides, [`controller`] watches and writes.

mod controller;
mod revise;

pub(crate) use controller::run;
