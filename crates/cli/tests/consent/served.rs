//! `pdpp serve` with its log in a file, and `pdpp connect` on its way.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::Home;
use crate::harness::server::PATIENCE;

/// A server that is ended with its test.
pub(crate) struct Served {
    child: Child,
    log: PathBuf,
    pub(crate) url: String,
    pub(crate) link: String,
}

impl Served {
    /// Starts one that tells all it ever would.
    pub(crate) fn start(home: &Home) -> Self {
        let log = home.path("serve.log");
        let child = home
            .command("serve --listen 127.0.0.1:0")
            .env("PDPP_LOG", "trace")
            .stdout(Stdio::null())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let mut served = Self {
            child,
            log,
            url: String::new(),
            link: String::new(),
        };
        let began = Instant::now();
        while served.line("Tokens: ").is_none() {
            assert!(began.elapsed() < PATIENCE, "{}", served.told());
            sleep(Duration::from_millis(10));
        }
        let mcp = served.line("MCP: ").unwrap();
        mcp.strip_suffix("/mcp")
            .unwrap()
            .clone_into(&mut served.url);
        let link = home.run("sign-in").succeeds().stdout;
        link.trim().clone_into(&mut served.link);
        served
    }

    fn told(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    fn line(&self, begins: &str) -> Option<String> {
        let told = self.told();
        let mut lines = told.split_inclusive('\n');
        let line = lines.find_map(|line| line.strip_prefix(begins)?.strip_suffix('\n'));
        line.map(str::to_owned)
    }

    /// Checks that none of these was told where it is kept, nor the link of this server.
    pub(crate) fn kept_secret(&self, secrets: &[String]) {
        let told = self.told();
        let log: Vec<&str> = told.lines().collect();
        assert!(log.len() > 10, "there is a log: {told}");
        assert!(!told.contains("pdpp_signin_"), "{told}");
        for secret in secrets {
            assert!(secret.len() > 8, "{secret} is no secret");
            let lines: Vec<&&str> = log.iter().filter(|line| line.contains(secret)).collect();
            assert!(lines.is_empty(), "{secret} in {lines:?}");
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `pdpp connect` that waits for its owner.
pub(crate) struct Connecting {
    child: Option<Child>,
    stderr: Box<dyn BufRead>,
    pub(crate) link: String,
}

impl Connecting {
    pub(crate) fn start(home: &Home, url: &str) -> Self {
        let mut child = home
            .command(format!("connect {url} --cache-root ~/cache"))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut lines = [String::new(), String::new()];
        for line in &mut lines {
            stderr.read_line(line).unwrap();
        }
        let [first, link] = lines;
        assert_eq!(first, "Open this page and approve:\n");
        Self {
            child: Some(child),
            stderr: Box::new(stderr),
            link: link.trim().to_owned(),
        }
    }

    /// Waits for the end; what was told.
    pub(crate) fn done(mut self) -> String {
        let mut told = String::new();
        self.stderr.read_to_string(&mut told).unwrap();
        let status = self.child.take().unwrap().wait().unwrap();
        assert!(status.success(), "{told}");
        told
    }
}

impl Drop for Connecting {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// What `pdpp connect` left behind.
pub(crate) struct Kept(Value);

impl Kept {
    pub(crate) fn read(home: &Home, url: &str) -> Self {
        let host = url.strip_prefix("http://").unwrap().replace(':', "_");
        let file = home.path(&format!("cache/clients/{host}.json"));
        Self(serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap())
    }

    pub(crate) fn token(&self, name: &str) -> String {
        self.0["credential"][name].as_str().unwrap().to_owned()
    }

    pub(crate) fn client(&self) -> String {
        self.0["client"]["client_id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn grant(&self) -> String {
        self.0["grant_id"].as_str().unwrap().to_owned()
    }
}

/// The command of an agent that reads from a server.
pub(crate) fn reading(url: &str) -> String {
    format!("mcp --provider-url {url} --cache-root ~/cache")
}
