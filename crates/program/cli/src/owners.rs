//! Runs of several users: the selection of runs by the words of a command, and the question before
//! a command acts on a run of another user.

use clap::Args;
use longshore::{
    client::Cluster,
    launcher::{
        Owner, Ownership, RunSummary,
        runs::{self, RunsError, Users},
    },
};

use crate::{
    error::{Error, Kind, Result},
    ui,
};

/// The maximum number of runs in a question or a note.
const NAMED: usize = 20;

/// The argument of commands that act on runs.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct OwnerArgs {
    /// Act on runs of other users, too, without confirmation
    #[arg(long)]
    pub(crate) all_users: bool,
}

impl OwnerArgs {
    /// The access of a command that does this with runs, as in `cancel`.
    pub(crate) fn act(self, verb: &'static str) -> Access {
        Access::Act {
            verb,
            users: match self.all_users {
                true => Users::All,
                false => Users::Mine,
            },
        }
    }
}

/// The access of a command to the runs that it selects.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Access {
    /// The command reads the runs. Runs of other users have to be named in full.
    Read,
    /// The command changes the runs or their tasks. Runs of other users have to be confirmed.
    Act {
        /// The name of the action, as in `cancel`.
        verb: &'static str,
        /// The users whose runs it changes without a question.
        users: Users,
    },
}

impl Access {
    /// The users whose runs prefixes, patterns and `last` may select.
    pub(crate) fn users(self) -> Users {
        match self {
            Self::Read => Users::Mine,
            Self::Act { users, .. } => users,
        }
    }
}

/// Finds a run, or the last run that a schedule has created. Asks if the run belongs to another
/// user.
pub(crate) async fn find_made(
    cluster: &Cluster,
    namespace: &str,
    word: &str,
    access: Access,
) -> Result<RunSummary> {
    let all = runs::list(cluster, Some(namespace)).await?;
    let me = runs::whose(cluster, &all, &[word], access.users()).await?;
    let found = runs::pick_made(&all, namespace, word, me.as_ref())?;
    allow(cluster, &[found], access).await?;
    Ok(found.clone())
}

/// Prints that runs of other users are skipped.
pub(crate) fn note_left(left: &[&RunSummary]) {
    if left.is_empty() {
        return;
    }
    let count = ui::count(left.len() as u64, "run");
    let names = left.iter().take(NAMED).map(|run| run.run.name.as_str());
    let names: Vec<&str> = names.collect();
    let more = match left.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    ui::note(format!(
        "{count} of other users left out: {}{more}; --all-users includes them",
        names.join(", ")
    ));
}

/// A run or a pod of a run, with the owner of the run.
#[derive(Debug, Clone)]
pub(crate) struct Owned {
    pub(crate) name: String,
    pub(crate) owner: Option<Owner>,
}

impl From<&RunSummary> for Owned {
    fn from(run: &RunSummary) -> Self {
        Self {
            name: run.run.name.to_string(),
            owner: run.owner.clone(),
        }
    }
}

/// Asks before an action on runs of other users. Without a terminal, refuses the action.
pub(crate) async fn allow(cluster: &Cluster, chosen: &[&RunSummary], access: Access) -> Result<()> {
    let chosen: Vec<Owned> = chosen.iter().map(|run| Owned::from(*run)).collect();
    allow_owned(cluster, &chosen, access).await
}

/// Like [`allow`], for runs whose owners alone are known.
pub(crate) async fn allow_owned(cluster: &Cluster, chosen: &[Owned], access: Access) -> Result<()> {
    let Access::Act {
        verb,
        users: Users::Mine,
    } = access
    else {
        return Ok(());
    };
    if chosen.is_empty() {
        return Ok(());
    }
    let me = Owner::current(cluster).await?;
    let is_others = |run: &&Owned| me.ownership(run.owner.as_ref()) != Ownership::Own;
    let others: Vec<&Owned> = chosen.iter().filter(is_others).collect();
    let Some(first) = others.first() else {
        return Ok(());
    };
    if !ui::is_interactive() {
        let reason = RunsError::NotOwn {
            name: first.name.clone(),
            owner: first.owner.clone(),
            me,
        };
        let rest = others.iter().skip(1).take(NAMED);
        let details = rest.map(|run| format!("{} belongs to {}", run.name, owner_name(run)));
        return Err(Error::from_source(Kind::Usage, &reason)
            .details(details)
            .hint(format!("add --all-users to {verb} runs of other users")));
    }
    for run in others.iter().take(NAMED) {
        ui::note(format!("  {}  of {}", run.name, owner_name(run)));
    }
    if let Some(more @ 1..) = others.len().checked_sub(NAMED) {
        ui::note(format!("  and {more} more"));
    }
    let which = match others.len() {
        1 => "this run of another user".to_owned(),
        count => format!("these {count} runs of other users"),
    };
    match ui::confirm(&format!("You are {me}. {} {which}? [y/N] ", capital(verb))).await {
        true => Ok(()),
        false => Err(Error::new(Kind::Interrupted, "nothing was changed")),
    }
}

fn owner_name(run: &Owned) -> String {
    match &run.owner {
        Some(owner) => owner.to_string(),
        None => "an unknown user".to_owned(),
    }
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}
