//! Tokens: printed where they are issued, and nowhere else.

use std::fs;
use std::process::Stdio;

use crate::harness::{Home, Ran};
use crate::world::{create, masked};

#[test]
fn an_owner_token_is_printed_once_listed_and_revoked() {
    let home = Home::new();
    let ran = home.run(&["owner-token"]).succeeds();
    assert_eq!(masked(&ran.stdout), "pdpp_owner_…\n");
    assert_eq!(
        masked(&ran.stderr),
        "Owner token tok_…: until NOW whoever holds it may do what you may. It is shown this once. End it with: pdpp grant revoke tok_…\n"
    );
    let json = home
        .run(&["owner-token", "--ttl", "30m", "--json"])
        .succeeds();
    assert_eq!(
        masked(&json.stdout),
        "{\"access_token\":\"pdpp_owner_…\",\"token_id\":\"tok_…\",\"expires_at\":\"NOW\"}\n"
    );
    assert_eq!(json.stderr, "");
    let json = json.json();
    let id = json["token_id"].as_str().unwrap();
    let listed = home.run(&["grants"]).succeeds();
    assert_eq!(listed.stdout, "");
    let line = format!("Owner token {id} is live until ");
    assert!(listed.stderr.contains(&line), "{listed:?}");
    let revoked = home.run(&["grant", "revoke", id]).succeeds();
    assert_eq!(
        masked(&revoked.stderr),
        "Revoked token tok_…. Nothing can be read under it any more.\n"
    );
    assert!(!home.run(&["grants"]).succeeds().stderr.contains(&line));
}

#[test]
fn a_token_shows_nowhere_but_where_it_was_issued() {
    let home = Home::with_mail();
    let json = create(&home, &["--connection", "mail-work", "--json"]).succeeds();
    let owner = home.run(&["owner-token"]).succeeds();
    let tokens = [
        json.json()["access_token"].as_str().unwrap().to_owned(),
        owner.stdout.trim().to_owned(),
    ];
    let json = json.json();
    let id = json["grant_id"].as_str().unwrap();
    for token in &tokens {
        for task in ["show", "revoke"] {
            home.run(&["grant", task, token]).refused(
                "error: this is a token, and the id of what it stands for is needed\nhint: `pdpp grants` lists the ids",
            );
        }
    }
    for args in [
        &["grants"][..],
        &["grants", "--json", "-v"],
        &["grants", "verify", "-v"],
        &["grant", "show", id, "-v"],
        &["grant", "show", id, "--json"],
        &["grant", "revoke", id, "-v"],
    ] {
        let ran = home.run(args).succeeds();
        for token in &tokens {
            let secret = &token[12..];
            assert!(!ran.stdout.contains(secret), "{args:?}");
            assert!(!ran.stderr.contains(secret), "{args:?}");
        }
    }
    for entry in fs::read_dir(home.data_dir()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let content = fs::read(&path).unwrap();
            for token in &tokens {
                let secret = &token.as_bytes()[12..];
                assert!(!content.windows(secret.len()).any(|bytes| bytes == secret));
            }
        }
    }
}

#[test]
fn a_token_that_cannot_be_printed_is_told_with_its_end() {
    let home = Home::with_mail();
    let full = || {
        fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap()
    };
    for args in [
        &[
            "grant",
            "create",
            "--client",
            "agent",
            "--connection",
            "mail-work",
        ][..],
        &["owner-token"],
    ] {
        let mut command = home.command(args);
        command.stdout(full()).stderr(Stdio::piped());
        let ran = Ran::new(command.output().unwrap(), home.folder());
        let told = masked(&ran.stderr);
        let prefix = if args.len() == 1 { "tok_" } else { "grt_" };
        assert_eq!(
            told,
            format!(
                "The token was issued and could not be printed. End it with: pdpp grant revoke {prefix}…\nerror: the output cannot be written: No space left on device (os error 28)\n"
            )
        );
        assert_eq!(ran.code, Some(1));
    }
}
