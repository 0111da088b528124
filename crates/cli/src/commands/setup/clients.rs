//! The words for each client. What is recommended comes first and asks for no choice; everything else follows it.

use std::fmt::Write as _;

use crate::reading::{CommandLine, quoted};

/// What the words are about: one address, one command.
pub(super) struct ClientSetup {
    pub(super) mcp_url: String,
    pub(super) origin: String,
    /// Where the commands find the data or the credential, if not by themselves.
    pub(super) location: Vec<(&'static str, String)>,
    /// Whether the server is another's.
    pub(super) is_another: bool,
    /// Whether only programs on this machine reach the server.
    pub(super) is_here: bool,
    /// The grant that the client reads the local data under.
    pub(super) grant: Option<ClientGrant>,
}

pub(super) struct ClientGrant {
    pub(super) id: String,
    pub(super) ends: Option<String>,
    pub(super) lines: Vec<String>,
    /// How many older live ones there are.
    pub(super) others: usize,
}

impl ClientSetup {
    /// Under what the command reads: another server, or a grant of the local data. The latter is always named, so that
    /// no client ever reads in another's name.
    fn read_under(&self) -> (&'static str, String) {
        if self.is_another {
            return ("provider-url", self.origin.clone());
        }
        let named = self.grant.as_ref().map(|grant| grant.id.clone());
        ("grant", named.unwrap_or_else(|| "GRANT".to_owned()))
    }

    /// The command that speaks MCP on standard input and output.
    fn stdio_command(&self) -> CommandLine {
        let (name, value) = self.read_under();
        let line = CommandLine::new("mcp").option(name, Some(value));
        line.with_location(self.location.clone())
    }

    pub(super) fn stdio_words(&self) -> Vec<String> {
        let options = std::iter::once(self.read_under()).chain(self.location.clone());
        let options = options.flat_map(|(name, value)| [format!("--{name}"), value]);
        let command = ["pdpp", "mcp"].map(str::to_owned);
        command.into_iter().chain(options).collect()
    }

    /// The command that says all this in the words of one agent.
    fn setup_command(&self) -> CommandLine {
        let line = CommandLine::new("setup").argument("NAME");
        if self.is_another {
            return line.option("provider-url", Some(&self.origin));
        }
        line.with_location(self.location.clone())
    }

    /// The command that serves the data for others to reach.
    fn serve_command(&self) -> CommandLine {
        let line = CommandLine::new("serve").option("public-url", Some("https://..."));
        if self.is_another {
            return line;
        }
        line.with_location(self.location.clone())
    }
}

pub(super) struct Instructions {
    pub(super) name: &'static str,
    pub(super) recommended: String,
    pub(super) others: String,
}

pub(super) struct Client {
    pub(super) name: &'static str,
    recommended: fn(&ClientSetup) -> String,
    advanced: fn(&ClientSetup) -> String,
}

pub(super) static CLIENTS: [Client; 7] = [
    Client {
        name: "Claude Code",
        recommended: |setup| {
            let url = &setup.mcp_url;
            format!(
                "claude mcp add --transport http pdpp {url}\nThen say /mcp in Claude Code, choose pdpp and sign in. There you choose what it may read."
            )
        },
        advanced: |setup| {
            over_stdio(
                setup,
                "Claude Code",
                &format!("claude mcp add pdpp -- {}", setup.stdio_command()),
            )
        },
    },
    Client {
        name: "Claude Desktop",
        recommended: |setup| {
            let before = before_stdio(setup, "Claude Desktop");
            let config = stdio_config(setup);
            format!(
                "{before}\nPut this into claude_desktop_config.json (on macOS in ~/Library/Application Support/Claude,\non Windows in %APPDATA%\\Claude) and start it anew:\n{config}"
            )
        },
        advanced: |setup| {
            let url = &setup.mcp_url;
            let note = if setup.is_here {
                "\nIt is asked from the internet, so the server needs a public https address first (--public-url)."
            } else {
                ""
            };
            format!("As a connector (Settings, Connectors, Add custom connector):\n{url}{note}")
        },
    },
    Client {
        name: "Codex",
        recommended: |setup| {
            let url = &setup.mcp_url;
            format!(
                "codex mcp add pdpp --url {url}\ncodex mcp login pdpp\nIn the browser you choose what it may read."
            )
        },
        advanced: |setup| {
            over_stdio(
                setup,
                "Codex",
                &format!("codex mcp add pdpp -- {}", setup.stdio_command()),
            )
        },
    },
    Client {
        name: "ChatGPT",
        recommended: |setup| {
            let url = &setup.mcp_url;
            let note = if setup.is_here {
                let serve = setup.serve_command();
                format!(
                    "\nChatGPT asks from the internet: give the server a public https address first, with\n`{serve}`, and use that address."
                )
            } else {
                String::new()
            };
            format!(
                "{url}\nAdd this address under Settings, Apps & Connectors, Create, and sign in.\nThere you choose what it may read.{note}"
            )
        },
        advanced: |_| {
            "There is no other way: ChatGPT runs no programs on your machine. Where there is no Create, turn on\ndeveloper mode under Advanced settings there first.".to_owned()
        },
    },
    Client {
        name: "Cursor",
        recommended: |setup| {
            let url = &setup.mcp_url;
            format!(
                "Put this into ~/.cursor/mcp.json, then choose Connect in Settings, MCP, and what it may read:\n{{\"mcpServers\": {{\"pdpp\": {{\"url\": \"{url}\"}}}}}}"
            )
        },
        advanced: |setup| over_stdio(setup, "Cursor", &stdio_config(setup)),
    },
    Client {
        name: "VS Code",
        recommended: |setup| {
            let url = &setup.mcp_url;
            format!(
                "code --add-mcp '{{\"name\":\"pdpp\",\"type\":\"http\",\"url\":\"{url}\"}}'\nThen start pdpp in the list of MCP servers and sign in. There you choose what it may read."
            )
        },
        advanced: |setup| {
            let (command, args) = words(setup);
            let json = format!("{{\"name\":\"pdpp\",\"command\":{command},\"args\":{args}}}");
            let add = format!("code --add-mcp {}", quoted(&json));
            over_stdio(setup, "VS Code", &add)
        },
    },
    Client {
        name: "Gemini CLI",
        recommended: |setup| {
            let url = &setup.mcp_url;
            format!(
                "gemini mcp add --transport http pdpp {url}\nThen say /mcp auth pdpp in Gemini CLI and sign in. There you choose what it may read."
            )
        },
        advanced: |setup| {
            over_stdio(
                setup,
                "Gemini CLI",
                &format!("gemini mcp add pdpp {}", setup.stdio_command()),
            )
        },
    },
];

impl Client {
    /// What to write for it on the command line.
    pub(super) fn key(&self) -> String {
        self.name.to_lowercase().replace(' ', "-")
    }

    /// All there is to say, the recommended way first.
    pub(super) fn instructions(&self, setup: &ClientSetup) -> Instructions {
        Instructions {
            name: self.name,
            recommended: (self.recommended)(setup),
            others: (self.advanced)(setup),
        }
    }
}

/// For a client that is not listed: the one address, then the one command.
pub(super) fn any_client(setup: &ClientSetup) -> Instructions {
    let url = &setup.mcp_url;
    let recommended = format!(
        "{url}\nGive an agent this address as an MCP server (streamable HTTP). It opens a browser, where you sign in\nand choose what it may read."
    );
    let command = over_stdio(setup, "NAME", &setup.stdio_command().to_string());
    let known: Vec<String> = CLIENTS.iter().map(Client::key).collect();
    let others = format!(
        "{command}\n\nIn the words of one agent: {}, with NAME one of\n{}",
        setup.setup_command(),
        known.join(", ")
    );
    Instructions {
        name: "Any agent",
        recommended,
        others,
    }
}

impl Instructions {
    pub(super) fn text(&self) -> String {
        let indented = |text: &str| {
            let lines: Vec<String> = text
                .lines()
                .map(|line| format!("  {line}").trim_end().to_owned())
                .collect();
            lines.join("\n")
        };
        format!(
            "{}\n\nRecommended\n{}\n\nOther ways\n{}\n",
            self.name,
            indented(&self.recommended),
            indented(&self.others)
        )
    }
}

/// Over standard input and output, with what must be there first.
fn over_stdio(setup: &ClientSetup, client: &str, way: &str) -> String {
    let before = before_stdio(setup, client);
    format!("Over standard input and output:\n{before}\n{way}")
}

/// What lets the command read.
fn before_stdio(setup: &ClientSetup, client: &str) -> String {
    let line = |line: CommandLine| line.with_location(setup.location.clone()).to_string();
    if setup.is_another {
        return line(CommandLine::new("connect").argument(&setup.origin));
    }
    let create = CommandLine::new("grant create").option("client", Some(client));
    let create = create.option("connection", Some("ID"));
    let Some(grant) = &setup.grant else {
        let known = CLIENTS.iter().find(|known| known.name == client);
        return match known {
            Some(known) => {
                let setup = CommandLine::new("setup").argument(known.key());
                let setup = line(setup.option("connection", Some("ID")));
                format!(
                    "{setup}\nThat lets it read the connection, all of it, and prints this again with the id of the grant instead of GRANT.\nTo let it read less: {}",
                    line(create.option("stream", Some("NAME")))
                )
            }
            None => format!(
                "{}\nThat prints the id of a grant, which goes where GRANT stands:",
                line(create)
            ),
        };
    };
    let until = match &grant.ends {
        Some(ends) => format!("until {ends} "),
        None => String::new(),
    };
    let mut text = format!("Under grant {} {until}{client} may read", grant.id);
    for granted in &grant.lines {
        text.push_str("\n  ");
        text.push_str(granted);
    }
    if grant.others > 0 {
        let more = grant.others;
        let all = line(CommandLine::new("grants"));
        // Writing to a String cannot fail.
        let _ = write!(text, "\nOlder live grants of it: {more}; see {all}");
    }
    text
}

/// The command as JSON: the program, and its arguments.
fn words(setup: &ClientSetup) -> (String, String) {
    let as_json = |word: &String| serde_json::Value::from(word.as_str()).to_string();
    let words = setup.stdio_words();
    let mut words = words.iter().map(as_json);
    let command = words.next().unwrap_or_default();
    let rest: Vec<String> = words.collect();
    (command, format!("[{}]", rest.join(", ")))
}

fn stdio_config(setup: &ClientSetup) -> String {
    let (command, args) = words(setup);
    format!("{{\"mcpServers\": {{\"pdpp\": {{\"command\": {command}, \"args\": {args}}}}}}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "http://127.0.0.1:7420/mcp";
    const STDIO: &str = "pdpp mcp";

    fn setup(is_another: bool) -> ClientSetup {
        ClientSetup {
            mcp_url: URL.to_owned(),
            origin: "http://127.0.0.1:7420".to_owned(),
            location: Vec::new(),
            is_another,
            is_here: true,
            grant: None,
        }
    }

    /// Every text, in its recommended and its other part.
    fn texts() -> Vec<(String, String)> {
        let both = [false, true].map(setup);
        let all = both.iter().flat_map(|setup| {
            let each = CLIENTS
                .iter()
                .map(|client| client.instructions(setup).text());
            each.chain([any_client(setup).text()])
        });
        all.map(|text| {
            let (head, rest) = text.split_once("\nRecommended\n").unwrap();
            assert!(!head.contains("pdpp"), "{head}");
            let (recommended, others) = rest.split_once("\nOther ways\n").unwrap();
            (recommended.to_owned(), others.to_owned())
        })
        .collect()
    }

    #[test]
    fn the_recommended_way_is_the_one_address_or_the_one_command_and_comes_first() {
        // SU-01, SU-03
        for (recommended, others) in texts() {
            let address = recommended.matches(URL).count();
            let config = recommended
                .matches("\"command\": \"pdpp\", \"args\": [\"mcp\"")
                .count();
            assert_eq!(address + config, 1, "{recommended}");
            assert!(!others.is_empty());
        }
        let any_client = any_client(&setup(false)).text();
        assert!(
            any_client.find(URL).unwrap() < any_client.find(STDIO).unwrap(),
            "{any_client}"
        );
    }

    #[test]
    fn the_recommended_way_asks_for_no_choice_of_tools_and_no_secret() {
        // SU-02, SU-04
        for (recommended, _) in texts() {
            let recommended = recommended.to_lowercase();
            let words = recommended.split(|c: char| !c.is_ascii_alphanumeric());
            let words: Vec<&str> = words.collect();
            for word in [
                "core",
                "event",
                "events",
                "full",
                "profile",
                "profiles",
                "toolset",
                "toolsets",
                "tools",
                "subscription",
                "developer",
                "bearer",
                "token",
                "tokens",
                "env",
                "environment",
                "owner",
                "admin",
            ] {
                assert!(!words.contains(&word), "{word} in {recommended}");
            }
            assert!(!recommended.contains("pdpp_"), "{recommended}");
        }
    }

    #[test]
    fn no_text_names_a_profile_or_a_token() {
        // SU-05
        for (recommended, others) in texts() {
            let text = (recommended + &others).to_lowercase();
            for word in ["profile", "toolset", "bearer", "pdpp_owner", "access_token"] {
                assert!(!text.contains(word), "{word} in {text}");
            }
        }
    }

    #[test]
    fn another_server_is_connected_to_first() {
        for client in &CLIENTS {
            let text = client.instructions(&setup(true)).text();
            assert!(!text.contains("grant create"), "{text}");
        }
    }
}
