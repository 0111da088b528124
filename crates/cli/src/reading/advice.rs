//! Hints after a refusal, as commands: servers name parameters, and people at a terminal write options.

use std::collections::HashSet;

use contract::error::ErrorCode;
use contract::schema::{SchemaAnswer, StreamMetadata};

use super::{CommandLine, Reading, Server};
use crate::first_steps;
use crate::output::visible;
use crate::spelling::{did_you_mean, join_names};

impl Reading<'_> {
    /// What to do about a refusal that no other name would have avoided.
    pub(super) fn advice(&self, code: ErrorCode, param: Option<&str>) -> Vec<String> {
        use ErrorCode::{
            CursorExpired, FieldNotText, GrantConsumed, GrantExpired, GrantInvalid, GrantRevoked,
            InvalidArgument, InvalidCursor, InvalidExpand, InvalidRequest, InvalidSort, NotFound,
            PackageRevoked, QueryNotFound,
        };
        let line = &self.line;
        match (code, param) {
            (InvalidCursor | CursorExpired, _) => vec![self.restart_command()],
            (QueryNotFound, _) => {
                let bare = ["q", "before-chars", "after-chars", "limit-chars"];
                let line = bare
                    .iter()
                    .fold(line.clone(), |line, name| line.without(name));
                vec![format!("`{line}` reads the field from its start")]
            }
            (NotFound, _) => self.records_of_the_stream(),
            (FieldNotText, _) => self.as_json(),
            (InvalidExpand, _) => self.names_in("expand", relations),
            (_, Some("view")) => self.names_in("view", views),
            (GrantRevoked | GrantExpired | GrantInvalid | GrantConsumed | PackageRevoked, _) => {
                let list = self.context.command("grants");
                vec![match self.remote_url() {
                    Some(url) => format!("run `{}`", line.connect_command(url)),
                    None => format!("`{list}` lists the grants and their state"),
                }]
            }
            (InvalidSort, _) | (_, Some("field" | "group_by" | "group_by_time")) => {
                self.what_fields_accept()
            }
            (InvalidRequest | InvalidArgument, _) if line.command() == "schema" => {
                let schema = line.another("schema");
                vec![format!(
                    "`{schema}` lists the streams; name one with --stream"
                )]
            }
            (_, Some(param)) if param.starts_with("filter") || param == "streams" => {
                self.what_fields_accept()
            }
            _ => Vec::new(),
        }
    }

    fn restart_command(&self) -> String {
        let mut again = self.line.without("cursor");
        if again.values("changes-since").next().is_some() {
            again = again.with("changes-since", "beginning");
        }
        format!("`{again}` starts from the beginning")
    }

    fn records_of_the_stream(&self) -> Vec<String> {
        let names = self.line.names();
        let list = |stream: &String| {
            let query = self.line.another("query").argument(stream);
            let query = query.option("connection-id", names.connections.first());
            format!("`{query}` lists the records there are")
        };
        names.stream.iter().map(list).collect()
    }

    fn as_json(&self) -> Vec<String> {
        match self.line.arguments() {
            [id, field] => {
                let fetch = self.line.another("fetch").argument(id);
                let fetch = fetch.option("fields", Some(field)).with_json();
                vec![format!("`{fetch}` shows what it holds")]
            }
            _ => Vec::new(),
        }
    }

    fn what_fields_accept(&self) -> Vec<String> {
        let stream = self.line.names().stream;
        if stream.is_none() && self.line.command() == "search" {
            return vec!["name the stream with --streams NAME".to_owned()];
        }
        let schema = |stream: &String| {
            let schema = self.line.another("schema").option("stream", Some(stream));
            format!("`{schema}` says what each field accepts")
        };
        stream.iter().map(schema).collect()
    }

    /// The names an option may have, with the one that was probably meant.
    fn names_in(&self, option: &str, of: impl Fn(&StreamMetadata) -> Vec<String>) -> Vec<String> {
        let names = self.line.names();
        let connection = names.connections.first().map(String::as_str);
        let schema = self.schema_of(names.stream.as_deref(), connection, None);
        let Some(SchemaAnswer::Full(schema)) = schema else {
            return self.what_fields_accept();
        };
        let streams = schema.connectors.iter().flat_map(|one| &one.streams);
        let mut seen = HashSet::new();
        let known: Vec<String> = streams
            .flat_map(of)
            .filter(|name| seen.insert(name.clone()))
            .collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let given = self.line.values(option).flat_map(|text| text.split(','));
        let wrong = given.filter(|name| !known.contains(name));
        let mut hints: Vec<String> = wrong
            .filter_map(|name| did_you_mean(name, &known))
            .collect();
        hints.push(match known.as_slice() {
            [] => format!("the stream has none, so leave out --{option}"),
            known => format!("--{option} takes: {}", join_names(known)),
        });
        hints
    }

    /// What is still missing before there is something to read; for the owner, who can do something about it.
    pub(super) fn first_steps(&self) -> Vec<String> {
        let Server::Local(server) = &self.server else {
            return Vec::new();
        };
        let sources = server.sources();
        sources.map_or_else(Vec::new, |sources| {
            first_steps::next_steps(&sources, self.context)
        })
    }

    /// Prints the first steps after an empty answer.
    pub(crate) fn print_first_steps(&self) {
        if self.context.output.is_json() {
            return;
        }
        for step in self.first_steps() {
            self.context.output.note(&format!("hint: {step}"));
        }
    }

    /// Warns about unknown streams after an empty search: a misspelt one finds nothing either.
    pub(crate) fn warn_unknown_streams(&self) {
        let names = self.line.names();
        let output = self.context.output;
        let Some(schema) = self.schema(None, None).filter(|_| !output.is_json()) else {
            return;
        };
        let streams = schema.connectors.iter().flat_map(|one| &one.streams);
        let known: Vec<&str> = streams.map(|one| one.name.as_str()).collect();
        for name in &names.streams {
            if known.contains(&name.as_str()) || known.is_empty() {
                continue;
            }
            let told = format!("warning: there is no stream '{}' to search", visible(name));
            let meant = did_you_mean(name, &known)
                .unwrap_or_else(|| format!("streams: {}", join_names(&known)));
            output.problem(&format!("{told}\nhint: {meant}"));
        }
    }

    pub(super) fn similar_grant(&self, id: &str) -> Option<String> {
        let Server::Local(server) = &self.server else {
            return None;
        };
        let ids = server.grant_ids();
        let known: Vec<&str> = ids.iter().map(String::as_str).collect();
        did_you_mean(id, &known)
    }
}

fn relations(stream: &StreamMetadata) -> Vec<String> {
    let all = stream.expand_capabilities.iter().flatten();
    all.filter(|one| one.usable != Some(false))
        .map(|one| one.name.clone())
        .collect()
}

fn views(stream: &StreamMetadata) -> Vec<String> {
    let all = stream.views.iter().flatten();
    all.map(|view| view.id.clone()).collect()
}

pub(super) fn help_hint(line: &CommandLine) -> String {
    format!("`pdpp {} --help` explains the options", line.command())
}
