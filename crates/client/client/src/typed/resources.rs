//! Amounts of resources, of nodes, volumes and claims.

use std::collections::BTreeMap;

use longshore_model::Quantity;

use crate::{
    cluster::Connection,
    error::{Error, Result},
    item::Item,
    kind::Object,
};

/// Amounts of resources, by name.
///
/// ```
/// # longshore_embedded::example(async |cluster| {
/// # use longshore_client::Patch;
/// # use serde_json::json;
/// # cluster.nodes().create(&json!({"metadata": {"name": "n1"}})).await?;
/// # let amounts = json!({"cpu": "3500m", "memory": "16Gi", "nvidia.com/gpu": "2"});
/// # let status = json!({"status": {"capacity": amounts, "allocatable": amounts}});
/// # cluster.nodes().patch_status("n1", &Patch::merge(status)).await?;
/// let free = cluster.nodes().fetch("n1").await?.allocatable()?;
/// assert_eq!(free.cpu(), Some(3.5));
/// assert_eq!(free.memory(), Some(16 << 30));
/// assert_eq!(free.get("nvidia.com/gpu").map(|amount| amount.value()), Some(2.0));
/// assert!(free.get("pods").is_none());
/// for (name, amount) in free.iter() {
///     println!("{name}: {amount}");
/// }
/// # Ok(()) });
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Resources(BTreeMap<String, Quantity>);

impl Resources {
    /// CPU cores, with fractions.
    #[must_use]
    pub fn cpu(&self) -> Option<f64> {
        self.get("cpu").map(Quantity::value)
    }

    /// Memory in bytes.
    #[must_use]
    pub fn memory(&self) -> Option<u64> {
        // Quantities are finite. A negative one counts as 0.
        self.get("memory")
            .map(|quantity| quantity.value().max(0.0) as u64)
    }

    /// The amount of a resource, for example `nvidia.com/gpu`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Quantity> {
        self.0.get(name)
    }

    /// All amounts by resource name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Quantity)> {
        self.0
            .iter()
            .map(|(name, quantity)| (name.as_str(), quantity))
    }
}

impl<K: Object, C: Connection> Item<K, C> {
    /// The amounts at a path. Missing ones are an [`Error::Status`](crate::Error::Status).
    pub(super) fn resources(&self, path: &[&str]) -> Result<Resources> {
        let name = || path.join(".");
        let raw: BTreeMap<String, String> = self.field(path)?.ok_or_else(|| self.lacks(&name()))?;
        let parsed: Result<_, _> = raw
            .into_iter()
            .map(|(name, text)| text.parse::<Quantity>().map(|quantity| (name, quantity)))
            .collect();
        parsed
            .map(Resources)
            .map_err(|error| Error::decode(format!("{} of {}", name(), self.described()), error))
    }
}
