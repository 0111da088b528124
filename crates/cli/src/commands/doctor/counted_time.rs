//! The time as it is counted: it never goes back, so that a clock that was ahead once leaves it ahead.

use store::keeping::CountedTime;

use super::{Finding, ask};
use crate::context::Context;
use crate::failure::CommandResult;
use crate::moment;
use crate::owner::RequestPath;
use crate::reading::CommandLine;

/// How far it may be ahead of the machine's clock, in microseconds.
const AHEAD_MICROS: i64 = 60_000_000;

/// What is wrong with it, if anything is.
pub(super) fn check(context: &Context) -> Option<Finding> {
    match ask("/owner/time", context) {
        Ok(time) => finding(time, &context.command("doctor")),
        Err(failure) => {
            let remedy = "do what is said above";
            Some(Finding::from_failure("time", &failure, remedy))
        }
    }
}

fn finding(time: CountedTime, line: &CommandLine) -> Option<Finding> {
    if time.was_lost {
        let message = format!(
            "latest.time, which keeps the latest time that was seen, was missing; time goes on from the last change, so a grant \
             that ended after it may live again. It is counted as {}, and this machine says {}",
            shown(time.counted),
            shown(time.machine)
        );
        let reset = line.clone().flag("reset-clock");
        let remedy = format!(
            "set the clock of this machine if it is wrong, revoke what must not live (`pdpp grants`), then: {reset}"
        );
        return Some(Finding::failed("time", message, remedy));
    }
    let ahead = time.ahead();
    (ahead > AHEAD_MICROS).then(|| {
        let message = format!(
            "it was {} here already, but this machine says {}; grants end by the later one",
            shown(time.counted),
            shown(time.machine)
        );
        let reset = line.clone().flag("reset-clock");
        let remedy =
            format!("set the clock of this machine; if it is right, and was ahead before: {reset}");
        Finding::failed("time", message, remedy)
    })
}

/// Counts from the machine's clock, and says what that means.
pub(super) fn reset(context: &Context) -> CommandResult {
    let owner = context.owner("pdpp doctor")?;
    let before: CountedTime = owner.post(&RequestPath::new("/owner/time"), &())?;
    context.output.note(&format!(
        "Time was counted as {}, and is counted as {} from now on. What had expired by the former and not by the latter lives again.",
        shown(before.counted),
        shown(before.machine)
    ));
    Ok(())
}

fn shown(time: contract::time::Instant) -> String {
    moment::to_local_seconds(&time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::time::Instant;

    #[test]
    fn a_time_that_is_ahead_is_told_with_both_remedies() {
        // TR-41: `doctor` says how time is counted anew.
        let at = |counted: i64| CountedTime {
            counted: Instant(counted),
            machine: Instant(0),
            was_lost: false,
        };
        assert!(finding(at(AHEAD_MICROS), &CommandLine::new("doctor")).is_none());
        let told = finding(at(AHEAD_MICROS + 1), &CommandLine::new("doctor")).unwrap();
        let remedy = told.remedy.unwrap();
        assert!(
            !told.ok && remedy.contains("pdpp doctor --reset-clock"),
            "{remedy}"
        );
    }
}
