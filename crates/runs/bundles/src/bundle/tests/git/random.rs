//! Compares random trees, patterns and states of a repository with git's own list.

use super::*;

/// Versions of git before 2.52 let `a**/b` match `a/x/b`, against its documentation.
fn is_clear(pattern: &str) -> bool {
    let text = pattern.trim_start_matches('!');
    let literal = text.find(['*', '?', '[', '\\']).unwrap_or(text.len());
    let (literal, rest) = text.split_at(literal);
    literal.is_empty() || literal.ends_with('/') || !rest.starts_with("**")
}

const NAMES: [&str; 12] = [
    "a", "b", "ab", "A", "data", "x.py", "y.log", "é", "a b", "[a]", "{a,b}", "#c",
];
const PIECES: [&str; 31] = [
    "a",
    "b",
    "ab",
    "A",
    "data",
    ".py",
    "y.log",
    "é",
    "*",
    "*",
    "**",
    "?",
    "/",
    "/",
    "/",
    "[ab]",
    "[!a]",
    "[^b]",
    "[z-a]",
    "[a-z]",
    "[[:alpha:]]",
    "[]a]",
    "[",
    "]",
    "\\",
    "!",
    "#",
    " ",
    "{a,b}",
    "\t",
    "\r",
];

fn path() -> impl Strategy<Value = String> {
    let name = proptest::sample::select(&NAMES[..]);
    proptest::collection::vec(name, 1..4).prop_map(|names| names.join("/"))
}

fn patterns() -> impl Strategy<Value = String> {
    let random = proptest::collection::vec(proptest::sample::select(&PIECES[..]), 1..6);
    let random = random.prop_map(|pieces| pieces.concat());
    let from_path = (
        path(),
        any::<bool>(),
        "(/|!|!/|\\*\\*/)?",
        "(/|/\\*|/\\*\\*| |\\\\)?",
    );
    let from_path = from_path.prop_map(|(path, whole, before, after)| match whole {
        true => format!("{before}{path}{after}"),
        false => format!("{before}{}{after}", path.rsplit('/').next().unwrap()),
    });
    let line = prop_oneof![random, from_path].prop_filter("unclear", |line| is_clear(line));
    let lines = proptest::collection::vec(line, 0..6);
    (lines, "(\n|\r\n|\n\n)").prop_map(|(lines, end)| lines.join(&end))
}

/// `PROPTEST_CASES` sets another number.
fn cases() -> u32 {
    let set = std::env::var("PROPTEST_CASES").ok();
    set.and_then(|cases| cases.parse().ok()).unwrap_or(32)
}

/// The form of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Plain,
    IgnoresCase,
    Split,
    Version4,
    Worktree,
    Sha256,
}

fn form() -> impl Strategy<Value = Form> {
    let forms = [
        Form::Plain,
        Form::Plain,
        Form::IgnoresCase,
        Form::Split,
        Form::Version4,
        Form::Worktree,
        Form::Sha256,
    ];
    proptest::sample::select(forms.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn packed_files_are_those_that_git_lists(
        form in form(),
        files in proptest::collection::btree_set(path(), 1..24),
        tracked in proptest::collection::vec(any::<proptest::sample::Index>(), 0..6),
        removed in proptest::option::of(any::<proptest::sample::Index>()),
        ignores in proptest::collection::vec((proptest::option::of(path()), patterns()), 0..4),
        exclude in patterns(),
        user in patterns(),
        nested in proptest::option::of(path()),
        inner in patterns(),
    ) {
        // The only known difference: a range without characters, if git ignores the case.
        prop_assume!(form != Form::IgnoresCase || ![&exclude, &user].into_iter().chain(
            ignores.iter().map(|(_, text)| text)).any(|text| text.contains("[z-a]")));
        let case = Case::new();
        case.init();
        let mut code = case.code();
        match form {
            Form::Plain => {}
            Form::IgnoresCase => drop(case.git(&code, &["config", "core.ignoreCase", "true"])),
            Form::Split => drop(case.git(&code, &["config", "core.splitIndex", "true"])),
            Form::Version4 => drop(case.git(&code, &["config", "index.version", "4"])),
            Form::Sha256 => {
                fs::remove_dir_all(code.join(".git")).unwrap();
                drop(case.git(&code, &["init", "-q", "--object-format=sha256"]));
            }
            Form::Worktree => {
                case.git(&code, &["commit", "-q", "--allow-empty", "-m", "first"]);
                case.git(&code, &["worktree", "add", "-q", "../code/tree"]);
                code = code.join("tree");
            }
        }
        let within = |path: &str| {
            let inside = code.strip_prefix(case.code()).unwrap();
            inside.join(path).to_str().unwrap().to_owned()
        };
        for path in &files {
            case.write(&within(path), "");
        }
        symlink("a", code.join("link")).unwrap();
        let nested = nested.map(|path| code.join(path).with_file_name("nested"));
        let nested = nested.filter(|folder| fs::create_dir_all(folder.join("a")).is_ok());
        if let Some(folder) = nested {
            case.git(&folder, &["init", "-q"]);
            fs::write(folder.join("a/x.py"), "").unwrap();
            fs::write(folder.join("y.log"), "").unwrap();
            fs::write(folder.join(".gitignore"), &inner).unwrap();
        }
        let files: Vec<_> = files.iter().filter(|path| code.join(path).is_file()).collect();
        let some = |index: &proptest::sample::Index| *index.get(&files);
        for index in &tracked {
            case.git(&code, &["--literal-pathspecs", "add", "-f", "--", some(index)]);
        }
        if let Some(index) = &removed {
            fs::remove_file(code.join(some(index))).unwrap();
        }
        for (place, patterns) in &ignores {
            let folder = place.as_ref().and_then(|place| place.rsplit_once('/'));
            let folder = folder.map_or("", |(folder, _)| folder);
            case.write(&within(&Path::new(folder).join(".gitignore").to_string_lossy()), patterns);
        }
        fs::write(case.code().join(".git/info/exclude"), &exclude).unwrap();
        fs::create_dir_all(case.home().join(".config/git")).unwrap();
        fs::write(case.home().join(".config/git/ignore"), &user).unwrap();

        let (packed, mut listed) = (case.packed(&code), case.listed(&code));
        if form == Form::IgnoresCase {
            // A tracked name in another case is the same file for git.
            let known = |path: &Path| path.as_os_str().to_ascii_lowercase();
            let lower: BTreeSet<_> = listed.iter().map(|path| known(path)).collect();
            let index = case.git(&code, &["ls-files", "-z"]).to_ascii_lowercase();
            let index: BTreeSet<_> = index.split(|byte| *byte == 0).collect();
            listed.extend(packed.iter().filter(|path| {
                lower.contains(&known(path)) || index.contains(known(path).as_bytes())
            }).cloned());
        }
        prop_assert_eq!(packed, listed);
        // A folder of the repository that is not ignored has the same files.
        for folder in fs::read_dir(&code).unwrap() {
            let folder = folder.unwrap().path();
            if form == Form::IgnoresCase || !folder.is_dir() || folder.ends_with(".git") {
                continue;
            }
            let listed = case.listed(&folder);
            if !listed.is_empty() {
                prop_assert_eq!(case.packed(&folder), listed, "in {:?}", folder);
            }
        }
    }
}
