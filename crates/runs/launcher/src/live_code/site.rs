//! Editable installs in the folders of Python's packages.

use std::{
    fs::{self, File},
    io::Read as _,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use super::Import;

/// The names of the folders of packages.
const PACKAGES: [&str; 2] = ["site-packages", "dist-packages"];
/// Larger files are not read.
const MAX_BYTES: u64 = 1 << 20;

/// The file that pip writes for a package that does not come from an index.
#[derive(Deserialize)]
struct DirectUrl {
    url: String,
    #[serde(default)]
    dir_info: DirInfo,
}

#[derive(Default, Deserialize)]
struct DirInfo {
    #[serde(default)]
    editable: bool,
}

/// The folders of editable installs in Python installations.
pub(super) fn of_prefixes(prefixes: &[PathBuf]) -> Vec<Import> {
    let mut sites: Vec<PathBuf> = prefixes.iter().flat_map(|prefix| sites(prefix)).collect();
    sites.sort();
    sites.dedup();
    let mut imports: Vec<Import> = sites.iter().flat_map(|site| of_site(site)).collect();
    imports.retain(|import| !is_of_packages(&import.folder));
    imports
}

/// Returns true if a path is in a folder of installed packages.
pub(super) fn is_of_packages(path: &Path) -> bool {
    let mut parts = path.components();
    parts.any(|part| PACKAGES.iter().any(|name| part.as_os_str() == *name))
}

/// The folders of packages of a Python installation.
fn sites(prefix: &Path) -> Vec<PathBuf> {
    let libraries = ["lib", "lib64"].iter().flat_map(|library| {
        let entries = fs::read_dir(prefix.join(library));
        entries.into_iter().flatten().flatten()
    });
    let versions = libraries.filter(|entry| {
        let name = entry.file_name();
        name.to_string_lossy().starts_with("python3")
    });
    versions
        .flat_map(|entry| PACKAGES.map(|name| entry.path().join(name)))
        .filter_map(|site| site.canonicalize().ok())
        .collect()
}

fn of_site(site: &Path) -> Vec<Import> {
    let (mut imports, mut projects) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(site).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = entry.path();
        let found = if name.ends_with(".pth") {
            of_lines(site, &text(&path))
        } else if name.starts_with("__editable__") && name.ends_with("_finder.py") {
            of_finder(&text(&path))
        } else if name.ends_with(".egg-link") {
            of_lines(site, text(&path).lines().next().unwrap_or_default())
        } else if name.ends_with(".dist-info") {
            projects.extend(of_project(&text(&path.join("direct_url.json"))).map(|to| (to, name)));
            continue;
        } else {
            continue;
        };
        let found = found
            .into_iter()
            .filter_map(|path| path.canonicalize().ok());
        imports.extend(found.map(|folder| Import {
            folder,
            source: path.display().to_string(),
        }));
    }
    // The other files specify the location of a project's modules more exactly.
    projects.retain(|(project, _)| {
        let known = imports.iter();
        !known
            .into_iter()
            .any(|import: &Import| import.folder.starts_with(project))
    });
    imports.extend(projects.into_iter().map(|(folder, name)| Import {
        folder,
        source: site.join(name).display().to_string(),
    }));
    imports
}

/// The text of a file, or an empty text if it cannot be read.
fn text(path: &Path) -> String {
    let mut bytes = Vec::new();
    if path.is_file()
        && let Ok(file) = File::open(path)
    {
        // An incomplete text still contains the first lines.
        let _ = file.take(MAX_BYTES).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The folders that a `.pth` file adds to the search path.
fn of_lines(site: &Path, text: &str) -> Vec<PathBuf> {
    let lines = text.lines().map(str::trim);
    let is_folder =
        |line: &&str| !line.is_empty() && !line.starts_with('#') && !line.starts_with("import ");
    let folders = lines.filter(is_folder).map(|line| site.join(line));
    folders.filter(|folder| folder.is_dir()).collect()
}

/// The folders around the modules of a finder of setuptools, which has a line
/// `MAPPING: dict[str, str] = {'package': '/project/src/package'}`.
fn of_finder(text: &str) -> Vec<PathBuf> {
    let lines = text.lines().filter(|line| line.starts_with("MAPPING"));
    let words = lines.flat_map(|line| line.split(['\'', '"']));
    let modules = words.filter(|word| word.starts_with('/')).map(Path::new);
    modules
        .filter_map(Path::parent)
        .map(Path::to_owned)
        .collect()
}

/// The folder of an editable project.
fn of_project(text: &str) -> Option<PathBuf> {
    let found: DirectUrl = serde_json::from_str(text).ok()?;
    let path = found.url.strip_prefix("file://")?;
    let path = percent_encoding::percent_decode_str(path)
        .decode_utf8()
        .ok()?;
    let path = Path::new(path.as_ref()).canonicalize().ok()?;
    found.dir_info.editable.then_some(path)
}
