//! Scripts and styles, which are part of the program.

/// The contents and type of an asset.
pub(crate) fn find(name: &str) -> Option<(&'static str, &'static str)> {
    const SCRIPT: &str = "text/javascript; charset=utf-8";
    const STYLE: &str = "text/css; charset=utf-8";
    Some(match name {
        "actions.js" => (include_str!("../assets/actions.js"), SCRIPT),
        "ansi.js" => (include_str!("../assets/ansi.js"), SCRIPT),
        "axes.js" => (include_str!("../assets/axes.js"), SCRIPT),
        "filter.js" => (include_str!("../assets/filter.js"), SCRIPT),
        "lines.js" => (include_str!("../assets/lines.js"), SCRIPT),
        "live.js" => (include_str!("../assets/live.js"), SCRIPT),
        "logs.js" => (include_str!("../assets/logs.js"), SCRIPT),
        "main.js" => (include_str!("../assets/main.js"), SCRIPT),
        "morph.js" => (include_str!("../assets/morph.js"), SCRIPT),
        "search.js" => (include_str!("../assets/search.js"), SCRIPT),
        "sweep.js" => (include_str!("../assets/sweep.js"), SCRIPT),
        "tabs.js" => (include_str!("../assets/tabs.js"), SCRIPT),
        "style.css" => (include_str!("../assets/style.css"), STYLE),
        _ => return None,
    })
}
