//! The local data: where it is, whether there is room, whether the clock can be believed, and whether it can be searched.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::UNIX_EPOCH;

use contract::page::Meta;
use contract::time::Clock as _;
use contract::upstream::Get;
use indicatif::HumanBytes;
use rest::owner::wire::ModelState;
use serde::Deserialize;
use store::directory::OWNER_SOCKET;

use super::{Finding, ask, counted_time, integrity};
use crate::clock::SystemClock;
use crate::context::Context;
use crate::failure::CommandResult;
use crate::moment;
use crate::output::{counted, visible};
use crate::owner::{OwnerClient, RequestPath};
use crate::reading::{CommandLine, Reading};

/// With less room than this an import may not end, on a disk that has ten times as much at all.
const LEAST_BYTES: u64 = 1024 * 1024 * 1024;
/// What is needed on a disk however small it is.
const SMALLEST_BYTES: u64 = 32 * 1024 * 1024;
/// How far a clock may run behind what was written.
const LATE_MICROS: i64 = 60_000_000;

pub(super) fn check(context: &Context, thorough: bool) -> Vec<Finding> {
    let folder = &context.settings.data_dir;
    let readable = fs::metadata(folder).and_then(|_| fs::read_dir(folder).map(drop));
    if let Err(error) = readable
        && error.kind() == std::io::ErrorKind::PermissionDenied
    {
        let message = format!("{}: {error}", folder.display());
        return vec![Finding::failed("data", message, permission_remedy(folder))];
    }
    if !folder.is_dir() {
        let message = format!("there is nothing at {} yet", folder.display());
        let declare = context.command("declare").argument("FILE");
        let serve = context.command("serve").flag("demo");
        let remedy =
            format!("name another folder with --data-dir, or begin: {declare}, or {serve}");
        return vec![Finding::failed("data", message, remedy)];
    }
    let (server, hangs) = server(context);
    let mut findings = vec![data(folder), disk(folder), clock(folder), server];
    // All else would wait for it as well.
    if hangs {
        return findings;
    }
    findings.push(index(context));
    findings.extend(model(context));
    // Records that cannot be opened were told, and cannot be looked at.
    if findings.iter().all(|finding| finding.check != "records") {
        findings.extend(integrity::check(context, thorough));
        findings.extend(counted_time::check(context));
    }
    findings
}

fn data(folder: &Path) -> Finding {
    let shown = folder.display();
    match fs::metadata(folder) {
        Ok(found) if found.permissions().mode() & 0o077 != 0 => Finding::failed(
            "data",
            format!("{shown} can be looked into by other users"),
            format!("chmod 700 '{shown}'"),
        ),
        Ok(found) if !is_own(&found) => Finding::failed(
            "data",
            format!("{shown} belongs to another user"),
            permission_remedy(folder),
        ),
        Ok(_) => Finding::ok("data", format!("{shown}, for this user only")),
        Err(error) => Finding::failed(
            "data",
            format!("{shown}: {error}"),
            permission_remedy(folder),
        ),
    }
}

/// Whether this user owns a folder, or may use all of them.
fn is_own(folder: &fs::Metadata) -> bool {
    let user = rustix::process::geteuid();
    user.is_root() || folder.uid() == user.as_raw()
}

/// What to do where this user may not use a folder or what is in it.
fn permission_remedy(folder: &Path) -> String {
    format!(
        "run the command as the user who owns it (`ls -ld '{}'` shows who that is), or give this user the right to read and write all of it",
        folder.display()
    )
}

fn disk(folder: &Path) -> Finding {
    match rustix::fs::statvfs(folder) {
        Ok(disk) => room(Room::from_stat(&disk)),
        Err(error) => Finding::failed(
            "disk",
            format!("how much room there is cannot be told: {error}"),
            "see whether the disk is mounted and healthy",
        ),
    }
}

#[derive(Clone, Copy)]
struct Room {
    free: u64,
    all: u64,
}

impl Room {
    fn from_stat(disk: &rustix::fs::StatVfs) -> Self {
        Self {
            free: disk.f_bavail.saturating_mul(disk.f_frsize),
            all: disk.f_blocks.saturating_mul(disk.f_frsize),
        }
    }

    fn least(self) -> u64 {
        (self.all / 10).clamp(SMALLEST_BYTES, LEAST_BYTES)
    }
}

fn room(room: Room) -> Finding {
    let message = format!("{} free", HumanBytes(room.free));
    match room_needed(room) {
        Some(remedy) => Finding::failed("disk", message, remedy),
        None => Finding::ok("disk", message),
    }
}

/// What to do where there is too little room, and how much of it.
fn room_needed(room: Room) -> Option<String> {
    let (free, least) = (room.free, room.least());
    (free < least).then(|| {
        format!(
            "make room for {} more, or move the folder and name it with --data-dir; full disks lose nothing, but refuse imports",
            HumanBytes(least - free)
        )
    })
}

/// What to do about a failure: where the disk is full, that; else what is said.
pub(super) fn remedy(context: &Context, otherwise: &str) -> String {
    let disk = rustix::fs::statvfs(&context.settings.data_dir).ok();
    disk.and_then(|disk| room_needed(Room::from_stat(&disk)))
        .unwrap_or_else(|| otherwise.to_owned())
}

/// A clock that is behind what was written makes grants live longer and new records look old.
fn clock(folder: &Path) -> Finding {
    let now = SystemClock.now();
    let written = |entry: fs::DirEntry| {
        let changed = entry.metadata().ok()?.modified().ok()?;
        let since = changed.duration_since(UNIX_EPOCH).ok()?;
        i64::try_from(since.as_micros()).ok()
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let newest = entries.filter_map(written).max().unwrap_or(0);
    let shown = moment::to_local_seconds(&now.to_string());
    if newest > now.0.saturating_add(LATE_MICROS) {
        let message =
            format!("it is {shown} by this machine, but data was written later than that");
        return Finding::failed(
            "clock",
            message,
            "set the clock of this machine, for example by NTP",
        );
    }
    Finding::ok("clock", shown)
}

/// The server, and whether it is there and does not answer.
fn server(context: &Context) -> (Finding, bool) {
    let folder = &context.settings.data_dir;
    let path = folder.join(OWNER_SOCKET);
    let finding = match OwnerClient::is_served(folder) {
        Ok(true) => return answering(context),
        Ok(false) if path.symlink_metadata().is_ok() => Finding::failed(
            "server",
            "ended without removing its socket, so it was killed",
            format!(
                "start it again with `{}`, which clears it away",
                context.command("serve")
            ),
        ),
        Ok(false) => Finding::ok("server", "none runs; commands open the data themselves"),
        Err(failure) => Finding::from_failure(
            "server",
            &failure,
            "run the command as the user who runs `pdpp serve`",
        ),
    };
    (finding, false)
}

fn answering(context: &Context) -> (Finding, bool) {
    match ask::<serde_json::Value>("/healthz", context) {
        Ok(_) => {
            let finding = Finding::ok("server", "runs, and answers on its socket");
            (finding, false)
        }
        Err(failure) => {
            let finding = Finding::from_failure("server", &failure, "start it again");
            (finding, true)
        }
    }
}

fn index(context: &Context) -> Finding {
    #[derive(Deserialize)]
    struct Page {
        #[serde(default)]
        meta: Option<Meta>,
    }
    let line = CommandLine::new("doctor");
    let reading = match Reading::local("pdpp doctor", line, context) {
        Ok(reading) => reading,
        Err(failure) => {
            let remedy = if failure.to_string().contains(" damaged") {
                "restore a backup, see `pdpp restore --help`"
            } else {
                "do what is said, then run `pdpp doctor` again"
            };
            return Finding::from_failure("records", &failure, &self::remedy(context, remedy));
        }
    };
    let search = || -> CommandResult<Option<Meta>> {
        let question = Get::v1(["search"]).with("q", Some("pdpp"));
        let text = reading.text(question.with("limit", Some("1")))?;
        Ok(serde_json::from_str(&text)
            .ok()
            .and_then(|page: Page| page.meta))
    };
    let rebuild = context.command("index rebuild");
    match search() {
        Ok(meta) => match meta.and_then(|meta| meta.index_maintenance) {
            Some(behind) => {
                let waiting = behind.pending_scopes.unwrap_or(1);
                let are = if waiting == 1 { "is" } else { "are" };
                let waiting = counted(waiting, "stream", "streams");
                let done = done(context);
                Finding::failed(
                    "index",
                    format!(
                        "{waiting} {are} still being indexed{done}, so searches may miss records"
                    ),
                    format!("wait while `pdpp serve` runs, or finish it now with `{rebuild}`"),
                )
            }
            None => Finding::ok("index", "can be searched, and holds every record"),
        },
        Err(failure) => Finding::from_failure(
            "index",
            &failure,
            &remedy(context, &format!("derive it anew with `{rebuild}`")),
        ),
    }
}

/// Whether every record has its vectors, where there is a model.
fn model(context: &Context) -> Option<Finding> {
    if !context
        .settings
        .data_dir
        .join(store::directory::MODEL)
        .exists()
    {
        return None;
    }
    let again = context.command("model add").argument("FOLDER");
    Some(match ask::<ModelState>("/owner/model", context) {
        Ok(state) if state.embedded < state.records => {
            let waiting = counted(state.records - state.embedded, "record", "records");
            let embed = context.command("model embed");
            Finding::failed(
                "model",
                format!("{waiting} cannot be found by meaning yet"),
                format!("wait while `pdpp serve` runs, or finish it now with `{embed}`"),
            )
        }
        Ok(state) => Finding::ok(
            "model",
            format!("{}, and every record has its vectors", visible(&state.name)),
        ),
        Err(failure) => {
            Finding::from_failure("model", &failure, &format!("add it again with `{again}`"))
        }
    })
}

fn done(context: &Context) -> String {
    #[derive(Deserialize)]
    struct Ready {
        index: Progress,
    }
    #[derive(Deserialize)]
    struct Progress {
        percent: Option<u64>,
    }
    let owner = context.owner("pdpp doctor").ok();
    let ready = owner.and_then(|owner| owner.get::<Ready>(&RequestPath::new("/readyz")).ok());
    let percent = ready.and_then(|ready| ready.index.percent);
    percent.map_or(String::new(), |percent| format!(", {percent} % are done"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_is_nearly_full_is_told_with_the_remedy() {
        let large = |free| Room {
            free,
            all: 100 * LEAST_BYTES,
        };
        assert!(room(large(LEAST_BYTES)).ok);
        let full = room(large(LEAST_BYTES - 1));
        // TR-37: a full disk is told to need room, and how much.
        assert!(
            !full.ok
                && full
                    .remedy
                    .is_some_and(|remedy| remedy.starts_with("make room for 1 B more"))
        );
        // TR-33: never more than a disk can have.
        let small = Room {
            free: 0,
            all: 145 * 1024 * 1024,
        };
        let remedy = room(small).remedy.unwrap();
        assert!(
            remedy.starts_with("make room for 32.00 MiB more"),
            "{remedy}"
        );
    }
}
