//! `pdpp mcp` as a process: when it starts, when it refuses to, what it says where, and that it shares its data.

use crate::harness::Home;
use crate::harness::agent::Agent;
use crate::harness::server::Server;
use serde_json::json;

const FIRST: &str = "mail-work/messages:m1";
const SECOND: &str = "mail-work/messages:m2";

/// A home with two messages and a grant over them that has no client of its own.
fn granted() -> (Home, String) {
    let home = Home::with_mail();
    let lines = r#"{"key":"m1","data":{"id":"m1","subject":"Harbour bridge","body":"We chose the vendor."}}
{"key":"m2","data":{"id":"m2","subject":"Lunch","body":"Noodles again."}}
"#;
    home.import_messages(lines).succeeds();
    let grant = create(&home, "--local");
    (home, grant)
}

fn create(home: &Home, to: &str) -> String {
    let made = home.run(format!("grant create {to} --connection mail-work --json"));
    made.succeeds().text("grant_id")
}

#[test]
fn the_only_local_grant_is_read_under_in_both_protocol_eras() {
    let (home, _) = granted();
    // TR-12: what is issued to a client changes nothing for who names no grant.
    create(&home, "--client another");
    let mut agent = Agent::start(&mut home.command("mcp"));
    let info = agent.initialize();
    assert_eq!(info["result"]["protocolVersion"], "2025-11-25");
    // UP-06
    assert!(info["result"]["instructions"].as_str().unwrap().len() > 512);
    assert_eq!(agent.found("vendor"), [FIRST]);
    assert_eq!(agent.leave(), Some(0));

    // SU-05: a profile in the environment changes nothing.
    let mut agent = Agent::start(home.command("mcp").env("PDPP_MCP_PROFILE", "core"));
    let meta = json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}
    }});
    let discovered = agent.ask("server/discover", meta.clone());
    let versions = discovered["result"]["supportedVersions"].as_array();
    assert!(versions.unwrap().contains(&json!("2026-07-28")));
    let tools = agent.ask("tools/list", meta.clone());
    assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 6);
    let mut params = meta;
    params["name"] = json!("fetch");
    params["arguments"] = json!({"id": SECOND});
    let fetched = agent.ask("tools/call", params);
    let text = &fetched["result"]["structuredContent"]["text"];
    assert_eq!(text, "Noodles again.");
    assert_eq!(agent.leave(), Some(0));
}

#[test]
fn without_a_local_grant_or_with_several_it_says_what_to_do() {
    // TR-12: a grant of a client is never used unasked, whether it is the only one or not.
    let home = Home::with_mail();
    let make = "pdpp grant create --connection ID --local";
    home.run("mcp").exits_quietly(78).says(make);
    let mut own = Vec::new();
    for client in ["one", "Claude Desktop"] {
        own.push((client, create(&home, &format!("--client '{client}'"))));
        let refused = home.run("mcp").exits_quietly(78);
        for (client, id) in &own {
            refused.says(format!("hint: as {client}: pdpp mcp --grant {id}\n"));
        }
        refused.says(make);
    }
    let local = create(&home, "--local");
    home.run("mcp").succeeds().says(&local);
    // Its end gives the place to nobody.
    home.run(format!("grant revoke {local}")).succeeds();
    home.run("mcp").exits_quietly(78);
    let both = [(); 2].map(|()| create(&home, "--local"));
    let several = home.run("mcp").exits_quietly(78);
    for id in &both {
        several.says(format!("--grant {id}\n"));
    }
    several.hides(&own[0].1);
    home.run("mcp --grant grt_nope").exits_quietly(78);
}

#[test]
fn a_client_whose_grant_ended_reads_under_no_other() {
    // TR-12: the configuration that `pdpp setup` prints names the grant, and with it nothing else is ever read.
    let (home, _) = granted();
    create(&home, "--client another");
    let made = home.run("setup claude-desktop --connection mail-work --json");
    let made = made.succeeds().json();
    let id = made["grant"].as_str().unwrap();
    let command = json!(["pdpp", "mcp", "--grant", id, "--data-dir", "~/data"]);
    assert_eq!(made["command"], command);
    let grant = home.run(format!("grant show {id} --json")).succeeds();
    assert_eq!(grant.text("client_name"), "Claude Desktop");
    // Once more, without making another: the same grant is named, with what it may read.
    let again = home.run("setup 'Claude Desktop'").succeeds();
    again.shows(format!("\"--grant\", \"{id}\""));
    let shown = home.run(format!("grant show {id}")).succeeds().stdout;
    for line in shown.lines().filter(|line| line.starts_with("  ")) {
        again.shows(line);
    }
    home.run(format!("mcp --grant {id}")).succeeds();
    home.run(format!("grant revoke {id}")).succeeds();
    home.run(format!("mcp --grant {id}")).exits_quietly(78);
    let ended = home.run("setup claude-desktop").succeeds();
    ended.hides(id);
    ended.shows("\"--grant\", \"GRANT\"");
}

#[test]
fn setup_makes_a_grant_only_for_a_named_agent_over_known_connections() {
    // TR-12: nothing is granted silently.
    let home = Home::with_mail();
    home.run("setup codex").succeeds();
    home.run("setup --connection mail-work").exits(2);
    let unknown = home.run("setup codex --connection mail-wrok");
    unknown.refused_saying(&["mail-wrok"]);
    assert_eq!(home.run("grants --json").json(), json!([]));
}

#[test]
fn several_agents_and_all_commands_share_one_directory() {
    let (home, grant) = granted();
    let mut first = Agent::begin(&home, "mcp");
    first.content("schema", json!({}));
    let mut second = Agent::begin(&home, format!("mcp --grant {grant}"));
    assert_eq!(second.found("noodles"), [SECOND]);
    home.run("connections").succeeds();
    // Whoever held the directory leaves; the other finds a way of its own.
    assert_eq!(first.leave(), Some(0));
    assert_eq!(second.found("vendor"), [FIRST]);
    // The end of a grant holds from the next call on.
    home.run(format!("grant revoke {grant}")).succeeds();
    let refusal = second.refusal("search", json!({"query": "vendor"}));
    assert_eq!(refusal, "grant_revoked");
    assert_eq!(second.leave(), Some(0));
}

#[test]
fn owner_credentials_in_the_environment_stop_the_start() {
    // AU-03
    let (home, _) = granted();
    for name in ["PDPP_OWNER_TOKEN", "PDPP_OWNER_SESSION_COOKIE"] {
        let ran = home.ran(home.command("mcp").env(name, "x"));
        ran.exits_quietly(77).says_all(&["Refusing to start", name]);
    }
}

// AU-05, decisions 32: it read everything until somebody called schema.
#[test]
fn an_owner_token_that_no_file_calls_so_reads_nothing_and_ends_with_77() {
    let (home, _) = granted();
    let server = Server::start(&home);
    let token = home.run("owner-token").succeeds().stdout;
    let url = format!("http://{}", server.address);
    for label in [json!({}), json!({"token_kind": "client"})] {
        let mut credential = label;
        credential["access_token"] = token.trim().into();
        home.keep_credential(&server.address, &credential);
        let line = format!("mcp --provider-url {url} --cache-root ~/cache");
        let mut agent = Agent::begin(&home, line);
        let refused = agent.call("fetch", json!({"id": FIRST}));
        let code = &refused["structuredContent"]["error"]["code"];
        assert_eq!(code, "owner_token_refused");
        assert!(!refused.to_string().contains("Harbour"), "{refused}");
        assert_eq!(agent.leave(), Some(77));
    }
}

#[test]
fn a_credential_that_cannot_be_used_stops_the_start() {
    // UP-07, AU-04: a missing one, one that ended, one that is broken, and an owner's.
    let home = Home::new();
    let start = "mcp --provider-url http://127.0.0.1:9 --cache-root ~/cache";
    home.run(start).exits_quietly(78).says("pdpp connect");
    for (credential, code) in [
        (
            json!({"access_token": "sesame-open", "expires_at": "2020-01-01T00:00:00Z"}),
            78,
        ),
        (json!({}), 78),
        (json!("no object"), 78),
        (json!({"access_token": "sesame-open", "role": "Owner"}), 77),
    ] {
        home.keep_credential("127.0.0.1:9", &credential);
        home.run(start).exits_quietly(code).hides("sesame");
    }
    // A server that is not there is told by the tool, not by the exit. UP-12
    home.keep_credential("127.0.0.1:9", &json!({"access_token": "sesame-open"}));
    let mut agent = Agent::begin(&home, start);
    let failed = agent.call("search", json!({"query": "x"}));
    let code = &failed["structuredContent"]["error"]["code"];
    assert_eq!(code, "rs_unreachable");
    assert!(!failed.to_string().contains("sesame"));
    assert_eq!(agent.leave(), Some(0));
}

#[test]
fn standard_output_carries_protocol_messages_only() {
    // UP-07, SU-05
    let home = Home::new();
    for (line, code) in [
        ("mcp --help", 0),
        ("mcp --profile x", 64),
        ("mcp --toolset x", 64),
        ("mcp --provider-url ftp://x", 64),
        ("mcp extra", 64),
        ("-q mcp --nope", 64),
    ] {
        let ran = home.run(line).exits_quietly(code);
        assert!(!ran.stderr.is_empty(), "{line}");
    }
    let help = home.run("mcp --help");
    for word in ["profile", "toolset", "PDPP_OWNER"] {
        help.hides(word);
    }
}

#[test]
fn a_server_can_start_and_end_while_an_agent_lives() {
    // TR-37: a living `pdpp mcp` hands the directory over, and takes it back when it must.
    let (home, grant) = granted();
    let mut agent = Agent::begin(&home, format!("mcp --grant {grant}"));
    for round in 0..3 {
        assert_eq!(agent.found("vendor"), [FIRST], "{round}");
        let server = Server::start(&home);
        assert_eq!(agent.found("noodles"), [SECOND], "{round}");
        server.stop();
    }
    assert_eq!(agent.leave(), Some(0));
    // What was read before the directory was handed over is in the log too.
    let shown = home.run(format!("grant show {grant}")).succeeds().stdout;
    for id in [FIRST, SECOND] {
        assert_eq!(shown.matches(id).count(), 3, "{id}: {shown}");
    }
}

// TR-19: the local tools name the address of the server that runs, or none.
#[test]
fn the_address_told_is_that_of_the_running_server() {
    let (home, grant) = granted();
    let command = format!("mcp --grant {grant}");
    let told = |agent: &mut Agent| {
        let content = agent.content("search", json!({"query": "vendor"}));
        let url = content["results"][0]["url"].as_str().unwrap().to_owned();
        (content.get("provider_url").cloned(), url)
    };
    let mut agent = Agent::begin(&home, &command);
    let (provider, url) = told(&mut agent);
    assert_eq!(provider, None);
    // HD-11: a page that opens once `pdpp serve` runs, and no `pdpp://record/` where the record has an id.
    assert!(url.starts_with("http://127.0.0.1:7420/records/"), "{url}");
    assert_eq!(agent.leave(), Some(0));

    let server = Server::start(&home);
    let mut agent = Agent::begin(&home, &command);
    let mut is_told = |server: &Server| {
        let address = format!("http://{}", server.address);
        let (provider, url) = told(&mut agent);
        assert_eq!(provider, Some(json!(address)));
        assert!(url.starts_with(&format!("{address}/records/")), "{url}");
    };
    is_told(&server);
    // Another server takes its place, elsewhere.
    server.stop();
    is_told(&Server::start(&home));
}
