//! The views of built-in kinds.

use super::{Cluster, View};
use crate::kinds::{self, builtin_kinds};

macro_rules! views {
    ($($(#[$doc:meta])* $($module:ident)::+, $name:ident, $item:ident, $list:ident, $view:ident;)*) => {
        impl Cluster {
            $(
                #[doc = concat!("The ", stringify!($view), " of all namespaces, if they are in any.")]
                #[must_use]
                pub fn $view(&self) -> View<kinds::$name> {
                    self.view()
                }
            )*
        }
    };
}

builtin_kinds!(views);
