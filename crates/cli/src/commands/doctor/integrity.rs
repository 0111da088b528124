//! What is stored, held against what was written: damage, and what to do about it.

use indicatif::{HumanBytes, HumanCount};
use rest::owner::wire::Accepted;
use store::inspection::{Damage, Inspection, SharedTraces};
use store::keeping::Grown;

use super::{Finding, ask, local};
use crate::context::Context;
use crate::failure::{CommandResult, Failure};
use crate::moment;
use crate::output::{counted, visible};
use crate::owner::RequestPath;
use crate::reading::CommandLine;

const RESTORE: &str = "restore a backup, see `pdpp restore --help`; keep a copy of the folder as it is until that is done";
const MEND: &str =
    "import the record again, which mends it; else restore a backup, see `pdpp restore --help`";
const SEND_AGAIN: &str = "import the files again that the blobs came from, or restore a backup, see `pdpp restore --help`";

/// What is wrong; if everything was read, also what is well.
pub(super) fn check(context: &Context, thorough: bool) -> Vec<Finding> {
    match inspect(context, thorough) {
        Ok(inspected) => {
            let mut found = findings(&inspected, thorough, &context.command("doctor"));
            found.push(grown(context));
            found
        }
        Err(failure) => {
            // The message of a disk that fails says what to do; nothing is known to be damaged.
            let remedy = if failure.to_string().contains("the disk failed") {
                "do what is said there"
            } else {
                "restore a backup where something is damaged, see `pdpp restore --help`"
            };
            vec![Finding::from_failure(
                "stored",
                &failure,
                &local::remedy(context, remedy),
            )]
        }
    }
}

/// Takes a store that went back in time as it is.
pub(super) fn accept_rollback(context: &Context) -> CommandResult {
    let owner = context.owner("pdpp doctor")?;
    let accepted: Accepted = owner.post(&RequestPath::new("/owner/rollback"), &())?;
    context.output.note(&match accepted.rolled_back {
        Some(rolled_back) => format!("Accepted: {}.", visible(&rolled_back)),
        None => "Nothing to accept: the store did not go back in time.".to_owned(),
    });
    Ok(())
}

fn inspect(context: &Context, thorough: bool) -> CommandResult<Inspection> {
    let owner = context.owner("pdpp doctor")?;
    let target = RequestPath::new("/owner/inspection");
    let target = target.param("thorough", if thorough { "true" } else { "false" });
    owner.get(&target).map_err(Failure::from)
}

fn findings(inspected: &Inspection, thorough: bool, line: &CommandLine) -> Vec<Finding> {
    let mut findings = Vec::new();
    let records = format!(
        "{} can be read, and the database is whole",
        HumanCount(inspected.records)
    );
    let blobs = format!("{} are what their names say", HumanCount(inspected.blobs));
    let index = "its files are as they were written".to_owned();
    let rebuild = line.another("index rebuild");
    let rebuild = format!("derive it anew with `{rebuild}`; the records are not affected");
    for (check, damaged, well, remedy) in [
        ("records", &inspected.damaged_records, records, RESTORE),
        ("blobs", &inspected.damaged_blobs, blobs, SEND_AGAIN),
        ("index", &inspected.damaged_index, index, &rebuild),
    ] {
        findings.extend(damaged.iter().map(|one| {
            // Where the database itself is whole, so are all other records.
            let remedy = if is_one_record(one) { MEND } else { remedy };
            Finding::failed(check, in_words(one), remedy)
        }));
        if damaged.is_empty() && thorough {
            findings.push(Finding::ok(check, well));
        }
    }
    if let Some(rolled_back) = &inspected.rolled_back {
        findings.push(Finding::failed(
            "history",
            format!("{}; no client is answered", visible(rolled_back)),
            format!(
                "look at `{}` and revoke what must not stand, import again what is missing, or restore a backup; then `{}`",
                line.another("grants"),
                line.another("doctor").flag("accept-rollback")
            ),
        ));
    }
    if let Some(detail) = &inspected.unmarked {
        findings.push(Finding::failed(
            "history",
            format!(
                "how far the data has come cannot be noted outside it: {}",
                visible(detail)
            ),
            "make room, or make the folder writable; until then a lost log would not be noticed",
        ));
    }
    findings.extend(writing(inspected));
    findings.extend(erased(inspected, line));
    findings
}

/// The steps of an erasure that are not done: what was erased and may still be on a disk of this machine, or of nodes and what they
/// share. Last, what nobody here can see.
fn erased(inspected: &Inspection, line: &CommandLine) -> Vec<Finding> {
    let SharedTraces { blobs, copies } = inspected.traces_in;
    let open = |place: &str, remedy: String| {
        let message = format!("something was erased, but bytes of it may still be {place}");
        Finding::failed("erased", message, remedy)
    };
    let soon = || {
        "a node that runs removes it within seconds; where it does not, see in its log why the place of blobs refuses".to_owned()
    };
    let mut steps = Vec::new();
    if blobs > 0 {
        let place = format!("in {} that nodes share", counted(blobs, "blob", "blobs"));
        steps.push(open(&place, soon()));
    }
    if copies > 0 {
        let place = format!("in {} of the index", counted(copies, "copy", "copies"));
        steps.push(open(&place, soon()));
    }
    for node in &inspected.traces_on {
        let forget = line.another("nodes forget").argument(node);
        steps.push(open(
            &format!("on the disk of node {}", visible(node)),
            format!("start that node; or where its disk is gone: {forget}"),
        ));
    }
    if inspected.traces_left && steps.is_empty() {
        let remedy = format!(
            "{}, when no backup is being made and there are {} of room",
            line.another("purge"),
            HumanBytes(inspected.room_to_erase)
        );
        steps.push(open("on the disk", remedy));
    }
    if !inspected.traces_in_tables.is_empty() {
        let tables = inspected.traces_in_tables.join(", ");
        steps.push(open(
            &format!("in old pages of the tables {tables}"),
            format!("in the database: VACUUM FULL {tables}; nobody reads a table meanwhile"),
        ));
    }
    if let Some(at) = inspected.erased_at {
        let at = moment::to_local_seconds(&at.to_string());
        steps.push(Finding::ok(
            "erased",
            format!("the rows are deleted; the log and the backups of the database from before {at} may hold them, which is not seen from here"),
        ));
    }
    steps
}

/// Whether it can be written, and what waits until it can.
fn writing(inspected: &Inspection) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(detail) = &inspected.unwritable {
        findings.push(Finding::failed(
            "writing",
            format!(
                "a change was tried and could not be written: {}",
                visible(detail)
            ),
            "do what is said there; reads go on for as long as they can be logged",
        ));
    }
    if inspected.waiting > 0 {
        findings.push(Finding::failed(
            "writing",
            format!(
                "{} disclosures are on disk, but not in the log yet",
                HumanCount(inspected.waiting)
            ),
            "make room; they are taken into the log by themselves",
        ));
    }
    if inspected.ended_in_memory > 0 {
        findings.push(Finding::failed(
            "grants",
            format!(
                "{} revocations hold for the running server and could not be written: the next start would undo them",
                HumanCount(inspected.ended_in_memory)
            ),
            "make room before you stop the server; they are written by themselves then",
        ));
    }
    findings
}

fn grown(context: &Context) -> Finding {
    match ask::<Grown>("/owner/grown", context) {
        Ok(grown) => Finding::ok(
            "history",
            format!(
                "disclosure log: {}, {}; replaced versions: {}, {}",
                counted(grown.log_entries, "entry", "entries"),
                HumanBytes(grown.log_bytes),
                HumanCount(grown.versions),
                HumanBytes(grown.version_bytes)
            ),
        ),
        Err(failure) => Finding::from_failure("history", &failure, "do what is said above"),
    }
}

fn is_one_record(damaged: &Damage) -> bool {
    damaged.detail.starts_with("record '")
}

fn in_words(damaged: &Damage) -> String {
    let path = damaged.path.display().to_string();
    format!("{}: {}", visible(&path), visible(&damaged.detail))
}

#[cfg(test)]
mod tests {
    use contract::time::Instant;

    use super::*;

    fn whole() -> Inspection {
        Inspection {
            records: 1_234,
            blobs: 2,
            ..Inspection::default()
        }
    }

    #[test]
    fn what_is_well_is_told_only_when_everything_was_read() {
        assert!(findings(&whole(), false, &CommandLine::new("doctor")).is_empty());
        let told = findings(&whole(), true, &CommandLine::new("doctor"));
        assert!(told.iter().all(|finding| finding.ok));
        assert_eq!(
            told[0].message,
            "1,234 can be read, and the database is whole"
        );
        assert_eq!(told.len(), 3);
    }

    #[test]
    fn one_damaged_record_is_mended_by_importing_it_and_a_damaged_database_by_a_backup() {
        // TR-35: the step helps.
        for (detail, step) in [
            (
                "record 'a' of mail/messages is not what was written, row 1 of records",
                "import the record again",
            ),
            ("database disk image is malformed", "restore a backup"),
        ] {
            let damaged = Damage {
                path: "records.db".into(),
                detail: detail.to_owned(),
            };
            let inspected = Inspection {
                damaged_records: vec![damaged],
                ..whole()
            };
            let told = findings(&inspected, true, &CommandLine::new("doctor"));
            let remedy = told[0].remedy.as_deref().unwrap();
            assert!(remedy.starts_with(step), "{remedy}");
        }
    }

    #[test]
    fn traces_of_what_was_erased_are_told_with_the_remedy() {
        let left = Inspection {
            traces_left: true,
            ..whole()
        };
        let told = findings(&left, false, &CommandLine::new("doctor"));
        assert!(!told[0].ok && told[0].check == "erased");
        let remedy = told[0].remedy.as_deref();
        assert!(remedy.is_some_and(|remedy| remedy.starts_with("pdpp purge")));
        let away = Inspection {
            traces_on: vec!["b".to_owned()],
            ..left.clone()
        };
        let told = findings(&away, false, &CommandLine::new("doctor"));
        assert!(told[0].message.ends_with("node b"));
        let remedy = told[0].remedy.as_deref();
        assert!(remedy.is_some_and(|remedy| remedy.ends_with("pdpp nodes forget b")));
        let shared = Inspection {
            traces_in: SharedTraces {
                blobs: 2,
                copies: 1,
            },
            ..left
        };
        let told = findings(&shared, false, &CommandLine::new("doctor"));
        let ends = |at: usize, held: &str| told[at].message.ends_with(held);
        assert!(ends(0, "in 2 blobs that nodes share") && ends(1, "in 1 copy of the index"));
        let database = Inspection {
            traces_in_tables: vec!["records_1".to_owned(), "versions".to_owned()],
            erased_at: Some(Instant(0)),
            ..whole()
        };
        let told = findings(&database, false, &CommandLine::new("doctor"));
        let remedy = told[0].remedy.as_deref().unwrap();
        assert!(
            remedy.contains("VACUUM FULL records_1, versions"),
            "{remedy}"
        );
        assert!(
            told[1].ok
                && told[1]
                    .message
                    .contains("backups of the database from before")
        );
    }
}
