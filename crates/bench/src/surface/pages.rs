//! The owner's pages of `pdpp serve`, each beside the reads it makes, put to `/v1` of the same server one after another.

use std::net::{IpAddr, Ipv4Addr};

use grants::sign_in::{SignIn, Visitor, new_code};
use store::Catalog as _;

use super::client::{Client, Question};
use super::directory::{GrantedDirectory, open};
use super::process::Server;
use super::{Lines, Setup};
use crate::measure::compare;
use crate::{BenchError, PROBES};

/// The promise: seconds of a page beyond twice its reads.
const OVERHEAD: f64 = 0.005;

/// The owner, in a browser and with a token.
struct Owner {
    cookie: String,
    token: grants::Secret,
    connection: String,
}

pub(super) fn measure(setup: &Setup<'_>, lines: &mut Lines<'_>) -> Result<(), BenchError> {
    let directory = setup.copy("l")?;
    let owner = Owner::sign_in(setup, &directory)?;
    let started = Server::start(&setup.options.program, &directory);
    let server = setup.runtime.block_on(started)?;
    let runtime = &setup.runtime;
    for (what, page, reads) in owner.pages() {
        let page = Question::Page {
            target: page,
            cookie: owner.cookie.clone(),
        };
        let reads: Vec<Question> = reads.into_iter().map(Question::Get).collect();
        let connect = || runtime.block_on(Client::connect(server.address, &owner.token));
        let (mut browser, mut client) = (connect()?, connect()?);
        let measured = compare(
            what,
            setup.repetition(),
            &mut || runtime.block_on(browser.must(&page)).map(|_| 1),
            &mut || {
                for read in &reads {
                    runtime.block_on(client.must(read))?;
                }
                Ok(1)
            },
        )?;
        let most = 2.0 * measured.beside_value() + OVERHEAD;
        lines.add(measured.at_most("2× + 5 ms", most));
    }
    setup.runtime.block_on(server.process.end())
}

impl Owner {
    /// Signs in before the server starts, as its link would.
    fn sign_in(setup: &Setup<'_>, directory: &GrantedDirectory) -> Result<Self, BenchError> {
        let refused = |error: &dyn std::fmt::Display| BenchError::Setup(error.to_string());
        let clock = &setup.options.clock;
        let store = open(&directory.folder, clock)?;
        let now = clock.now();
        let code = new_code(&store, now).map_err(|error| refused(&error))?;
        let door = SignIn { store: &store, now };
        let visitor = Visitor {
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            browser: "bench".to_owned(),
            known: None,
        };
        let session = door.by_code(&visitor, code.expose());
        let session = session.map_err(|error| refused(&error))?;
        let life = std::time::Duration::from_hours(24);
        let token = grants::owner_token(&store, life, clock.as_ref());
        let connection = store.connections().into_iter().next();
        let connection = connection.ok_or_else(|| refused(&"the corpus has no connection"))?;
        Ok(Self {
            cookie: format!("pdpp_session={}", session.secret.expose()),
            token: token.map_err(|error| refused(&error))?.access_token,
            connection: connection.id.to_string(),
        })
    }

    /// Each page, and the reads it makes.
    fn pages(&self) -> Vec<(&'static str, String, Vec<String>)> {
        let connection = &self.connection;
        let stream = format!("/v1/streams/messages?connection_id={connection}");
        let streams = "/v1/streams".to_owned();
        let search = |words: &str| {
            let q = words.replace(' ', "+");
            let counted = format!("/v1/search?q={q}&count=exact");
            let reads = vec![streams.clone(), format!("{counted}&limit=20")];
            (format!("/search?q={q}"), reads)
        };
        let (rare, rare_reads) = search(PROBES.rare.words);
        let (common, common_reads) = search(PROBES.common.words);
        vec![
            (
                "overview",
                "/".to_owned(),
                vec![
                    streams.clone(),
                    stream.clone(),
                    self.spread("year"),
                    self.spread("month"),
                ],
            ),
            ("search, rare word", rare, rare_reads),
            ("search, common word", common, common_reads),
            (
                "browse a stream",
                format!("/browse/{connection}/messages"),
                self.browsed(stream, streams),
            ),
        ]
    }

    /// How many messages each unit of time has, as the overview asks.
    fn spread(&self, unit: &str) -> String {
        let counted = self.aggregate("metric=count&group_by_time=sent_at");
        format!("{counted}&granularity={unit}")
    }

    fn aggregate(&self, what: &str) -> String {
        let connection = &self.connection;
        format!("/v1/streams/messages/aggregate?connection_id={connection}&{what}")
    }

    fn browsed(&self, stream: String, streams: String) -> Vec<String> {
        let fields = "fields=sent_at,subject,author,folder,size_bytes,amount";
        let connection = &self.connection;
        let records = format!(
            "/v1/streams/messages/records?connection_id={connection}&limit=50&count=exact&{fields}"
        );
        vec![
            stream,
            records,
            streams,
            self.aggregate("metric=sum&field=size_bytes"),
            self.aggregate("metric=sum&field=amount"),
            self.spread("year"),
        ]
    }
}
