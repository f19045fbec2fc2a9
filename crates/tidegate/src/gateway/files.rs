//! Collects the files that sources follow, for the page of them.

use super::sources::running::RunningSources;
use std::cmp::Reverse;
use std::time::Duration;
use tidegate_console::{
    FilesError, FilesOrder, FilesQuery, FilesReport, FollowedFile, FollowingSource, LONGEST_FILES,
    UnreadablePath,
};
use tidegate_tail::{Control, FileStatus, Order, PathFilter, StatusRequest, TailStatus};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// How long a reader may take to answer: it may be at a turn, or wait for its disk.
const PATIENCE: Duration = Duration::from_secs(5);

/// The files that `query` selects, of all sources that follow files.
///
/// # Errors
/// When the query cannot be understood, or a reader does not answer.
pub(super) async fn collect(running: &RunningSources, query: &FilesQuery) -> Result<FilesReport, FilesError> {
    let filter = PathFilter::parse(&query.pattern).map_err(|error| {
        FilesError::Query(format!("`{}` is no pattern of paths: {error}", query.pattern.escape_debug()))
    })?;
    let followers = selected(running.followers(), query.source.as_deref())?;
    let names: Vec<&str> = followers.iter().map(|(name, _)| *name).collect();
    let mut pages = Pages::of(&query.order, &names, query.limit)?;
    let mut report = FilesReport::default();
    let most_text = LONGEST_FILES / followers.len().max(1);
    for (at, (name, control)) in followers.iter().enumerate() {
        let (order, most) = pages.wanted(at, name);
        let (answer, status) = oneshot::channel();
        let request = StatusRequest { filter: filter.clone(), order, most, most_text, answer };
        control.try_send(Control::Status(request)).map_err(|_| busy(name))?;
        let status = timeout(PATIENCE, status).await.ok().and_then(Result::ok).ok_or_else(|| busy(name))?;
        pages.took(at, name, &status);
        add(name, status, &mut report);
    }
    if query.order == FilesOrder::Lag {
        report.files.sort_by_key(|file| Reverse(file.lag_bytes));
        report.files.truncate(query.limit);
    }
    report.next = pages.next;
    Ok(report)
}

type Followers = Vec<(&'static str, mpsc::Sender<Control>)>;

fn selected(mut followers: Followers, wanted: Option<&str>) -> Result<Followers, FilesError> {
    let Some(wanted) = wanted else { return Ok(followers) };
    if followers.iter().all(|(name, _)| *name != wanted) {
        let names: Vec<&str> = followers.iter().map(|(name, _)| *name).collect();
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let wanted = wanted.escape_debug();
        return Err(FilesError::Query(format!(
            "no source `{wanted}` follows files here; sources that do: {known}"
        )));
    }
    followers.retain(|(name, _)| *name == wanted);
    Ok(followers)
}

fn busy(name: &str) -> FilesError {
    FilesError::Later(format!(
        "the source `{name}` does not answer, because it is reading or being changed; try again"
    ))
}

/// The questions to the sources, one after the other, so that pages go through the files of each in turn.
struct Pages {
    /// The source at which this page begins, and its number there; `None` for the files with the most lag.
    first: Option<(usize, u32)>,
    left: usize,
    next: Option<String>,
}

impl Pages {
    fn of(order: &FilesOrder, names: &[&str], limit: usize) -> Result<Pages, FilesError> {
        let first = match order {
            FilesOrder::Lag => None,
            FilesOrder::Page(None) => Some((0, 0)),
            FilesOrder::Page(Some(place)) => {
                let place = place.split_once(':').and_then(|(name, number)| {
                    Some((names.iter().position(|known| *known == name)?, number.parse().ok()?))
                });
                Some(place.ok_or_else(|| {
                    FilesError::Query("`after` is none that an answer had as `next`".to_owned())
                })?)
            }
        };
        Ok(Pages { first, left: limit, next: None })
    }

    /// The question to the source `name` at position `at`.
    fn wanted(&mut self, at: usize, name: &str) -> (Order, usize) {
        let Some((first, number)) = self.first else { return (Order::Lag, self.left) };
        if at < first || self.next.is_some() {
            return (Order::Number(0), 0);
        }
        let number = if at == first { number } else { 0 };
        if self.left == 0 {
            self.next = Some(format!("{name}:{number}"));
        }
        (Order::Number(number), self.left)
    }

    /// A source of an earlier page was asked for its totals only: where its files would go on is of no interest.
    fn took(&mut self, at: usize, name: &str, status: &TailStatus) {
        if self.first.is_some_and(|(first, _)| at >= first) && self.next.is_none() {
            self.left = self.left.saturating_sub(status.files.len());
            self.next = status.next.map(|number| format!("{name}:{number}"));
        }
    }
}

fn add(name: &'static str, status: TailStatus, report: &mut FilesReport) {
    let TailStatus { files, matching, lag, known, held, held_bytes, untracked, unreadable, .. } = status;
    let unreadable =
        unreadable.into_iter().map(|path| UnreadablePath { path: path.path, reason: path.reason });
    report.sources.push(FollowingSource {
        name,
        known,
        matching,
        lag_bytes: lag,
        held,
        held_bytes,
        untracked,
        unreadable: unreadable.collect(),
    });
    report.files.extend(files.into_iter().map(|file| {
        let FileStatus { path, input, offset, size, lag, records, rate, state, reason } = file;
        FollowedFile {
            source: name,
            input,
            path,
            state: state.as_str(),
            offset,
            size,
            lag_bytes: lag,
            records,
            records_per_second: rate,
            reason,
        }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages go from one source to the next, and end with the last one.
    #[test]
    fn pages_go_through_all_sources() {
        let names = ["file", "kubernetes_logs"];
        let status = |files: usize, next| TailStatus {
            files: vec![
                FileStatus {
                    path: String::new(),
                    input: String::new(),
                    offset: 0,
                    size: 0,
                    lag: 0,
                    records: 0,
                    rate: 0.0,
                    state: tidegate_tail::FileState::Idle,
                    reason: None,
                };
                files
            ],
            next,
            ..TailStatus::default()
        };
        let mut first = Pages::of(&FilesOrder::Page(None), &names, 3).unwrap();
        assert_eq!(first.wanted(0, "file"), (Order::Number(0), 3));
        first.took(0, "file", &status(3, None));
        first.wanted(1, "kubernetes_logs");
        assert_eq!(first.next.as_deref(), Some("kubernetes_logs:0"));
        let mut second = Pages::of(&FilesOrder::Page(first.next), &names, 3).unwrap();
        assert_eq!(second.wanted(0, "file").1, 0);
        second.took(0, "file", &status(0, Some(0)));
        assert_eq!(second.wanted(1, "kubernetes_logs"), (Order::Number(0), 3));
        second.took(1, "kubernetes_logs", &status(3, Some(9)));
        assert_eq!(second.next.as_deref(), Some("kubernetes_logs:9"));
        assert!(Pages::of(&FilesOrder::Page(Some("other:1".to_owned())), &names, 3).is_err());
    }
}
