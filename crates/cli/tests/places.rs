//! Commands that are printed name the data they are about: they do what they say wherever they are run.

use crate::harness::{Home, MAIL};

const AT: &str = "--data-dir '~/other data'";

/// A home whose data is not where the environment says.
fn home() -> Home {
    let home = Home::new();
    home.file("mail.json", MAIL);
    home.run(format!("declare ~/mail.json {AT}")).succeeds();
    home.run(format!("connections add mail --name Work {AT}"))
        .succeeds();
    home
}

/// The rest of the line after these words.
fn after<'a>(text: &'a str, before: &str) -> &'a str {
    let (_, rest) = text.split_once(before).unwrap();
    rest.lines().next().unwrap()
}

#[test]
fn what_ends_a_token_ends_it_where_it_is() {
    let home = home();
    let at = |line: &str| home.run(format!("{line} {AT}"));
    let none = at("grants").succeeds().stderr;
    assert_eq!(
        none,
        "Nothing was granted yet. Grant something with: pdpp grant create --client NAME --connection ID --data-dir '~/other data'\n"
    );
    let granted = at("grant create --client c --connection mail-work").succeeds();
    let revoke = after(&granted.stderr, "End it early with: ");
    let ended = home.typed(revoke).succeeds().stderr;
    assert!(ended.starts_with("Revoked grant grt_"), "{ended}");
    let nothing = at("mcp").exits(78);
    nothing.says("hint: pdpp grant create --connection ID --data-dir '~/other data' --local\n");
    let token = at("owner-token").succeeds();
    let listed = at("grants").succeeds().stderr;
    for (told, expected) in [
        (&token.stderr, "Revoked token tok_"),
        (&listed, "Nothing to do: token tok_"),
    ] {
        let ended = home.typed(after(told, "End it with: ")).succeeds().stderr;
        assert!(ended.starts_with(expected), "{ended}");
    }
    let secret = token.stdout.trim();
    at(&format!("grant revoke {secret}")).refused(
        "error: this is a token, and the id of what it stands for is needed\nhint: `pdpp grants --data-dir '~/other data'` lists the ids",
    );
    at("connections remove mail-work").refused_saying(&[
        "hint: pdpp connections remove mail-work --data-dir '~/other data' --yes",
    ]);
    at("query messages --grant grt_none").says("`pdpp grants --data-dir '~/other data'` lists");
    assert!(!home.data_dir().exists(), "nothing was made elsewhere");
}

#[test]
fn a_credential_is_asked_for_where_it_was_looked_for() {
    let home = Home::new();
    let asked = "schema --provider-url https://pdpp.example.org --cache-root ~/cache";
    let connect = "pdpp connect https://pdpp.example.org --cache-root ~/cache";
    let refused = |hint: &str| {
        let ran = home.run(asked);
        let told = ran.stderr.lines().last().unwrap().to_owned();
        assert_eq!(told, format!("hint: {hint}"), "{ran:?}");
    };
    refused(&format!("run `{connect}`"));
    let folder = home.path("cache/clients");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("pdpp.example.org.json");
    let again = format!("run `{connect}`");
    for (content, hint) in [
        ("{", format!("make it usable, or remove it and {again}")),
        ("{}", again.clone()),
        (
            r#"{"credential":{"access_token":"a","expires_at":"2020-01-01T00:00:00Z"}}"#,
            again.clone(),
        ),
        (
            r#"{"role":"owner","credential":{"access_token":"a"}}"#,
            format!("remove it and {again} to get a credential for a grant"),
        ),
    ] {
        std::fs::write(&file, content).unwrap();
        refused(&hint);
    }
}

#[test]
fn an_agent_is_given_the_whole_path() {
    let home = Home::new();
    let run = |line: &str, env: &[(&str, &str)]| {
        let mut command = home.command(line);
        command
            .env_remove("PDPP_DATA_DIR")
            .env_remove("XDG_DATA_HOME");
        command
            .current_dir(home.folder())
            .env("HOME", home.folder());
        home.ran(command.envs(env.iter().copied())).succeeds()
    };
    run("setup codex --data-dir demo", &[]).shows_all(&[
        "codex mcp add pdpp -- pdpp mcp --grant GRANT --data-dir ~/demo\n",
        "pdpp setup codex --connection ID --data-dir ~/demo\n",
    ]);
    let set = run("setup cursor", &[("PDPP_DATA_DIR", "demo")]);
    set.shows(r#""args": ["mcp", "--grant", "GRANT", "--data-dir", "~/demo"]"#);
    run("setup", &[]).hides("--data-dir");
    let listening = run("setup", &[("PDPP_LISTEN", "127.0.0.1:8000")]);
    listening.shows("\n  http://127.0.0.1:8000/mcp\n");
    let far = "setup --provider-url https://pdpp.example.org";
    run(far, &[("PDPP_CACHE_ROOT", "kept")]).shows_all(&[
        "pdpp connect https://pdpp.example.org --cache-root ~/kept\n",
        "pdpp mcp --provider-url https://pdpp.example.org --cache-root ~/kept\n",
    ]);
    let json = run("setup codex --json --data-dir demo", &[]).json();
    assert_eq!(json["client"], "Codex");
    assert_eq!(json["mcp_url"], "http://127.0.0.1:7420/mcp");
    let command = ["pdpp", "mcp", "--grant", "GRANT", "--data-dir", "~/demo"];
    assert_eq!(json["command"], serde_json::json!(command));
    for way in ["recommended", "other_ways"] {
        let text = json[way].as_str().unwrap();
        assert!(text.contains("codex mcp add pdpp"), "{text}");
    }
}

#[test]
fn an_export_through_a_grant_is_helped_by_a_command() {
    let home = home();
    let (id, _) = home.grant(&format!("--connection mail-work {AT}"));
    let refused = home.run(format!("export nothing --grant {id} {AT}"));
    refused.says("` lists the streams that may be read\n");
    let schema = after(&refused.stderr, "hint: `").split('`').next();
    home.typed(schema.unwrap()).succeeds().shows("messages");
}
