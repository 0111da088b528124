//! Commands that are printed name the data they are about: they do what they say wherever they are run.
#![expect(clippy::unwrap_used, reason = "a step that fails is a failed test")]

mod harness;

use std::process::Command;

use harness::{Home, MAIL, Ran};

/// A home whose data is not where the environment says.
fn home() -> (Home, String) {
    let home = Home::new();
    let other = home.path("other data").to_str().unwrap().to_owned();
    let file = home.file("mail.json", MAIL);
    let at = |args: &[&str]| home.run(&[args, &["--data-dir", &other]].concat());
    at(&["declare", &file]).succeeds();
    at(&["connections", "add", "mail", "--name", "Work"]).succeeds();
    (home, other)
}

/// Runs a command as it was printed, in a shell that says nothing of where the data is.
fn typed(home: &Home, line: &str) -> Ran {
    let program = env!("CARGO_BIN_EXE_pdpp");
    let script = line.replacen("pdpp ", &format!("{program} "), 1);
    let script = script.replace('~', home.folder().to_str().unwrap());
    let mut command = Command::new("sh");
    command.args(["-c", &script]);
    command.env("PDPP_DATA_DIR", home.data_dir());
    Ran::new(command.output().unwrap(), home.folder())
}

fn after<'a>(text: &'a str, before: &str) -> &'a str {
    let (_, rest) = text.split_once(before).unwrap();
    rest.lines().next().unwrap()
}

#[test]
fn what_ends_a_token_ends_it_where_it_is() {
    let (home, other) = home();
    let at = |args: &[&str]| home.run(&[args, &["--data-dir", &other]].concat());
    let none = at(&["grants"]).succeeds().stderr;
    assert_eq!(
        none,
        "Nothing was granted yet. Grant something with: pdpp grant create --client NAME --connection ID --data-dir '~/other data'\n"
    );
    let create = ["grant", "create", "--client", "c", "--connection"];
    let granted = at(&[&create[..], &["mail-work"]].concat()).succeeds();
    let revoke = after(&granted.stderr, "End it early with: ");
    let ended = typed(&home, revoke).succeeds().stderr;
    assert!(ended.starts_with("Revoked grant grt_"), "{ended}");
    let nothing = at(&["mcp"]);
    assert_eq!(nothing.code, Some(78));
    assert!(
        nothing.stderr.ends_with(
            "hint: pdpp grant create --connection ID --data-dir '~/other data' --local\n"
        )
    );
    let token = at(&["owner-token"]).succeeds();
    let listed = at(&["grants"]).succeeds().stderr;
    for (told, expected) in [
        (&token.stderr, "Revoked token tok_"),
        (&listed, "Nothing to do: token tok_"),
    ] {
        let ended = typed(&home, after(told, "End it with: ")).succeeds().stderr;
        assert!(ended.starts_with(expected), "{ended}");
    }
    let secret = token.stdout.trim();
    at(&["grant", "revoke", secret]).refused(
        "error: this is a token, and the id of what it stands for is needed\nhint: `pdpp grants --data-dir '~/other data'` lists the ids",
    );
    at(&["connections", "remove", "mail-work"]).refused_saying(&[
        "hint: pdpp connections remove mail-work --data-dir '~/other data' --yes",
    ]);
    let unknown = at(&["query", "messages", "--grant", "grt_none"]).stderr;
    assert!(unknown.contains("`pdpp grants --data-dir '~/other data'` lists"));
    assert!(!home.data_dir().exists(), "nothing was made elsewhere");
}

#[test]
fn a_credential_is_asked_for_where_it_was_looked_for() {
    let home = Home::new();
    let root = home.path("cache").to_str().unwrap().to_owned();
    let asked = [
        "schema",
        "--provider-url",
        "https://pdpp.example.org",
        "--cache-root",
        &root,
    ];
    let connect = "pdpp connect https://pdpp.example.org --cache-root ~/cache";
    let refused = |hint: &str| {
        let ran = home.run(&asked);
        let told = ran.stderr.lines().last().unwrap().to_owned();
        assert_eq!(told, format!("hint: {hint}"), "{ran:?}");
    };
    refused(&format!("run `{connect}`"));
    let folder = home.path("cache").join("clients");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("pdpp.example.org.json");
    for (content, hint) in [
        (
            "{",
            format!("make it usable, or remove it and run `{connect}`"),
        ),
        ("{}", format!("run `{connect}`")),
        (
            r#"{"credential":{"access_token":"a","expires_at":"2020-01-01T00:00:00Z"}}"#,
            format!("run `{connect}`"),
        ),
        (
            r#"{"role":"owner","credential":{"access_token":"a"}}"#,
            format!("remove it and run `{connect}` to get a credential for a grant"),
        ),
    ] {
        std::fs::write(&file, content).unwrap();
        refused(&hint);
    }
}

#[test]
fn an_agent_is_given_the_whole_path() {
    let home = Home::new();
    let run = |args: &[&str], env: &[(&str, &str)]| {
        let mut command = home.command(args);
        command
            .current_dir(home.folder())
            .env_remove("PDPP_DATA_DIR");
        command
            .env("HOME", home.folder())
            .env_remove("XDG_DATA_HOME");
        command.envs(env.iter().copied());
        Ran::new(command.output().unwrap(), home.folder())
            .succeeds()
            .stdout
    };
    let named = run(&["setup", "codex", "--data-dir", "demo"], &[]);
    assert!(
        named.contains("codex mcp add pdpp -- pdpp mcp --grant GRANT --data-dir ~/demo\n"),
        "{named}"
    );
    assert!(named.contains("pdpp setup codex --connection ID --data-dir ~/demo\n"));
    let set = run(&["setup", "cursor"], &[("PDPP_DATA_DIR", "demo")]);
    assert!(
        set.contains(r#""args": ["mcp", "--grant", "GRANT", "--data-dir", "~/demo"]"#),
        "{set}"
    );
    let usual = run(&["setup"], &[]);
    assert!(!usual.contains("--data-dir"), "{usual}");
    let far = run(
        &["setup", "--provider-url", "https://pdpp.example.org"],
        &[("PDPP_CACHE_ROOT", "kept")],
    );
    assert!(
        far.contains("pdpp connect https://pdpp.example.org --cache-root ~/kept\n"),
        "{far}"
    );
    assert!(far.contains("pdpp mcp --provider-url https://pdpp.example.org --cache-root ~/kept\n"));
    let json = run(&["setup", "codex", "--json", "--data-dir", "demo"], &[]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["client"], "Codex");
    assert_eq!(json["mcp_url"], "http://127.0.0.1:7420/mcp");
    assert_eq!(
        json["command"],
        serde_json::json!(["pdpp", "mcp", "--grant", "GRANT", "--data-dir", "~/demo"])
    );
    for way in ["recommended", "other_ways"] {
        let text = json[way].as_str().unwrap();
        assert!(text.contains("codex mcp add pdpp"), "{text}");
    }
}

#[test]
fn an_export_through_a_grant_is_helped_by_a_command() {
    let (home, other) = home();
    let at = |args: &[&str]| home.run(&[args, &["--data-dir", &other]].concat());
    let create = ["grant", "create", "--client", "c", "--connection"];
    let granted = at(&[&create[..], &["mail-work", "--json"]].concat()).succeeds();
    let id = granted.json()["grant_id"].as_str().unwrap().to_owned();
    let refused = at(&["export", "nothing", "--grant", &id]);
    let schema = after(&refused.stderr, "hint: `")
        .split('`')
        .next()
        .unwrap()
        .to_owned();
    assert!(
        refused
            .stderr
            .ends_with("` lists the streams that may be read\n"),
        "{refused:?}"
    );
    let listed = typed(&home, &schema).succeeds().stdout;
    assert!(listed.contains("messages"), "{listed}");
}
