//! The Python options for assembling tasks from pods.

use longshore::resolver::{Address, Assembly, Doubled, Family, NotRunning, Order, Policy, Port};
use pyo3::prelude::*;

use crate::exceptions::invalid;

/// The value for a word, or an error that lists the valid words.
fn one_of<T: Copy>(what: &str, text: &str, words: &[(&str, T)]) -> PyResult<T> {
    let found = words.iter().find(|(word, _)| *word == text);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        invalid(format!(
            "{what} cannot be {text:?}: choose one of {}",
            words.join(", ")
        ))
    })
}

/// `port`, `address`, `family`, `order`, `not_running`, `ready`, `once`, `tensorflow`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Options {
    port: String,
    address: String,
    family: String,
    order: String,
    not_running: String,
    ready: bool,
    once: bool,
    /// Selects TensorFlow's address, order and handling of pods, instead of the other options.
    tensorflow: bool,
}

impl Options {
    pub(crate) fn assembly(&self) -> PyResult<Assembly> {
        let kinds = [
            ("fail", NotRunning::Fail),
            ("skip_finished", NotRunning::SkipFinished),
            ("skip", NotRunning::Skip),
            ("keep", NotRunning::Keep),
        ];
        let not_running = one_of("not_running", &self.not_running, &kinds)?;
        let mut policy = Policy::of(not_running, self.ready);
        if self.once {
            policy.doubled = Doubled::First;
        }
        let port = self.port.parse::<Port>();
        let addresses = [
            ("pod_ip", Address::PodIp),
            ("host_ip", Address::HostIp),
            ("dns", Address::Dns),
            ("hostname", Address::Hostname),
        ];
        let families = [
            ("primary", Family::Primary),
            ("ipv4", Family::V4),
            ("ipv6", Family::V6),
        ];
        let orders = [
            ("natural", Order::Natural),
            ("lexical", Order::Lexical),
            ("index", Order::CompletionIndex),
        ];
        let port = port.map_err(|error| invalid(error.to_string()))?;
        let family = one_of("family", &self.family, &families)?;
        if self.tensorflow {
            return Ok(Assembly {
                port,
                family,
                ..Assembly::tensorflow()
            });
        }
        Ok(Assembly {
            port,
            address: one_of("address", &self.address, &addresses)?,
            family,
            order: one_of("order", &self.order, &orders)?,
            policy,
        })
    }
}
