//! What a person at a terminal sees: colour, a pager for what is longer than the screen, and lines that end where it does.

use std::fs::{self, File, OpenOptions};
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::time::Duration;

use crate::harness::{Home, lines, signal};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

/// A screen of this size, and what the environment says.
struct Screen<'a> {
    rows: u16,
    columns: u16,
    env: &'a [(&'a str, &'a str)],
}

const PLAIN: (&str, &str) = ("NO_COLOR", "1");
const WIDE: Screen<'_> = Screen {
    rows: 200,
    columns: 100,
    env: &[],
};
const SMALL: Screen<'_> = Screen {
    rows: 24,
    columns: 80,
    env: &[],
};

/// A terminal: our side of it, and that of the program.
fn terminal() -> (OwnedFd, File) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let theirs = OpenOptions::new()
        .read(true)
        .write(true)
        .open(name.to_str().unwrap())
        .unwrap();
    (ours, theirs)
}

impl Screen<'_> {
    /// Runs a command in front of it; gives what it shows.
    fn shows(&self, home: &Home, line: &str) -> String {
        let (ours, theirs) = terminal();
        let size = Winsize {
            ws_row: self.rows,
            ws_col: self.columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&theirs, size).unwrap();
        let mut command = home.command(line);
        command
            .stdin(theirs.try_clone().unwrap())
            .stdout(theirs)
            .stderr(Stdio::null())
            .env("TERM", "xterm")
            .env_remove("NO_COLOR")
            .env_remove("CLICOLOR_FORCE")
            .env_remove("PAGER")
            .envs(self.env.iter().copied());
        let mut child = command.spawn().unwrap();
        // Nobody but the program holds its side, so that its end is seen.
        drop(command);
        let reading = std::thread::spawn(move || {
            let (mut ours, mut seen) = (File::from(ours), Vec::new());
            let mut part = [0; 4096];
            // A terminal whose other side is gone is an error here.
            while let Ok(read) = ours.read(&mut part) {
                seen.extend_from_slice(&part[..read]);
            }
            seen
        });
        assert!(child.wait().unwrap().success());
        String::from_utf8(reading.join().unwrap())
            .unwrap()
            .replace("\r\n", "\n")
    }
}

/// A home with messages, one of them with a long text and one in another script.
fn home() -> Home {
    let home = Home::with_mail();
    let text = "the quay is long and the tide takes its time; ".repeat(4);
    let messages = format!(
        "{}{}",
        format_args!(
            "{{\"key\":\"a\",\"emitted_at\":\"2026-03-05T06:00:00Z\",\"data\":{{\"id\":\"a\",\"subject\":\"\u{6771}\u{4eac}\u{51fa}\u{5f35}\u{306e}\u{4ef6}\",\"body\":\"{text}\"}}}}\n"
        ),
        lines(40, |n| format!(
            "{{\"id\":\"n{n}\",\"subject\":\"letter {n}\"}}\n"
        ))
    );
    home.import_messages(&messages).succeeds();
    home
}

#[test]
fn colour_is_for_terminals_and_for_those_who_want_it() {
    let home = home();
    let search = "search quay";
    let coloured = WIDE.shows(&home, search);
    assert!(coloured.contains("\u{1b}[1;33mquay\u{1b}[0m"), "{coloured}");
    assert!(coloured.contains("\u{1b}[36mpdpp fetch mail-work/messages:a\u{1b}[0m"));
    for (name, value) in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let env = [(name, value)];
        let plain = Screen { env: &env, ..WIDE }.shows(&home, search);
        assert!(
            plain.contains("[quay]") && !plain.contains('\u{1b}'),
            "{plain}"
        );
    }
    // Elsewhere only where it is asked for, and a no wins.
    for (env, expected) in [
        (&[][..], false),
        (&[("CLICOLOR_FORCE", "1")], true),
        (&[("CLICOLOR_FORCE", "0")], false),
        (&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false),
    ] {
        let mut command = home.command(search);
        command.env_remove("NO_COLOR").envs(env.iter().copied());
        let shown = String::from_utf8(command.output().unwrap().stdout).unwrap();
        assert_eq!(shown.contains('\u{1b}'), expected, "{env:?}");
    }
}

#[test]
fn what_is_longer_than_the_screen_goes_through_the_pager() {
    let home = home();
    let file = home.path("seen");
    let pager = format!("cat > '{}'", file.display());
    let env = [("PAGER", pager.as_str()), PLAIN];
    let small = Screen { env: &env, ..SMALL };
    assert_eq!(small.shows(&home, "query messages --fields subject"), "");
    let seen = fs::read_to_string(&file).unwrap();
    assert_eq!(records(&seen), 25);
    let last = seen.trim_end().lines().last().unwrap();
    assert!(last.contains("--cursor"), "{seen}");

    // What fits is not paged, and neither is what a program reads.
    fs::remove_file(&file).unwrap();
    let short = small.shows(&home, "query messages --limit 1");
    assert!(short.contains("1 record; more follow:"), "{short}");
    let json = small.shows(&home, "query messages --json");
    assert!(json.starts_with("{\"object\":\"list\""), "{json}");
    assert!(!file.exists());
    let help = Screen { rows: 20, ..small }.shows(&home, "help");
    assert_eq!(help, "");
    assert!(fs::read_to_string(&file).unwrap().contains("First steps:"));
}

fn records(page: &str) -> usize {
    let lines = page.lines();
    lines.filter(|line| line.starts_with("mail-work/")).count()
}

#[test]
fn a_pager_that_is_off_or_broken_loses_nothing() {
    let home = home();
    for pager in ["", "cat", "no-such-pager-anywhere", "exit 1"] {
        let env = [("PAGER", pager), PLAIN];
        let small = Screen { env: &env, ..SMALL };
        let shown = small.shows(&home, "query messages --fields subject");
        assert_eq!(records(&shown), 25, "{pager}: {shown}");
    }
}

#[test]
fn lines_end_where_the_screen_does_and_commands_stay_whole() {
    let home = home();
    let narrow = Screen {
        columns: 50,
        env: &[PLAIN],
        ..WIDE
    };
    let shown = narrow.shows(&home, "search quay");
    assert_eq!(
        shown,
        "\u{6771}\u{4eac}\u{51fa}\u{5f35}\u{306e}\u{4ef6}
  Work  (emitted or imported 2026-03-05 08:00:00 +02:00)
  body: the [quay] is long and the tide takes its
    time; the [quay] is long and the tide takes
    its time; the [quay] is long and the tide
    takes its time; the [quay] is long and …
    pdpp read mail-work/messages:a body --offset-chars 0 --limit-chars 4096
  pdpp fetch mail-work/messages:a

1 hit.
"
    );
    for line in [
        "fetch messages:a",
        "schema --stream messages",
        "schema",
        "connections",
        "grants",
    ] {
        let screen = Screen {
            columns: 60,
            ..narrow
        };
        let shown = screen.shows(&home, line);
        for line in shown.lines().filter(|line| !line.contains("pdpp ")) {
            let wide = line.chars().filter(|c| *c > '\u{2e80}').count();
            assert!(line.chars().count() + wide <= 60, "{line}");
        }
    }
}

/// A terminal that shows nothing of what is typed is of little use to whoever changed their mind.
#[test]
fn whoever_leaves_the_prompt_of_a_password_sees_again_what_is_typed() {
    let home = Home::new();
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let (_ours, theirs) = terminal();
        let echoes = || {
            let modes = tcgetattr(&theirs).unwrap().local_modes;
            modes.contains(LocalModes::ECHO)
        };
        assert!(echoes());
        let mut command = home.command("owner-password");
        command
            .stdin(theirs.try_clone().unwrap())
            .stderr(theirs.try_clone().unwrap())
            .env_remove("PDPP_OWNER_PASSWORD");
        let mut child = command.spawn().unwrap();
        let mut looks = 0;
        while echoes() && looks < 6000 {
            std::thread::sleep(Duration::from_millis(10));
            looks += 1;
        }
        signal(child.id(), name);
        assert_eq!(child.wait().unwrap().code(), Some(code));
        assert!(looks > 0 && looks < 6000 && echoes());
    }
}

#[test]
fn the_link_that_signs_in_is_shown_to_people_and_kept_nowhere() {
    // TR-09
    let home = home();
    for at_stderr in [true, false] {
        let (ours, theirs) = terminal();
        let log = home.path("serve.log");
        let kept = File::create(&log).unwrap();
        let mut command = home.command("serve --listen 127.0.0.1:0");
        if at_stderr {
            command.stdout(kept).stderr(theirs);
        } else {
            command.stdout(theirs).stderr(kept);
        }
        let mut child = command.spawn().unwrap();
        drop(command);
        let (send, receive) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let (mut ours, mut bytes) = (File::from(ours), [0; 4096]);
            // Ends when the program does, or nobody wants to know any more.
            while let Ok(read) = ours.read(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..read]).into_owned();
                if send.send(text).is_err() {
                    break;
                }
            }
        });
        let mut shown = String::new();
        while !shown.contains("/sign-in?code=pdpp_signin_") {
            let more = receive.recv_timeout(Duration::from_secs(20));
            shown.push_str(&more.unwrap_or_else(|_| panic!("no link in {shown:?}")));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let kept = fs::read_to_string(&log).unwrap();
        assert!(!kept.contains("pdpp_signin_"), "{kept}");
    }
}
