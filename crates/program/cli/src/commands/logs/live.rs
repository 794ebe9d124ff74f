//! The logs of an active run, as its tasks write them.

use jiff::Timestamp;
use longshore::{
    client::Cluster,
    launcher::{Event, Follow, FollowOptions, Run},
};

use super::{LogsArgs, Wanted};
use crate::{
    error::{Error, Kind, Result},
    log_lines::Lines,
    ui,
};

/// Follows the run, and prints new lines until it ends.
pub(super) async fn show(
    cluster: &Cluster,
    run: &Run,
    lines: Lines,
    args: &LogsArgs,
    wanted: &Wanted,
) -> Result<()> {
    // Reading logs must not stop the run.
    let options = FollowOptions {
        tail: args.tail,
        since: args
            .since
            .and_then(|since| Timestamp::now().checked_sub(since).ok()),
        stop: false,
        ..FollowOptions::default()
    };
    let failed = |error: longshore::launcher::follow::Error| match error {
        longshore::launcher::follow::Error::Cluster(error) => Error::from(error),
        other => Error::from_source(Kind::Cluster, &other),
    };
    let mut follow = Follow::start(cluster, run, options).await.map_err(failed)?;
    let mut gaps = 0_u64;
    while let Some(event) = follow.next().await {
        match event.map_err(failed)? {
            Event::Log(mut line) if wanted.has(&line.task) => {
                if let Some(time) = line.time.filter(|_| args.timestamps) {
                    // The format of Kubernetes' log timestamps.
                    line.line.insert_str(0, &format!("{time:.9} "));
                }
                ui::line(lines.show(&line));
            }
            Event::Gap(gap) if wanted.has(&gap.task) => {
                gaps += 1;
                ui::line(lines.gap(&gap));
            }
            Event::Finished(_) => break,
            _ => {}
        }
        if ui::output_closed() {
            return Ok(());
        }
    }
    match gaps {
        0 => Ok(()),
        gaps => {
            let places = ui::count(gaps, "place");
            let message = format!("lines are missing, or may be, in {places} of the log");
            Err(Error::new(Kind::Failed, message))
        }
    }
}
