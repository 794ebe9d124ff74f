//! Code bundles: packs a folder into a deterministic archive, and stores it so that pods can fetch
//! it without credentials.
//!
//! 1. [`bundle`]: `bundle::scan` finds the files to pack, `bundle::pack` packs them.
//! 2. [`store`]: `store::deliver` uploads the archive, unless the store has it already, and
//!    signs a URL for it.
//! 3. [`data`]: folders and prefixes of buckets as inputs of tasks, by the content of their files.

pub mod bundle;
pub mod data;
mod stop_on_drop;
pub mod store;

pub use bundle::{Bundle, PackOptions};
pub use store::{BundleInfo, Store};
