//! The rules of one repository for the paths of a folder to pack.

use std::{
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use gix_ignore::glob::pattern::Case;

use super::{
    index::Tracked,
    layout::Repository,
    patterns::{Patterns, Verdict},
    settings::{Settings, Variables},
};

/// The rules of a repository, or of a folder without a repository.
#[derive(Debug, Default)]
pub(in crate::bundle) struct Scope {
    /// The path of the folder to pack in the repository, empty or with a slash at its end.
    above: Vec<u8>,
    /// The length of the path of the repository in the folder to pack, with a slash at its end.
    below: usize,
    /// The patterns that apply to the folder, lowest precedence first.
    patterns: Vec<Patterns>,
    tracked: Tracked,
    folds_case: bool,
    /// True if git ignores the folder to pack, except for files in it that git tracks.
    pub(in crate::bundle) is_ignored: bool,
    /// Problems that make the rules incomplete.
    pub(in crate::bundle) problems: Vec<String>,
}

impl Scope {
    /// The rules for a folder to pack, from the repository that contains it. `folder` has no links.
    pub(in crate::bundle) fn of_folder(folder: &Path, variables: &Variables<'_>) -> Self {
        let repository = Repository::containing(folder);
        let scope = repository.and_then(|found| Self::within(&found, folder, variables));
        scope.unwrap_or_default()
    }

    /// The rules of a repository in the folder to pack. `path`: its path in the folder.
    pub(in crate::bundle) fn of_nested(
        repository: &Repository,
        path: &Path,
        variables: &Variables<'_>,
    ) -> Option<Self> {
        let scope = Self::within(repository, &repository.folder, variables)?;
        Some(Self {
            below: path.as_os_str().len() + 1,
            ..scope
        })
    }

    /// The rules of a repository for a folder of it, without the folder's own .gitignore file.
    fn within(repository: &Repository, folder: &Path, variables: &Variables<'_>) -> Option<Self> {
        let settings = Settings::of(repository, variables);
        if settings.is_bare {
            return None;
        }
        let top = settings
            .worktree
            .unwrap_or_else(|| repository.folder.clone());
        let top = top.canonicalize().ok()?;
        let folder = folder.canonicalize().ok()?;
        let path = folder.strip_prefix(&top).ok()?;
        let mut scope = Self {
            above: with_slash(path),
            folds_case: settings.ignores_case,
            problems: settings.problems,
            ..Self::default()
        };
        let tracked = Tracked::read(
            &repository.git_dir,
            &scope.above,
            settings.ignores_case,
            settings.is_sha256,
        );
        match tracked {
            Ok(tracked) => scope.tracked = tracked,
            Err(problem) => scope.problems.push(format!(
                "files that git tracks are packed only if no ignore rule matches them: {problem}"
            )),
        }
        let exclude = repository.common_dir.join("info/exclude");
        for file in settings.excludes_file.iter().chain([&exclude]) {
            scope.add(Patterns::of_repository(file));
        }
        scope.inherit(&top, path);
        Some(scope)
    }

    /// Adds the .gitignore files above a folder of the repository. If git ignores the whole folder
    /// and tracks none of its files, the patterns that ignore it do not apply, because the user
    /// asked to pack the folder.
    fn inherit(&mut self, top: &Path, path: &Path) {
        let mut folder = PathBuf::new();
        let has_tracked = self.tracked.has_below(path.as_os_str().as_bytes());
        for name in path.components() {
            let skipped = with_slash(&folder).len();
            self.add(Patterns::of_folder(&top.join(&folder), skipped));
            folder.push(name);
            let bytes = folder.as_os_str().as_bytes();
            while let Some((Verdict::Ignored, number)) =
                self.first_match(&self.patterns, bytes, true)
            {
                if has_tracked {
                    self.is_ignored = true;
                    return;
                }
                let case = self.case();
                self.patterns[number].remove_match(bytes, true, case);
            }
        }
    }

    fn add(&mut self, patterns: Patterns) {
        if !patterns.is_empty() {
            self.patterns.push(patterns);
        }
    }

    /// The patterns of the .gitignore file of a folder. `path`: its path in the folder to pack.
    pub(in crate::bundle) fn read_folder(&self, folder: &Path, path: &Path) -> Option<Patterns> {
        let path = self.in_repository(path);
        let skipped = match path.is_empty() || path.ends_with(b"/") {
            true => path.len(),
            false => path.len() + 1,
        };
        let read = Patterns::of_folder(folder, skipped);
        (!read.is_empty()).then_some(read)
    }

    /// Matches a path of the folder to pack. `inner`: the patterns of the folders above it, in
    /// this order.
    pub(in crate::bundle) fn matched(
        &self,
        path: &Path,
        is_folder: bool,
        inner: &[Patterns],
    ) -> Option<Verdict> {
        let path = self.in_repository(path);
        let found = self.first_match(inner, &path, is_folder);
        let found = found.or_else(|| self.first_match(&self.patterns, &path, is_folder));
        found.map(|(verdict, _)| verdict)
    }

    fn first_match(
        &self,
        patterns: &[Patterns],
        path: &[u8],
        is_folder: bool,
    ) -> Option<(Verdict, usize)> {
        let case = self.case();
        let mut strongest_first = patterns.iter().enumerate().rev();
        strongest_first
            .find_map(|(number, rules)| Some((rules.matched(path, is_folder, case)?, number)))
    }

    fn case(&self) -> Case {
        match self.folds_case {
            true => Case::Fold,
            false => Case::Sensitive,
        }
    }

    /// Returns true if git tracks a file, a submodule, or files below a folder.
    pub(in crate::bundle) fn tracks(&self, path: &Path, is_folder: bool) -> bool {
        let path = self.in_repository(path);
        match is_folder {
            true => self.tracked.has_below(&path) || self.tracked.has_submodule(&path),
            false => self.tracked.has(&path),
        }
    }

    /// Returns true if a repository in this folder is separate from this one.
    pub(in crate::bundle) fn is_separate(&self, path: &Path) -> bool {
        !self.tracked.has_below(&self.in_repository(path))
    }

    fn in_repository(&self, path: &Path) -> Vec<u8> {
        let path = path.as_os_str().as_bytes();
        let path = path.get(self.below..).unwrap_or_default();
        [self.above.as_slice(), path].concat()
    }
}

/// A path with a slash at its end, unless it is empty.
fn with_slash(path: &Path) -> Vec<u8> {
    let mut bytes = path.as_os_str().as_bytes().to_vec();
    if !bytes.is_empty() {
        bytes.push(b'/');
    }
    bytes
}
