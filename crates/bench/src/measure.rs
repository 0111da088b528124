//! Timing, memory and sizes. Both sides of a comparison run in turns, one call each, so that
//! whatever else the machine does meets both alike.

mod figure;
mod report;
mod table;

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::BenchError;
pub use figure::{Figure, Unit};
pub use report::{Report, Tail, Target, TargetLine};
pub(crate) use table::write as write_table;

/// How often a call is repeated: until the runs or the time are used up, at least three times.
#[derive(Debug, Clone, Copy)]
pub struct Repetition {
    /// Calls before the clock starts.
    pub warm_up: usize,
    pub runs: usize,
    pub time: Duration,
    pub timed: Timed,
}

/// Which clock a call is timed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timed {
    Elapsed,
    /// Processor time of the thread, which other work on the machine hardly lengthens. For calls that never wait.
    Processor,
}

impl Timed {
    fn now(self) -> Duration {
        let clock = match self {
            Self::Elapsed => ClockId::Monotonic,
            Self::Processor => ClockId::ThreadCPUTime,
        };
        clock_gettime(clock).try_into().unwrap_or_default()
    }
}

const FEWEST_RUNS: usize = 3;

impl Default for Repetition {
    fn default() -> Self {
        Self {
            warm_up: 5,
            runs: 200,
            time: Duration::from_secs(3),
            timed: Timed::Elapsed,
        }
    }
}

/// Work to be timed. It returns how many things it found, so that unequal work is noticed.
pub type Work<'a> = dyn FnMut() -> Result<u64, BenchError> + 'a;

/// Times two pieces of work that should do the same.
pub fn compare<'w>(
    what: &str,
    repetition: Repetition,
    ours: &mut Work<'w>,
    other: &mut Work<'w>,
) -> Result<TargetLine, BenchError> {
    let mut sides = [other, ours].map(Side::new);
    for _ in 0..repetition.warm_up {
        for side in &mut sides {
            side.found = (side.work)()?;
        }
    }
    let begin = Instant::now();
    for run in 0..repetition.runs.max(FEWEST_RUNS) {
        if run >= FEWEST_RUNS && begin.elapsed() > repetition.time {
            break;
        }
        for side in &mut sides {
            side.time_once(repetition.timed)?;
        }
    }
    let [other, ours] = sides.map(Side::figure);
    Ok(TargetLine::new(what, Unit::Seconds, ours).beside(other))
}

struct Side<'a, 'b> {
    work: &'a mut Work<'b>,
    times: Vec<Duration>,
    found: u64,
}

impl<'a, 'b> Side<'a, 'b> {
    fn new(work: &'a mut Work<'b>) -> Self {
        Self {
            work,
            times: Vec::new(),
            found: 0,
        }
    }

    fn time_once(&mut self, timed: Timed) -> Result<(), BenchError> {
        let begin = timed.now();
        self.found = (self.work)()?;
        self.times.push(timed.now().saturating_sub(begin));
        Ok(())
    }

    fn figure(self) -> Figure {
        Figure {
            found: Some(self.found),
            ..Figure::from_times(self.times)
        }
    }
}

/// Anonymous memory of this process in bytes, where the system tells.
pub fn anonymous_memory() -> Option<u64> {
    memory("self", "RssAnon:")
}

/// A kind of memory of a process in bytes, where the system tells.
pub(crate) fn memory(process: &str, kind: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(kind))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kib * 1_024)
}

/// Processor time of this process with all its threads, where the system tells. Other work on the
/// machine does not lengthen it, as it does the elapsed time.
pub fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The command name in parentheses may hold spaces; user and system time are the 12th and 13th
    // fields after it, in hundredths of a second.
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let ticks = fields.split(' ').skip(11).take(2);
    let ticks: u64 = ticks.filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

/// Bytes of all files below a folder.
pub fn folder_size(folder: &Path) -> Result<u64, BenchError> {
    let mut size = 0;
    for entry in std::fs::read_dir(folder).map_err(BenchError::file(folder))? {
        let path = entry.map_err(BenchError::file(folder))?.path();
        let metadata = match path.symlink_metadata() {
            Ok(metadata) => metadata,
            // Engines delete merged files and journals while we look.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(BenchError::file(&path)(error)),
        };
        size += if metadata.is_dir() {
            folder_size(&path)?
        } else {
            metadata.len()
        };
    }
    Ok(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_run_equally_often_and_keep_what_they_found() {
        let (mut ours_calls, mut raw_calls) = (0, 0);
        let repetition = Repetition {
            warm_up: 2,
            runs: 10,
            time: Duration::from_secs(5),
            ..Repetition::default()
        };
        let measurement = compare(
            "nothing",
            repetition,
            &mut || {
                ours_calls += 1;
                Ok(7)
            },
            &mut || {
                raw_calls += 1;
                Ok(8)
            },
        )
        .unwrap();
        assert_eq!((ours_calls, raw_calls), (12, 12));
        assert_eq!(measurement.figure.found, Some(7));
        assert_eq!(measurement.beside.unwrap().runs, 10);
    }
}
