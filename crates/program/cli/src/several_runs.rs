//! Commands over several runs: the selection of the runs by words, and the action on each run.

use std::fmt::Display;

use futures::StreamExt as _;
use longshore::{
    client::Cluster,
    launcher::{RunSummary, runs},
};

use crate::{
    error::{Error, Result},
    owners::{self, Access},
    ui,
};

/// The number of runs on which a command acts at the same time.
const AT_A_TIME: usize = 8;

/// The runs that words select, without duplicates, in their order. A word is a name, a prefix,
/// `last`, a pattern, or several of these, separated by commas. Prints the runs of other users that
/// match a pattern and are skipped. An invalid word is an error.
pub(crate) async fn choose<'a>(
    cluster: &Cluster,
    all: &'a [RunSummary],
    namespace: &str,
    words: &[String],
    access: Access,
) -> Result<Vec<&'a RunSummary>> {
    let words: Vec<&str> = words.iter().flat_map(|word| split(word)).collect();
    let me = runs::whose(cluster, all, &words, access.users()).await?;
    let mut chosen: Vec<&RunSummary> = Vec::new();
    for word in words {
        if runs::is_pattern(word) {
            let (found, left) = runs::matching(all, namespace, word, me.as_ref())?;
            owners::note_left(&left);
            found.into_iter().for_each(|run| add(&mut chosen, run));
        } else {
            add(&mut chosen, runs::pick(all, namespace, word, me.as_ref())?);
        }
    }
    Ok(chosen)
}

/// Like [`choose`], but patterns select only wanted runs. Prints a note if they select none.
pub(crate) async fn choose_wanted<'a>(
    cluster: &Cluster,
    all: &'a [RunSummary],
    namespace: &str,
    words: &[String],
    access: Access,
    wanted: Wanted,
) -> Result<Vec<&'a RunSummary>> {
    let mut chosen = choose(cluster, all, namespace, words, access).await?;
    if words.iter().all(|word| runs::is_pattern(word)) {
        chosen.retain(|run| (wanted.is_wanted)(run));
        if chosen.is_empty() {
            ui::note(wanted.none);
        }
    }
    Ok(chosen)
}

/// The runs that a pattern selects, among those that it matches.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) is_wanted: fn(&RunSummary) -> bool,
    /// The note if no runs are selected.
    pub(crate) none: &'static str,
}

/// Like [`choose`], but selects the last run that a schedule has created. Patterns skip schedules
/// that have not created a run yet.
pub(crate) async fn choose_made<'a>(
    cluster: &Cluster,
    all: &'a [RunSummary],
    namespace: &str,
    words: &[String],
    access: Access,
) -> Result<Vec<&'a RunSummary>> {
    let chosen = choose(cluster, all, namespace, words, access).await?;
    let mut found = Vec::new();
    for run in chosen {
        match runs::made(all, run) {
            Ok(run) => add(&mut found, run),
            Err(error) if are_several(words) => ui::note(error.to_string()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(found)
}

fn add<'a>(chosen: &mut Vec<&'a RunSummary>, run: &'a RunSummary) {
    if !chosen.iter().any(|known| known.run.name == run.run.name) {
        chosen.push(run);
    }
}

/// Returns true if words may select several runs, even if they currently select one. The form of
/// the output depends only on the words.
pub(crate) fn are_several(words: &[String]) -> bool {
    match words {
        [word] => runs::is_pattern(word) || word.contains(','),
        _ => true,
    }
}

/// The parts of a word between commas, which names do not contain. Patterns may: `{a,b}`.
pub(crate) fn split(word: &str) -> Vec<&str> {
    if word.contains('{') {
        return vec![word];
    }
    word.split(',').map(str::trim).collect()
}

/// Acts on each run, on some at the same time. Reports each failure and continues with the others.
/// Returns the results of successful actions, in the order of the runs.
pub(crate) async fn each<'a, T, F>(
    runs: &[&'a RunSummary],
    act: impl FnMut(&'a RunSummary) -> F,
) -> (Vec<T>, Result<()>)
where
    F: Future<Output = Result<T>>,
{
    let results = futures::stream::iter(runs.iter().copied()).map(act);
    let results = results.buffered(AT_A_TIME);
    let mut results = std::pin::pin!(results.zip(futures::stream::iter(runs)));
    let (mut done, mut failures) = (Vec::new(), Failures::of(runs.len()));
    while let Some((result, run)) = results.next().await {
        done.extend(failures.take(&run.run.name, result));
    }
    (done, failures.result())
}

/// The failures of a command on several runs. Each is reported when it occurs.
#[derive(Debug)]
pub(crate) struct Failures {
    count: usize,
    failed: Vec<Error>,
}

impl Failures {
    /// The failures of a command on this number of runs.
    pub(crate) fn of(count: usize) -> Self {
        Self {
            count,
            failed: Vec::new(),
        }
    }

    /// Takes the result for a run; reports a failure, if there are several runs.
    pub(crate) fn take<T>(&mut self, name: impl Display, result: Result<T>) -> Option<T> {
        match result {
            Ok(done) => Some(done),
            Err(error) => {
                if self.count > 1 {
                    ui::note(format!("{name}:"));
                    ui::error(&error);
                }
                self.failed.push(error);
                None
            }
        }
    }

    /// The error of the command: the only failure, or the number of failures.
    pub(crate) fn result(self) -> Result<()> {
        let (number, count) = (self.failed.len(), self.count);
        match self.failed.into_iter().next() {
            None => Ok(()),
            Some(only) if count == 1 => Err(only),
            Some(first) => {
                let message = format!("{number} of {count} runs failed");
                Err(Error::new(first.kind(), message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_at_commas_but_not_in_braces() {
        assert_eq!(split("a-1, b-*"), ["a-1", "b-*"]);
        assert_eq!(split("{a,b}-*"), ["{a,b}-*"]);
        assert_eq!(split("last"), ["last"]);
    }

    #[test]
    fn the_form_of_the_output_does_not_depend_on_the_number_of_matches() {
        let several = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            are_several(&words)
        };
        for one in [["last"], ["digits-x7k2p"], ["dig"]] {
            assert!(!several(&one), "{one:?}");
        }
        for words in [&["a", "b"][..], &["a,b"], &["a-*"], &["a-?"], &["{a,b}"]] {
            assert!(several(words), "{words:?}");
        }
    }
}
