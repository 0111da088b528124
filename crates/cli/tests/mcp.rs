//! `pdpp mcp` as a process: when it starts, when it refuses to, what it says where, and that it shares its data.
#![expect(clippy::unwrap_used, reason = "a step that fails is a failed test")]

mod harness;

use std::fs;
use std::process::Stdio;

use harness::Home;
use harness::agent::Agent;
use harness::server::Server;
use serde_json::{Value, json};

/// A home with two messages and a grant over them that has no client of its own.
fn granted() -> (Home, String) {
    let home = Home::with_mail();
    let lines = r#"{"key":"m1","data":{"id":"m1","subject":"Harbour bridge","body":"We chose the vendor."}}
{"key":"m2","data":{"id":"m2","subject":"Lunch","body":"Noodles again."}}
"#;
    let file = home.file("messages.jsonl", lines);
    home.run(&["import", &file, "--as", "mail/messages"])
        .succeeds();
    let made = home.run(&[
        "grant",
        "create",
        "--local",
        "--connection",
        "mail-work",
        "--json",
    ]);
    let made: Value = serde_json::from_str(&made.succeeds().stdout).unwrap();
    (home, made["grant_id"].as_str().unwrap().to_owned())
}

fn create(home: &Home, to: &[&str]) -> String {
    let over = ["--connection", "mail-work", "--json"];
    let made = home.run(&[&["grant", "create"], to, &over].concat());
    made.succeeds().json()["grant_id"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Writes a credential for a server nobody runs, and gives the arguments to use it.
fn with_credential(home: &Home, credential: &Value) -> Vec<String> {
    let folder = home.path("cache/clients");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("127.0.0.1_9.json"), credential.to_string()).unwrap();
    let root = home.path("cache").to_str().unwrap().to_owned();
    [
        "mcp",
        "--provider-url",
        "http://127.0.0.1:9",
        "--cache-root",
        &root,
    ]
    .map(str::to_owned)
    .to_vec()
}

fn args(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

#[test]
fn the_only_local_grant_is_read_under_in_both_protocol_eras() {
    let (home, _) = granted();
    // TR-12: what is issued to a client changes nothing for who names no grant.
    create(&home, &["--client", "another"]);
    let mut agent = Agent::start(&mut home.command(&["mcp"]));
    let info = agent.initialize();
    assert_eq!(info["result"]["protocolVersion"], "2025-11-25");
    // UP-06
    assert!(info["result"]["instructions"].as_str().unwrap().len() > 512);
    let found = agent.call("search", json!({"query": "vendor"}));
    assert_eq!(
        found["structuredContent"]["results"][0]["id"],
        "mail-work/messages:m1"
    );
    assert_eq!(agent.leave(), Some(0));

    let mut agent = Agent::start(&mut home.command(&["mcp"]));
    let meta = json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}
    }});
    let discovered = agent.ask("server/discover", meta.clone());
    let versions = discovered["result"]["supportedVersions"]
        .as_array()
        .unwrap();
    assert!(versions.contains(&json!("2026-07-28")), "{discovered}");
    let tools = agent.ask("tools/list", meta.clone());
    assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 6);
    let mut params = meta;
    params["name"] = json!("fetch");
    params["arguments"] = json!({"id": "mail-work/messages:m2"});
    let fetched = agent.ask("tools/call", params);
    assert_eq!(
        fetched["result"]["structuredContent"]["text"],
        "Noodles again."
    );
    assert_eq!(agent.leave(), Some(0));
}

#[test]
fn without_a_local_grant_or_with_several_it_says_what_to_do() {
    // TR-12: a grant of a client is never used unasked, whether it is the only one or not.
    let home = Home::with_mail();
    let none = home.run(&["mcp"]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(78), ""));
    let make = "pdpp grant create --connection ID --local";
    assert!(none.stderr.contains(make), "{}", none.stderr);
    let mut own = Vec::new();
    for client in ["one", "Claude Desktop"] {
        own.push((client, create(&home, &["--client", client])));
        let refused = home.run(&["mcp"]);
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(78), ""));
        for (client, id) in &own {
            let line = format!("hint: as {client}: pdpp mcp --grant {id}\n");
            assert!(refused.stderr.contains(&line), "{}", refused.stderr);
        }
        assert!(refused.stderr.contains(make), "{}", refused.stderr);
    }
    let local = create(&home, &["--local"]);
    let reads = home.run(&["mcp"]).succeeds();
    assert!(reads.stderr.contains(&local), "{}", reads.stderr);
    // Its end gives the place to nobody.
    home.run(&["grant", "revoke", &local]).succeeds();
    assert_eq!(home.run(&["mcp"]).code, Some(78));
    let both = [(); 2].map(|()| create(&home, &["--local"]));
    let several = home.run(&["mcp"]);
    assert_eq!((several.code, several.stdout.as_str()), (Some(78), ""));
    for id in &both {
        assert!(several.stderr.contains(&format!("--grant {id}\n")));
    }
    assert!(!several.stderr.contains(&own[0].1), "{}", several.stderr);
    let unknown = home.run(&["mcp", "--grant", "grt_nope"]);
    assert_eq!(unknown.code, Some(78));
}

#[test]
fn a_client_whose_grant_ended_reads_under_no_other() {
    // TR-12: the configuration that `pdpp setup` prints names the grant, and with it nothing else is ever read.
    let (home, _) = granted();
    create(&home, &["--client", "another"]);
    let setup = [
        "setup",
        "claude-desktop",
        "--connection",
        "mail-work",
        "--json",
    ];
    let made = home.run(&setup).succeeds().json();
    let id = made["grant"].as_str().unwrap();
    let command = made["command"].as_array().unwrap();
    let command: Vec<&str> = command.iter().map(|word| word.as_str().unwrap()).collect();
    let named = ["--data-dir", "~/data"];
    assert_eq!(
        command,
        [&["pdpp", "mcp", "--grant", id][..], &named].concat()
    );
    let grant = home.run(&["grant", "show", id, "--json"]).succeeds().json();
    assert_eq!(grant["client_name"], "Claude Desktop");
    // Once more, without making another: the same grant is named, with what it may read.
    let text = home.run(&["setup", "Claude Desktop"]).succeeds().stdout;
    assert!(text.contains(&format!("\"--grant\", \"{id}\"")), "{text}");
    let shown = home.run(&["grant", "show", id]).succeeds().stdout;
    let granted = shown.lines().filter(|line| line.starts_with("  "));
    for line in granted {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    home.run(&["mcp", "--grant", id]).succeeds();
    home.run(&["grant", "revoke", id]).succeeds();
    let ended = home.run(&["mcp", "--grant", id]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(78), ""));
    let text = home.run(&["setup", "claude-desktop"]).succeeds().stdout;
    assert!(
        !text.contains(id) && text.contains("\"--grant\", \"GRANT\""),
        "{text}"
    );
}

#[test]
fn setup_makes_a_grant_only_for_a_named_agent_over_known_connections() {
    // TR-12: nothing is granted silently.
    let home = Home::with_mail();
    home.run(&["setup", "codex"]).succeeds();
    assert_eq!(
        home.run(&["setup", "--connection", "mail-work"]).code,
        Some(2)
    );
    home.run(&["setup", "codex", "--connection", "mail-wrok"])
        .refused_saying(&["mail-wrok"]);
    assert_eq!(home.run(&["grants", "--json"]).json(), json!([]));
}

#[test]
fn several_agents_and_all_commands_share_one_directory() {
    let (home, grant) = granted();
    let mut first = Agent::start(&mut home.command(&["mcp"]));
    first.initialize();
    first.call("schema", json!({}));
    let mut second = Agent::start(&mut home.command(&["mcp", "--grant", &grant]));
    second.initialize();
    let found = second.call("search", json!({"query": "noodles"}));
    assert_eq!(
        found["structuredContent"]["results"][0]["id"],
        "mail-work/messages:m2"
    );
    home.run(&["connections"]).succeeds();
    // Whoever held the directory leaves; the other finds a way of its own.
    assert_eq!(first.leave(), Some(0));
    let found = second.call("search", json!({"query": "vendor"}));
    assert_eq!(
        found["structuredContent"]["results"][0]["id"],
        "mail-work/messages:m1"
    );
    // The end of a grant holds from the next call on.
    home.run(&["grant", "revoke", &grant]).succeeds();
    let refused = second.call("search", json!({"query": "vendor"}));
    assert_eq!(refused["isError"], true);
    assert_eq!(
        refused["structuredContent"]["error"]["code"],
        "grant_revoked"
    );
    assert_eq!(second.leave(), Some(0));
}

#[test]
fn what_is_read_is_noted_as_disclosed() {
    let (home, grant) = granted();
    let mut agent = Agent::start(&mut home.command(&["mcp"]));
    agent.initialize();
    agent.call("fetch", json!({"id": "mail-work/messages:m1"}));
    assert_eq!(agent.leave(), Some(0));
    let shown = home.run(&["grant", "show", &grant]).succeeds().stdout;
    assert!(shown.contains("mail-work/messages:m1"), "{shown}");
}

#[test]
fn owner_credentials_in_the_environment_stop_the_start() {
    // AU-03
    let (home, _) = granted();
    for name in ["PDPP_OWNER_TOKEN", "PDPP_OWNER_SESSION_COOKIE"] {
        let ran = home
            .command(&["mcp"])
            .env(name, "x")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert_eq!(ran.status.code(), Some(77), "{name}");
        assert!(ran.stdout.is_empty());
        let told = String::from_utf8(ran.stderr).unwrap();
        assert!(
            told.contains("Refusing to start") && told.contains(name),
            "{told}"
        );
    }
}

#[test]
fn a_cached_owner_credential_stops_the_start() {
    // AU-04
    let home = Home::new();
    for name in ["pdpp_token_kind", "token_kind", "kind", "role"] {
        for value in ["owner", "Owner", "OWNER"] {
            let credential = json!({"provider_url": "http://127.0.0.1:9", "credential": {"access_token": "sesame-open", name: value}});
            let ran = home.run(&args(&with_credential(&home, &credential)));
            assert_eq!(
                (ran.code, ran.stdout.as_str()),
                (Some(77), ""),
                "{name}={value}"
            );
            assert!(!ran.stderr.contains("sesame"), "{}", ran.stderr);
        }
    }
}

// AU-05, decisions 32: it read everything until somebody called schema.
#[test]
fn an_owner_token_that_no_file_calls_so_reads_nothing_and_ends_with_77() {
    let (home, _) = granted();
    let server = Server::start(&home);
    let token = home.run(&["owner-token"]).succeeds().stdout;
    let folder = home.path("cache/clients");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join(format!("{}.json", server.address.replace(':', "_")));
    let (url, root) = (format!("http://{}", server.address), home.path("cache"));
    let command = || {
        let root = root.to_str().unwrap();
        home.command(&["mcp", "--provider-url", &url, "--cache-root", root])
    };
    let id = "mail-work/messages:m1";
    let calls = [
        ("query_records", json!({"stream": "messages"})),
        ("search", json!({"query": "vendor"})),
        ("fetch", json!({"id": id})),
        ("read_record_field", json!({"id": id, "field_path": "body"})),
        (
            "aggregate",
            json!({"stream": "messages", "metric": "count"}),
        ),
        ("schema", json!({})),
    ];
    for label in [json!({}), json!({"token_kind": "client"})] {
        let mut credential = label;
        credential["access_token"] = token.trim().into();
        fs::write(&file, json!({"credential": credential}).to_string()).unwrap();
        for (tool, args) in &calls {
            let mut agent = Agent::start(&mut command());
            agent.initialize();
            let refused = agent.call(tool, args.clone());
            assert_eq!(refused["isError"], true, "{tool}: {refused}");
            let code = &refused["structuredContent"]["error"]["code"];
            assert_eq!(code, "owner_token_refused", "{tool}");
            assert!(!refused.to_string().contains("Harbour"), "{refused}");
            assert_eq!(agent.leave(), Some(77), "{tool}");
        }
    }
}

#[test]
fn a_credential_that_is_missing_ended_or_broken_is_told() {
    // UP-07
    let home = Home::new();
    let root = home.path("none").to_str().unwrap().to_owned();
    let missing = home.run(&[
        "mcp",
        "--provider-url",
        "http://127.0.0.1:9",
        "--cache-root",
        &root,
    ]);
    assert_eq!((missing.code, missing.stdout.as_str()), (Some(78), ""));
    assert!(
        missing.stderr.contains("pdpp connect"),
        "{}",
        missing.stderr
    );
    for credential in [
        json!({"credential": {"access_token": "sesame-open", "expires_at": "2020-01-01T00:00:00Z"}}),
        json!({"credential": {}}),
        json!("no object"),
    ] {
        let ran = home.run(&args(&with_credential(&home, &credential)));
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (Some(78), ""),
            "{credential}"
        );
        assert!(!ran.stderr.contains("sesame"), "{}", ran.stderr);
    }
}

#[test]
fn a_server_that_is_not_there_is_told_by_the_tool_not_by_the_exit() {
    let home = Home::new();
    let credential = json!({"credential": {"access_token": "sesame-open"}});
    let words = with_credential(&home, &credential);
    let mut agent = Agent::start(&mut home.command(&args(&words)));
    agent.initialize();
    let failed = agent.call("search", json!({"query": "x"}));
    assert_eq!(failed["isError"], true);
    assert_eq!(
        failed["structuredContent"]["error"]["code"],
        "rs_unreachable"
    );
    // UP-12
    assert!(!failed.to_string().contains("sesame"));
    assert_eq!(agent.leave(), Some(0));
}

#[test]
fn standard_output_carries_protocol_messages_only() {
    // UP-07, SU-05
    let home = Home::new();
    for (words, code) in [
        (&["mcp", "--help"][..], 0),
        (&["mcp", "--profile", "x"], 64),
        (&["mcp", "--toolset", "x"], 64),
        (&["mcp", "--provider-url", "ftp://x"], 64),
        (&["mcp", "extra"], 64),
        (&["-q", "mcp", "--nope"], 64),
    ] {
        let ran = home.run(words);
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (Some(code), ""),
            "{words:?}"
        );
        assert!(!ran.stderr.is_empty(), "{words:?}");
    }
    let help = home.run(&["mcp", "--help"]).stderr;
    for word in ["profile", "toolset", "PDPP_OWNER"] {
        assert!(!help.contains(word), "{word} in {help}");
    }
}

#[test]
fn a_profile_in_the_environment_changes_nothing() {
    // SU-05
    let (home, _) = granted();
    let list = |profile: Option<&str>| {
        let mut command = home.command(&["mcp"]);
        if let Some(profile) = profile {
            command.env("PDPP_MCP_PROFILE", profile);
        }
        let mut agent = Agent::start(&mut command);
        agent.initialize();
        let mut answer = agent.ask("tools/list", json!({}));
        assert_eq!(agent.leave(), Some(0));
        answer["result"].take()
    };
    assert_eq!(list(None), list(Some("full")));
}

#[test]
fn a_server_can_start_and_end_while_an_agent_lives() {
    // TR-37: a living `pdpp mcp` hands the directory over, and takes it back when it must.
    let (home, grant) = granted();
    let mut agent = Agent::start(&mut home.command(&["mcp", "--grant", &grant]));
    agent.initialize();
    for round in 0..3 {
        let found = agent.call("search", json!({"query": "vendor"}));
        let results = &found["structuredContent"]["results"];
        assert_eq!(results.as_array().map(Vec::len), Some(1), "{round} {found}");
        let server = Server::start(&home);
        assert!(!server.address.is_empty(), "{round}: it did not start");
        let found = agent.call("search", json!({"query": "noodles"}));
        let results = &found["structuredContent"]["results"];
        assert_eq!(results.as_array().map(Vec::len), Some(1), "{round} {found}");
        server.signal("TERM");
        assert_eq!(server.ended().0, Some(0), "{round}");
    }
    assert_eq!(agent.leave(), Some(0));
    // What was read before the directory was handed over is in the log too.
    let shown = home.run(&["grant", "show", &grant]).succeeds().stdout;
    for id in ["mail-work/messages:m1", "mail-work/messages:m2"] {
        assert_eq!(shown.matches(id).count(), 3, "{id}: {shown}");
    }
}

// TR-19: the local tools name the address of the server that runs, or none.
#[test]
fn the_address_told_is_the_running_server_s_or_none() {
    let (home, grant) = granted();
    let told = |agent: &mut Agent| {
        let found = agent.call("search", json!({"query": "vendor"}));
        let content = &found["structuredContent"];
        let url = content["results"][0]["url"].as_str().unwrap().to_owned();
        (content.get("provider_url").cloned(), url)
    };
    let mut agent = Agent::start(&mut home.command(&["mcp", "--grant", &grant]));
    agent.initialize();
    let (provider, url) = told(&mut agent);
    assert_eq!(provider, None);
    assert!(url.starts_with("pdpp://record/"), "{url}");
    assert_eq!(agent.leave(), Some(0));

    let server = Server::start(&home);
    let mut agent = Agent::start(&mut home.command(&["mcp", "--grant", &grant]));
    agent.initialize();
    let address = format!("http://{}", server.address);
    let (provider, url) = told(&mut agent);
    assert_eq!(provider, Some(json!(address)));
    assert!(url.starts_with(&format!("{address}/records/")), "{url}");
    // Another server takes its place, elsewhere.
    server.signal("TERM");
    server.ended();
    let server = Server::start(&home);
    let address = format!("http://{}", server.address);
    let (provider, url) = told(&mut agent);
    assert_eq!(provider, Some(json!(address)));
    assert!(url.starts_with(&address), "{url}");
    assert_eq!(agent.leave(), Some(0));
}
