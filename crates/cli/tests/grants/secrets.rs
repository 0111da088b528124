//! Tokens: printed where they are issued, and nowhere else.

use std::fs::OpenOptions;
use std::path::PathBuf;
use std::process::Stdio;

use super::world::{create, masked};
use crate::harness::{Home, holding};

#[test]
fn a_token_shows_nowhere_but_where_it_was_issued() {
    let home = Home::with_mail();
    let made = create(&home, "--connection mail-work --json").succeeds();
    let owner = home.run("owner-token --ttl 30m --json").succeeds();
    assert_eq!(
        masked(&owner.stdout),
        "{\"access_token\":\"pdpp_owner_…\",\"token_id\":\"tok_…\",\"expires_at\":\"NOW\"}\n"
    );
    let tokens = [&made, &owner].map(|ran| ran.text("access_token"));
    let id = made.text("grant_id");
    for token in &tokens {
        for task in ["show", "revoke"] {
            home.run(format!("grant {task} {token}")).refused(
                "error: this is a token, and the id of what it stands for is needed\nhint: `pdpp grants` lists the ids",
            );
        }
    }
    for args in [
        "grants",
        "grants --json -v",
        "grants verify -v",
        &format!("grant show {id} -v"),
        &format!("grant show {id} --json"),
        &format!("grant revoke {id} -v"),
    ] {
        let ran = home.run(args).succeeds();
        for token in &tokens {
            ran.hides(&token[12..]);
        }
    }
    for token in &tokens {
        assert_eq!(
            holding(&home.data_dir(), &token[12..]),
            Vec::<PathBuf>::new()
        );
    }
}

#[test]
fn a_token_that_cannot_be_printed_is_told_with_its_end() {
    let home = Home::with_mail();
    for (line, prefix) in [
        ("grant create --client agent --connection mail-work", "grt_"),
        ("owner-token", "tok_"),
    ] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = home.command(line);
        command.stdout(full).stderr(Stdio::piped());
        let ran = home.ran(&mut command).exits(1);
        assert_eq!(
            masked(&ran.stderr),
            format!(
                "The token was issued and could not be printed. End it with: pdpp grant revoke {prefix}…\nerror: the output cannot be written: No space left on device (os error 28)\n"
            )
        );
    }
}
