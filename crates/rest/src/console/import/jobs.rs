//! Work on uploads that may take long: it goes on without the browser, and says how far it is.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::report::ReportRow;
use super::{Reviewed, title};
use crate::console::format::{format_count, format_number};
use crate::console::import::staged::Group;
use crate::owner::wire::ImportProgress;
use crate::service::Service;

/// How many jobs that came to their end are remembered.
const REMEMBERED: usize = 20;
/// How long a browser waits for what is done soon, instead of being shown how far it is.
const SOON: Duration = Duration::from_millis(700);

/// The jobs with the id of their upload, in the order in which they began.
#[derive(Default)]
pub(crate) struct ImportJobs(Mutex<Vec<(String, Arc<Job>)>>);

pub(super) struct Job {
    pub(super) writes: bool,
    state: Mutex<State>,
    is_over: watch::Sender<bool>,
}

#[derive(Default)]
struct State {
    groups: Vec<GroupProgress>,
    outcome: Option<Outcome>,
}

struct GroupProgress {
    title: String,
    /// The bytes of all its files.
    bytes: u64,
    reached: Option<ImportProgress>,
    is_over: bool,
}

/// How a job ended.
#[derive(Clone)]
pub(super) enum Outcome {
    Reviewed(Arc<Reviewed>),
    Imported(Arc<Vec<ReportRow>>),
    Failed(String),
}

/// How far the files of one kind are.
pub(super) struct ProgressRow {
    pub(super) title: String,
    pub(super) said: String,
    /// In percent; nothing while that is not known.
    pub(super) percent: Option<u64>,
}

impl ImportJobs {
    fn all(&self) -> MutexGuard<'_, Vec<(String, Arc<Job>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn find(&self, upload: &str) -> Option<Arc<Job>> {
        let all = self.all();
        let job = all.iter().find(|(id, _)| id == upload);
        job.map(|(_, job)| Arc::clone(job))
    }

    pub(super) fn forget(&self, upload: &str) {
        self.all().retain(|(id, _)| id != upload);
    }

    /// Uploads on which something runs, and whether it writes.
    pub(super) fn running(&self) -> Vec<(String, bool)> {
        let all = self.all();
        let running = all.iter().filter(|(_, job)| job.outcome().is_none());
        running
            .map(|(upload, job)| (upload.clone(), job.writes))
            .collect()
    }

    /// Starts work on an upload, unless something runs on it already, and waits a moment for its end.
    pub(super) async fn run(
        service: &Arc<Service>,
        upload: &str,
        writes: bool,
        work: impl FnOnce(&Service, &Job) -> Outcome + Send + 'static,
    ) {
        let job = {
            let mut all = service.imports.all();
            let running = all
                .iter()
                .find(|(id, job)| id == upload && job.outcome().is_none());
            if let Some((_, job)) = running {
                Arc::clone(job)
            } else {
                let job = Arc::new(Job::new(writes));
                all.retain(|(id, _)| id != upload);
                all.push((upload.to_owned(), Arc::clone(&job)));
                drop_oldest(&mut all);
                start(service, &job, work);
                job
            }
        };
        let mut is_over = job.is_over.subscribe();
        // What takes longer is shown as it goes on.
        let _ = tokio::time::timeout(SOON, is_over.wait_for(|is_over| *is_over)).await;
    }
}

fn drop_oldest(all: &mut Vec<(String, Arc<Job>)>) {
    let is_over = |job: &Job| job.outcome().is_some();
    let over = all.iter().filter(|(_, job)| is_over(job)).count();
    let mut many = over.saturating_sub(REMEMBERED);
    all.retain(|(_, job)| {
        let drops = many > 0 && is_over(job);
        many -= usize::from(drops);
        !drops
    });
}

fn start(
    service: &Arc<Service>,
    job: &Arc<Job>,
    work: impl FnOnce(&Service, &Job) -> Outcome + Send + 'static,
) {
    let (service, job) = (Arc::clone(service), Arc::clone(job));
    tokio::task::spawn_blocking(move || {
        let ending = Ending(&job);
        let outcome = work(&service, &job);
        ending.0.state().outcome = Some(outcome);
    });
}

/// Ends a job also when its work panics.
struct Ending<'a>(&'a Job);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let failed =
            "something failed here; what was written is kept, and the upload can be imported again";
        let mut state = self.0.state();
        state
            .outcome
            .get_or_insert_with(|| Outcome::Failed(failed.to_owned()));
        drop(state);
        self.0.is_over.send_replace(true);
    }
}

impl Job {
    fn new(writes: bool) -> Self {
        Self {
            writes,
            state: Mutex::default(),
            is_over: watch::Sender::new(false),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn outcome(&self) -> Option<Outcome> {
        self.state().outcome.clone()
    }

    /// Says what there is to do.
    pub(super) fn begin(&self, groups: &[Group]) {
        let row = |group: &Group| GroupProgress {
            title: title(group),
            bytes: group.files.iter().map(|file| file.bytes).sum(),
            reached: None,
            is_over: false,
        };
        self.state().groups = groups.iter().map(row).collect();
    }

    pub(super) fn reach(&self, group: usize, reached: ImportProgress) {
        if let Some(group) = self.state().groups.get_mut(group) {
            group.reached = Some(reached);
        }
    }

    pub(super) fn end(&self, group: usize) {
        if let Some(group) = self.state().groups.get_mut(group) {
            group.is_over = true;
        }
    }

    pub(super) fn progress(&self) -> Vec<ProgressRow> {
        self.state().groups.iter().map(ProgressRow::new).collect()
    }
}

impl ProgressRow {
    fn new(group: &GroupProgress) -> Self {
        let read = group.reached.map_or(0, |reached| reached.read);
        let records = format_count(read, "record");
        let percent = |reached: ImportProgress| {
            let share = reached.bytes.saturating_mul(100).checked_div(group.bytes);
            // The last part is over only when it is said to be.
            share.map(|share| share.min(99))
        };
        let (said, percent) = match group.reached {
            _ if group.is_over => (format!("{records}, done"), Some(100)),
            Some(reached) if reached.indexing => {
                (format!("{records} are here, and are being indexed"), None)
            }
            Some(reached) => {
                let percent = percent(reached);
                let share = percent
                    .map_or_else(String::new, |share| format!(", {} %", format_number(share)));
                (format!("{records}{share}"), percent)
            }
            None => ("waits".to_owned(), Some(0)),
        };
        Self {
            title: group.title.clone(),
            said,
            percent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_jobs_that_began_first_are_forgotten_first() {
        let mut all = Vec::new();
        for number in (0..REMEMBERED + 3).rev() {
            let job = Job::new(true);
            // One that still runs is kept, however old it is.
            let is_over = number != REMEMBERED + 2;
            job.state().outcome = is_over.then(|| Outcome::Failed(String::new()));
            all.push((format!("{number:02}"), Arc::new(job)));
        }
        drop_oldest(&mut all);
        let kept: Vec<&str> = all.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(kept.len(), REMEMBERED + 1);
        assert_eq!((kept[0], kept[1], kept[REMEMBERED]), ("22", "19", "00"));
    }

    #[test]
    fn progress_is_said_in_words() {
        let row = |reached: Option<ImportProgress>, is_over| {
            ProgressRow::new(&GroupProgress {
                title: "Mail".to_owned(),
                bytes: 1_000,
                reached,
                is_over,
            })
        };
        let at = |read, bytes, indexing| {
            Some(ImportProgress {
                read,
                bytes,
                indexing,
            })
        };
        assert_eq!(row(None, false).said, "waits");
        let half = row(at(1_200, 500, false), false);
        assert_eq!(
            (half.said.as_str(), half.percent),
            ("1\u{202f}200 records, 50 %", Some(50))
        );
        assert_eq!(row(at(9, 1_000, false), false).percent, Some(99));
        assert_eq!(row(at(9, 0, true), false).percent, None);
        assert_eq!(row(at(9, 1_000, false), true).said, "9 records, done");
    }
}
