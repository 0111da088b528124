//! What is in `packaging` agrees with the program: versions, tools, variables, and every command line in it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::examples::objection;
use super::names::{known_variables, variables};
use super::{root, text_of};

const DOCKERFILE: &str = "packaging/Dockerfile";
const UNIT: &str = "packaging/pdpp.service";
const NODE_UNIT: &str = "packaging/nodes/node.conf";
const NODES: &str = "packaging/nodes/compose.yaml";
const PROXY: &str = "packaging/nodes/haproxy.cfg";
const BUNDLE: &str = "packaging/mcpb/manifest.json";
const REGISTRY: &str = "packaging/server.json";
const VERSION: &str = env!("CARGO_PKG_VERSION");

fn json_of(path: &str) -> Value {
    serde_json::from_str(&text_of(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Instructions of a Dockerfile, each on one line, with what follows the first word.
fn instructions(name: &str) -> Vec<String> {
    let text = text_of(DOCKERFILE);
    let code: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let joined = code.join("\n").replace("\\\n", " ");
    let rest = |line: &str| {
        Some(
            line.strip_prefix(name)?
                .strip_prefix(' ')?
                .trim()
                .to_owned(),
        )
    };
    joined.lines().filter_map(rest).collect()
}

/// The words of `["a", "b"]` at the end of an instruction.
fn array(instruction: &str) -> Vec<String> {
    let at = instruction.find('[').unwrap();
    serde_json::from_str(&instruction[at..]).unwrap()
}

/// Refuses words that the program would not take; the first is the program.
fn check_call(path: &str, words: &[String]) {
    let (program, rest) = words.split_first().unwrap();
    assert!(program.ends_with("/pdpp"), "{path} calls {program}");
    assert_eq!(objection(rest, false), None, "{path}");
}

fn keys(value: &Value) -> Vec<&str> {
    let members = value.as_object().unwrap();
    members.keys().map(String::as_str).collect()
}

/// Refuses members that are not among those that the format has: hosts refuse the file for them.
fn check_keys(what: &str, value: &Value, allowed: &[&str]) {
    for key in keys(value) {
        assert!(allowed.contains(&key), "{what} has no {key}");
    }
}

fn names(pattern: fn(char) -> bool, name: &str) -> bool {
    !name.is_empty() && name.chars().all(pattern)
}

#[test]
fn every_package_has_the_version_of_the_program() {
    assert_eq!(json_of(BUNDLE)["version"], VERSION);
    assert_eq!(json_of(REGISTRY)["version"], VERSION);
    let labels = instructions("LABEL").concat();
    let version = format!("org.opencontainers.image.version=\"{VERSION}\"");
    assert!(labels.contains(&version), "{labels}");
}

#[test]
fn the_image_is_built_with_the_toolchain_of_the_project_from_what_is_there() {
    let toolchain = text_of("rust-toolchain.toml");
    let channel = toolchain.split("channel = \"").nth(1).unwrap();
    let channel = channel.split('"').next().unwrap();
    let from = instructions("FROM");
    assert!(from[0].starts_with(&format!("rust:{channel}-")), "{from:?}");
    assert_eq!(from.len(), 2, "what builds is not what runs");

    let ignored = text_of("packaging/Dockerfile.dockerignore");
    let admitted: Vec<&str> = ignored
        .lines()
        .filter_map(|line| line.strip_prefix('!'))
        .collect();
    assert!(ignored.lines().any(|line| line == "*"));
    let mut copied = Vec::new();
    for copy in instructions("COPY") {
        if copy.starts_with("--from=") {
            continue;
        }
        let mut paths: Vec<&str> = copy.split_whitespace().collect();
        paths.pop();
        for path in paths {
            assert!(root().join(path).exists(), "there is no {path} to copy");
            copied.push(path.to_owned());
        }
    }
    assert_eq!(copied, admitted, "what is copied is what is sent");
}

#[test]
fn the_container_runs_the_server_without_root_and_can_tell_how_it_is() {
    let entry = array(&instructions("ENTRYPOINT")[0]);
    let command = array(&instructions("CMD")[0]);
    check_call(DOCKERFILE, &[entry, command].concat());
    check_call(DOCKERFILE, &array(&instructions("HEALTHCHECK")[0]));
    assert_eq!(instructions("USER"), ["nonroot:nonroot"]);
    assert_eq!(instructions("EXPOSE"), ["7420"]);
    let environment = instructions("ENV").concat();
    assert!(environment.contains("PDPP_LISTEN=0.0.0.0:7420"));
    let volume = &instructions("VOLUME")[0];
    assert!(environment.contains(&format!("PDPP_DATA_DIR={volume} ")));
}

#[test]
fn the_unit_runs_the_server_and_gives_it_nothing_else() {
    let unit = text_of(UNIT);
    let set = |name: &str| -> Vec<&str> {
        unit.lines()
            .filter_map(|line| line.strip_prefix(name)?.strip_prefix('='))
            .collect()
    };
    let words: Vec<String> = set("ExecStart")[0].split(' ').map(str::to_owned).collect();
    check_call(UNIT, &words);
    let state = format!("PDPP_DATA_DIR=/var/lib/{}", set("StateDirectory")[0]);
    assert_eq!(set("Environment"), [state]);
    for (name, value) in [
        ("DynamicUser", "yes"),
        ("StateDirectoryMode", "0700"),
        ("NoNewPrivileges", "yes"),
        ("ProtectSystem", "strict"),
        ("ProtectHome", "yes"),
        ("CapabilityBoundingSet", ""),
        ("RestrictAddressFamilies", "AF_INET AF_INET6 AF_UNIX"),
    ] {
        assert_eq!(set(name), [value], "{name}");
    }
}

/// What a file sets with a name, at any depth, in its order.
fn settings<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    text.lines()
        .filter_map(|line| line.trim().strip_prefix(name))
        .map(str::trim)
        .collect()
}

#[test]
fn nodes_have_names_of_their_own_and_the_proxy_knows_them_all() {
    let (nodes, proxy) = (text_of(NODES), text_of(PROXY));
    let names = settings(&nodes, "PDPP_NODE:");
    assert_eq!(names, ["a", "b"]);
    let port = &instructions("EXPOSE")[0];
    let behind: Vec<String> = names
        .iter()
        .map(|name| format!("{name} {name}:{port}"))
        .collect();
    assert_eq!(settings(&proxy, "server "), behind);
    assert!(proxy.contains("option httpchk GET /readyz"));
    // Only the proxy is believed, at the address it has.
    let believed = settings(&nodes, "PDPP_TRUSTED_PROXIES:");
    assert_eq!(believed, settings(&nodes, "ipv4_address:"));
    for name in &names {
        assert!(nodes.contains(&format!("index-{name}:/data")), "{name}");
    }
    // A node that drains is not killed meanwhile, on either.
    let unit = text_of(UNIT);
    let stop = settings(&unit, "TimeoutStopSec=");
    assert_eq!(
        settings(&nodes, "stop_grace_period:"),
        [format!("{}s", stop[0])]
    );
    // All that a node needs is said, here or in the file of secrets.
    for unit in [&nodes, &text_of(NODE_UNIT)] {
        for name in ["DATABASE", "NODE", "BLOBS", "SECRET_FILE", "PUBLIC_URL"] {
            assert!(unit.contains(&format!("PDPP_{name}")), "{name}");
        }
    }
}

#[test]
fn who_runs_a_node_may_write_to_its_volumes_and_read_its_secret() {
    let nodes = text_of(NODES);
    let (_, node) = nodes.split_once("&node").unwrap();
    let (node, _) = node.split_once("\n  proxy:").unwrap();
    let volumes: BTreeSet<&str> = settings(node, "- ")
        .into_iter()
        .filter(|volume| !volume.starts_with('.'))
        .filter_map(|volume| volume.split_once(':'))
        .map(|(_, path)| path)
        .collect();
    assert_eq!(volumes, BTreeSet::from(["/data", "/blobs"]));
    for path in volumes {
        let made = instructions("RUN").into_iter().any(|run| {
            run.starts_with("install -d -m 0700 ") && run.split(' ').any(|word| word == path)
        });
        let owned = format!("--from=build --chown=nonroot:nonroot {path} {path}");
        assert!(made && instructions("COPY").contains(&owned), "{path}");
    }
    // The number of `nonroot` in the image.
    let secret = settings(&nodes, "file:");
    assert!(secret.contains(&"secret"), "{secret:?}");
    assert!(text_of("docs/scaling.md").contains("\nsudo chown 65532 secret\n"));
}

#[test]
fn the_bundle_is_one_that_hosts_accept() {
    let bundle = json_of(BUNDLE);
    let allowed = [
        "manifest_version",
        "name",
        "display_name",
        "version",
        "description",
        "long_description",
        "author",
        "license",
        "keywords",
        "server",
        "tools",
        "compatibility",
        "user_config",
    ];
    check_keys("a bundle", &bundle, &allowed);
    for required in ["name", "version", "description", "author", "server"] {
        assert!(!bundle[required].is_null(), "{required}");
    }
    assert_eq!(bundle["manifest_version"], "0.3");
    assert!(bundle["author"]["name"].is_string());
    let server = &bundle["server"];
    check_keys("a server", server, &["type", "entry_point", "mcp_config"]);
    assert_eq!(server["type"], "binary");
    let config = &server["mcp_config"];
    check_keys("a configuration", config, &["command", "args", "env"]);
    let entry = server["entry_point"].as_str().unwrap();
    let command = config["command"].as_str().unwrap();
    assert_eq!(command, format!("${{__dirname}}/{entry}"));
    let mut words = vec![command.to_owned()];
    words.extend(serde_json::from_value::<Vec<String>>(config["args"].clone()).unwrap());
    check_call(BUNDLE, &words);
    assert_eq!(words[1], "mcp");
    assert!(text_of("packaging/mcpb/build").contains(&format!("$inside/{entry}")));
}

#[test]
fn the_bundle_asks_for_what_it_uses_and_empty_means_the_default() {
    let bundle = json_of(BUNDLE);
    let used = bundle["server"]["mcp_config"]["env"].as_object().unwrap();
    let used: BTreeSet<&str> = used.values().map(|value| value.as_str().unwrap()).collect();
    let asked = bundle["user_config"].as_object().unwrap();
    let names: Vec<String> = asked
        .keys()
        .map(|name| format!("${{user_config.{name}}}"))
        .collect();
    assert_eq!(used, names.iter().map(String::as_str).collect());
    for (name, option) in asked {
        let allowed = ["type", "title", "description", "required", "default"];
        check_keys(name, option, &allowed);
        assert!(["string", "directory"].contains(&option["type"].as_str().unwrap()));
        assert!(option["title"].is_string() && option["description"].is_string());
        // A variable that is not filled in would be passed on as it is written.
        assert_eq!(
            (&option["required"], &option["default"]),
            (&false.into(), &"".into())
        );
    }
}

#[test]
fn the_bundle_lists_the_tools_there_are() {
    let bundle = json_of(BUNDLE);
    let listed: Vec<&str> = bundle["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| {
            check_keys("a tool", tool, &["name", "description"]);
            tool["name"].as_str().unwrap()
        })
        .collect();
    let tools = mcp::Server::tools();
    let there: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    assert_eq!(listed, there);
}

#[test]
fn the_entry_for_the_registry_is_one_that_it_accepts() {
    let entry = json_of(REGISTRY);
    let allowed = [
        "$schema",
        "name",
        "title",
        "description",
        "version",
        "remotes",
    ];
    check_keys("an entry", &entry, &allowed);
    let schema = entry["$schema"].as_str().unwrap();
    assert!(schema.ends_with("/schemas/2025-12-11/server.schema.json"));
    let name = entry["name"].as_str().unwrap();
    let (space, own) = name.split_once('/').unwrap();
    assert!(names(
        |c| c.is_ascii_alphanumeric() || ".-".contains(c),
        space
    ));
    assert!(names(
        |c| c.is_ascii_alphanumeric() || "._-".contains(c),
        own
    ));
    assert!((3..=200).contains(&name.len()));
    for text in ["title", "description"] {
        let length = entry[text].as_str().unwrap().chars().count();
        assert!(
            (1..=100).contains(&length),
            "{text} has {length} characters"
        );
    }
    let label = format!("io.modelcontextprotocol.server.name=\"{name}\"");
    assert!(instructions("LABEL").concat().contains(&label));
    for remote in entry["remotes"].as_array().unwrap() {
        check_keys("a remote", remote, &["type", "url", "variables"]);
        assert_eq!(remote["type"], "streamable-http");
        let url = remote["url"].as_str().unwrap();
        assert!(
            url.starts_with("https://") && url.ends_with("/mcp"),
            "{url}"
        );
        for name in keys(&remote["variables"]) {
            assert!(url.contains(&format!("{{{name}}}")), "{url} has no {name}");
            let allowed = ["description", "isRequired", "placeholder"];
            check_keys(name, &remote["variables"][name], &allowed);
        }
    }
}

#[test]
fn every_variable_that_a_package_sets_is_there() {
    let there = known_variables();
    for path in [DOCKERFILE, UNIT, NODE_UNIT, NODES, BUNDLE, REGISTRY] {
        let set = variables(&text_of(path));
        let invented: Vec<&String> = set.difference(&there).collect();
        assert!(invented.is_empty(), "{path}: {invented:?}");
    }
}
