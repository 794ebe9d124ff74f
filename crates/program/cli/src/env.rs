//! All environment variables that the program reads. The launcher defines those that it sets in
//! pods.

use std::path::PathBuf;

pub(crate) use longshore::launcher::config::{
    CONTEXT_ENV as CONTEXT, KUBECONFIG_ENV as KUBECONFIG,
};
pub(crate) use longshore_embedded::DATA_DIR_ENV as DATA_DIR;

/// Log filter, as in `info` or `longshore_node=debug,warn`.
pub(crate) const LOG: &str = "LONGSHORE_LOG";
/// Effect of Ctrl-C on a followed run: `ask`, `cancel` or `detach`.
pub(crate) const ON_INTERRUPT: &str = "LONGSHORE_ON_INTERRUPT";

/// Set by a shell's completion script to the shell's name: the program then answers
/// with completions.
pub(crate) const COMPLETE: &str = "LONGSHORE_COMPLETE";

/// Disables colours if set and not empty: <https://no-color.org>.
const NO_COLOR: &str = "NO_COLOR";
/// The user's cache folder, by the XDG base directory specification.
const XDG_CACHE_HOME: &str = "XDG_CACHE_HOME";
/// The user's home folder.
const HOME: &str = "HOME";

/// A variable whose value is UTF-8.
pub(crate) fn text(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn path(name: &str) -> Option<PathBuf> {
    std::env::var_os(name)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

/// The cache folder.
pub(crate) fn cache_dir() -> Option<PathBuf> {
    path(XDG_CACHE_HOME)
        .filter(|dir| dir.is_absolute())
        .or_else(|| home().map(|home| home.join(".cache")))
        .map(|cache| cache.join("longshore"))
}

/// The user's home folder.
pub(crate) fn home() -> Option<PathBuf> {
    path(HOME)
}

/// Returns true if colours are disabled.
pub(crate) fn no_color() -> bool {
    path(NO_COLOR).is_some()
}

/// The log filter; `None` if unset.
pub(crate) fn log_filter() -> Option<String> {
    std::env::var(LOG).ok().filter(|text| !text.is_empty())
}
