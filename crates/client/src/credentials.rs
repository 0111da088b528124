//! The credential cache: one file for each server, written by `pdpp connect` and by other tools of the protocol.
//!
//! `<root>/clients/<host>.json`. A file is read as it is, and what we do not know in it is kept when it is written again.
//! An owner's credential is refused wherever it says so: agents read under a grant or not at all.

mod file;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use contract::error::{ErrorCode, ReadError};
use contract::time::Instant;
use serde_json::{Map, Value};

pub(crate) use file::{lock, write};

use crate::provider_url::ProviderUrl;
use crate::secret::Secret;
use crate::token::Granted;

/// Where a file says whose credential it is.
const KIND_MEMBERS: [&str; 4] = ["pdpp_token_kind", "token_kind", "kind", "role"];

/// What a file says of the token of a grant or a package.
const CLIENT_KINDS: [&str; 2] = ["client", "mcp_package"];

/// How long before its end a credential is renewed.
const RENEWED_AHEAD: Duration = Duration::from_mins(1);

/// The folder below a root.
const FOLDER: &str = "clients";

/// Where credentials are kept.
#[derive(Debug, Clone)]
pub struct CredentialCache {
    root: PathBuf,
    fallback: Option<PathBuf>,
    /// The options of the command that fills it.
    connect_options: String,
}

impl CredentialCache {
    /// The cache below a root folder, which need not exist yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            fallback: None,
            connect_options: String::new(),
        }
    }

    /// Reads below another root what the first has not. New credentials are kept below the first.
    #[must_use]
    pub fn with_fallback(mut self, root: impl Into<PathBuf>) -> Self {
        self.fallback = Some(root.into());
        self
    }

    /// Names the options with which `pdpp connect` fills exactly this cache, in words for a shell.
    #[must_use]
    pub fn filled_with(mut self, options: impl Into<String>) -> Self {
        self.connect_options = options.into();
        self
    }

    /// The file a new credential for this server is kept in.
    pub fn file(&self, provider: &ProviderUrl) -> PathBuf {
        place(&self.root, provider)
    }

    /// The credential for a server.
    pub fn load(&self, provider: &ProviderUrl, now: Instant) -> Result<Credential, ReadError> {
        for root in std::iter::once(&self.root).chain(&self.fallback) {
            let path = place(root, provider);
            let connect = connect_hint(&self.connect_options, provider);
            let unusable = |error: ReadError| {
                error.with_hint(format!("make it usable, or remove it and {connect}"))
            };
            if let Some(members) = file::read(&path).map_err(unusable)? {
                return Credential::read((path, members), provider, &self.connect_options, now);
            }
        }
        let message = format!("there is no credential for {provider}");
        Err(ReadError::new(ErrorCode::NotConnected, message)
            .with_hint(connect_hint(&self.connect_options, provider)))
    }

    /// The client this machine is registered as at an authorization server, if a file knows.
    pub(crate) fn client(&self, provider: &ProviderUrl, issuer: &ProviderUrl) -> Option<String> {
        let members = file::read(&self.file(provider)).ok()??;
        let named = members.get("authorization_server")?.as_str()?;
        let same = ProviderUrl::parse(named).ok()? == *issuer;
        let id = members.get("client")?.get("client_id")?.as_str()?;
        same.then(|| id.to_owned())
    }

    /// Keeps a new credential in place of an older one for the same host, which nobody renews meanwhile.
    pub(crate) async fn store(
        &self,
        provider: &ProviderUrl,
        entry: &Entry<'_>,
        (now, patience): (Instant, Duration),
    ) -> Result<PathBuf, ReadError> {
        let path = self.file(provider);
        file::prepare(&path)?;
        let _held = lock(&path, patience).await?;
        // A file that cannot be read has nothing worth keeping.
        let mut members = file::read(&path).ok().flatten().unwrap_or_default();
        // What an older credential said of itself is not true of this one.
        for name in KIND_MEMBERS {
            members.remove(name);
        }
        for name in [
            "access_token",
            "refresh_token",
            "expires_at",
            "grant_id",
            "scope",
        ] {
            members.remove(name);
        }
        let mut credential = Map::new();
        entry.granted.write_into(&mut credential, now);
        // It was given for a grant; should the server say otherwise in an answer, that answer counts.
        if kinds_in(&credential).next().is_none() {
            let several = credential.contains_key("grant_package_id");
            let kind = CLIENT_KINDS[usize::from(several)];
            credential.insert(KIND_MEMBERS[0].to_owned(), kind.into());
        }
        if let Some(grant) = entry.granted.grant() {
            members.insert("grant_id".to_owned(), grant.into());
        }
        if let Some(scope) = credential.get("scope") {
            members.insert("scope".to_owned(), scope.clone());
        }
        for (name, text) in [
            ("provider_url", provider.as_str()),
            ("authorization_server", entry.issuer.as_str()),
            ("token_endpoint", entry.token_endpoint),
            ("resource", entry.resource),
            ("created_at", &now.to_rfc3339_millis()),
        ] {
            members.insert(name.to_owned(), text.into());
        }
        let client = serde_json::json!({
            "client_id": entry.client_id,
            "token_endpoint_auth_method": "none",
        });
        members.insert("client".to_owned(), client);
        members.insert("credential".to_owned(), credential.into());
        write(&path, &members)?;
        Ok(path)
    }
}

/// What is kept of a new credential.
pub(crate) struct Entry<'a> {
    pub(crate) issuer: &'a ProviderUrl,
    pub(crate) token_endpoint: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) client_id: &'a str,
    pub(crate) granted: &'a Granted,
}

/// A credential and the file it came from. `Debug` shows nothing of its tokens.
#[derive(Clone)]
pub struct Credential {
    file: PathBuf,
    members: Map<String, Value>,
    access_token: Secret,
    refresh_token: Option<Secret>,
    ends: Option<Instant>,
    /// How long before its end it is renewed.
    ahead: Duration,
    /// Whether it may be read with; a renewed one is no other.
    cleared: Arc<AtomicBool>,
    warning: Option<String>,
    /// The options of the command that gets another.
    connect_options: String,
}

impl Credential {
    /// The token to ask with.
    pub fn access_token(&self) -> &Secret {
        &self.access_token
    }

    /// The file it came from.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The grant it stands for, if the file says so.
    pub fn grant_id(&self) -> Option<&str> {
        self.text("grant_id").or(self.text("grant_package_id"))
    }

    /// What the person should know about the file, although it can be used.
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// What renews it.
    pub(crate) fn refresh_token(&self) -> Option<&Secret> {
        self.refresh_token.as_ref()
    }

    /// Whether it may be read with: its file calls it a client's, or the server was asked whose it is.
    pub(crate) fn cleared(&self) -> &AtomicBool {
        &self.cleared
    }

    /// Whether it ends so soon that it is renewed before it is used.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        let ahead = i64::try_from(self.ahead.as_micros()).unwrap_or(i64::MAX);
        let ends = |ends: Instant| ends.0.saturating_sub(ahead) <= now.0;
        self.refresh_token.is_some() && self.ends.is_some_and(ends)
    }

    /// A text of the file, of the credential itself first.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let own = self.members.get("credential").and_then(|own| own.get(name));
        own.or_else(|| self.members.get(name))?.as_str()
    }

    /// The id of the client it was given to.
    pub(crate) fn client_id(&self) -> Option<&str> {
        self.members.get("client")?.get("client_id")?.as_str()
    }

    /// The same credential with its renewed tokens.
    pub(crate) fn renewed(&self, granted: &Granted, now: Instant) -> Self {
        let mut renewed = self.clone();
        if let Some(Value::Object(credential)) = renewed.members.get_mut("credential") {
            granted.write_into(credential, now);
        }
        renewed.access_token = granted.access_token.clone();
        renewed.ends = granted.expires_at(now);
        // A token of a few seconds would otherwise be due as soon as it is there.
        let half = granted.lifetime().map(|lifetime| lifetime / 2);
        renewed.ahead = half.map_or(RENEWED_AHEAD, |half| half.min(RENEWED_AHEAD));
        if granted.refresh_token.is_some() {
            renewed.refresh_token.clone_from(&granted.refresh_token);
        }
        renewed
    }

    /// Writes it where it came from.
    pub(crate) fn write(&self) -> Result<(), ReadError> {
        write(&self.file, &self.members)
    }

    /// Reads the file again, which another process may have written.
    pub(crate) fn reread(&self, provider: &ProviderUrl, now: Instant) -> Result<Self, ReadError> {
        let members = file::read(&self.file)?;
        let members = members.ok_or_else(|| {
            let message = format!("the credential for {provider} was removed");
            ReadError::new(ErrorCode::NotConnected, message).with_hint(self.connect_hint(provider))
        })?;
        let stored = (self.file.clone(), members);
        let mut read = Self::read(stored, provider, &self.connect_options, now)?;
        if read.access_token == self.access_token {
            read.cleared = Arc::clone(&self.cleared);
        }
        Ok(read)
    }

    /// How to get another.
    pub(crate) fn connect_hint(&self, provider: &ProviderUrl) -> String {
        connect_hint(&self.connect_options, provider)
    }

    fn read(
        (file, members): (PathBuf, Map<String, Value>),
        provider: &ProviderUrl,
        connect_options: &str,
        now: Instant,
    ) -> Result<Self, ReadError> {
        let shown = file.display();
        let hint = connect_hint(connect_options, provider);
        let empty = Map::new();
        let own = members.get("credential").and_then(Value::as_object);
        let own = own.unwrap_or(&empty);
        // AU-04
        if is_owner(&members) || is_owner(own) {
            return Err(owner_refused(&format!("{shown} holds")).with_hint(format!(
                "remove it and {hint} to get a credential for a grant"
            )));
        }
        let named = members.get("provider_url").and_then(Value::as_str);
        let named = named.and_then(|text| ProviderUrl::parse(text).ok());
        // Two servers of one host share a name; a token is for one of them, and never for the same host in clear.
        if let Some(named) = named.filter(|named| named.origin() != provider.origin()) {
            let message = format!("{shown} holds a credential for {named}, not for {provider}");
            return Err(ReadError::new(ErrorCode::NotConnected, message).with_hint(hint));
        }
        let secret = |name: &str| own.get(name).and_then(Value::as_str).and_then(Secret::new);
        let access_token = secret("access_token")
            .ok_or_else(|| invalid(&file, "has no usable access_token", &hint))?;
        let refresh_token = secret("refresh_token");
        let ends = match own.get("expires_at") {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) if text.is_empty() => None,
            Some(value) => {
                let moment = value.as_str().and_then(Instant::parse);
                Some(moment.ok_or_else(|| invalid(&file, "has no usable expires_at", &hint))?)
            }
        };
        if let Some(ended) = ends.filter(|ends| *ends <= now && refresh_token.is_none()) {
            let message = format!("the credential for {provider} in {shown} expired at {ended}");
            return Err(ReadError::new(ErrorCode::CredentialExpired, message).with_hint(hint));
        }
        let cleared = is_a_clients(&members) || is_a_clients(own);
        Ok(Self {
            cleared: Arc::new(AtomicBool::new(cleared)),
            warning: file::exposure(&file),
            connect_options: connect_options.to_owned(),
            file,
            access_token,
            refresh_token,
            ends,
            ahead: RENEWED_AHEAD,
            members,
        })
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential")
            .field("file", &self.file)
            .field("grant_id", &self.grant_id())
            .field("renewable", &self.refresh_token.is_some())
            .finish_non_exhaustive()
    }
}

/// Whether an object says that it is an owner's.
pub(crate) fn is_owner(members: &Map<String, Value>) -> bool {
    kinds_in(members).any(|kind| kind.eq_ignore_ascii_case("owner"))
}

/// Whether an object says that it is the token of a grant or a package.
fn is_a_clients(members: &Map<String, Value>) -> bool {
    let is_named = |kind: &str| {
        CLIENT_KINDS
            .iter()
            .any(|one| kind.eq_ignore_ascii_case(one))
    };
    kinds_in(members).any(is_named)
}

/// What an object says of whose credential it is.
fn kinds_in(members: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let named = KIND_MEMBERS.iter().filter_map(|name| members.get(*name));
    named.filter_map(Value::as_str).map(str::trim)
}

/// The refusal of an owner's credential; `where_from` is a subject and a verb.
pub(crate) fn owner_refused(where_from: &str) -> ReadError {
    let message = format!("{where_from} an owner credential, which is never used here");
    ReadError::new(ErrorCode::OwnerTokenRefused, message).with_hint(
        "have the server give tokens of a grant, then run `pdpp connect` with its address",
    )
}

fn invalid(file: &Path, what: &str, hint: &str) -> ReadError {
    let message = format!("the credential file {} {what}", file.display());
    ReadError::new(ErrorCode::CredentialInvalid, message).with_hint(hint)
}

fn connect_hint(options: &str, provider: &ProviderUrl) -> String {
    let between = if options.is_empty() { "" } else { " " };
    format!("run `pdpp connect {provider}{between}{options}`")
}

fn place(root: &Path, provider: &ProviderUrl) -> PathBuf {
    root.join(FOLDER).join(provider.host_file_name())
}
