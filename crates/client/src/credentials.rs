//! The credential cache: one file for each server, written by `pdpp connect` and by other tools of the protocol.
//!
//! `<root>/clients/<host>.json`. Unknown members of a file are kept when it is written again. A credential that is
//! labelled an owner's is refused: agents read under a grant or not at all.

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

const KIND_MEMBERS: [&str; 4] = ["pdpp_token_kind", "token_kind", "kind", "role"];

const CLIENT_KINDS: [&str; 2] = ["client", "mcp_package"];

/// How long before its end a credential is renewed.
const RENEW_BEFORE: Duration = Duration::from_mins(1);

const FOLDER: &str = "clients";

#[derive(Debug, Clone)]
pub struct CredentialCache {
    root: PathBuf,
    fallback: Option<PathBuf>,
    /// Options of the `pdpp connect` that fills it.
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

    /// Falls back to another root for reading. New credentials are written below the first.
    #[must_use]
    pub fn with_fallback(mut self, root: impl Into<PathBuf>) -> Self {
        self.fallback = Some(root.into());
        self
    }

    /// Sets the options with which `pdpp connect` fills this cache, quoted for a shell.
    #[must_use]
    pub fn filled_with(mut self, options: impl Into<String>) -> Self {
        self.connect_options = options.into();
        self
    }

    pub fn file(&self, provider: &ProviderUrl) -> PathBuf {
        file_path(&self.root, provider)
    }

    pub fn load(&self, provider: &ProviderUrl, now: Instant) -> Result<Credential, ReadError> {
        for root in std::iter::once(&self.root).chain(&self.fallback) {
            let path = file_path(root, provider);
            let connect = connect_hint(&self.connect_options, provider);
            let unusable = |error: ReadError| {
                error.with_hint(format!("make it usable, or remove it and {connect}"))
            };
            if let Some(members) = file::read(&path).map_err(unusable)? {
                let stored = Stored {
                    file: path,
                    members,
                };
                return Credential::read(stored, provider, &self.connect_options, now);
            }
        }
        let message = format!("there is no credential for {provider}");
        Err(ReadError::new(ErrorCode::NotConnected, message)
            .with_hint(connect_hint(&self.connect_options, provider)))
    }

    /// The client id this machine is registered with at an authorization server, if a file has it.
    pub(crate) fn client(&self, provider: &ProviderUrl, issuer: &ProviderUrl) -> Option<String> {
        let members = file::read(&self.file(provider)).ok()??;
        let named = members.get("authorization_server")?.as_str()?;
        let same = ProviderUrl::parse(named).ok()? == *issuer;
        let id = members.get("client")?.get("client_id")?.as_str()?;
        same.then(|| id.to_owned())
    }

    /// Stores a new credential in place of an older one for the same host, under the lock that renewals hold.
    pub(crate) async fn store(
        &self,
        provider: &ProviderUrl,
        entry: &Entry<'_>,
        now: Instant,
        patience: Duration,
    ) -> Result<PathBuf, ReadError> {
        let path = self.file(provider);
        file::prepare(&path)?;
        let _held = lock(&path, patience).await?;
        // A file that cannot be read has nothing worth keeping.
        let mut members = file::read(&path).ok().flatten().unwrap_or_default();
        // The old credential's kind does not apply to this one.
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
        // It was issued for a grant; an answer of the server that says otherwise wins.
        if stated_kinds(&credential).next().is_none() {
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

struct Stored {
    file: PathBuf,
    members: Map<String, Value>,
}

/// The content of a new credential file.
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
    renew_before: Duration,
    /// Whether the token is known not to be an owner's; shared with renewed versions.
    verified: Arc<AtomicBool>,
    warning: Option<String>,
    /// Options of the `pdpp connect` that replaces it.
    connect_options: String,
}

impl Credential {
    pub fn access_token(&self) -> &Secret {
        &self.access_token
    }

    pub fn file(&self) -> &Path {
        &self.file
    }

    pub fn grant_id(&self) -> Option<&str> {
        self.text("grant_id").or(self.text("grant_package_id"))
    }

    /// A warning about the file, which can still be used.
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    pub(crate) fn refresh_token(&self) -> Option<&Secret> {
        self.refresh_token.as_ref()
    }

    /// Whether the token is known not to be an owner's, from its file or from the server.
    pub(crate) fn verified(&self) -> &AtomicBool {
        &self.verified
    }

    /// Whether it has to be renewed before use.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        let renew_before = i64::try_from(self.renew_before.as_micros()).unwrap_or(i64::MAX);
        let ends = |ends: Instant| ends.0.saturating_sub(renew_before) <= now.0;
        self.refresh_token.is_some() && self.ends.is_some_and(ends)
    }

    /// A string member of the credential, or of the file.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let own = self.members.get("credential").and_then(|own| own.get(name));
        own.or_else(|| self.members.get(name))?.as_str()
    }

    pub(crate) fn client_id(&self) -> Option<&str> {
        self.members.get("client")?.get("client_id")?.as_str()
    }

    pub(crate) fn renewed(&self, granted: &Granted, now: Instant) -> Self {
        let mut renewed = self.clone();
        if let Some(Value::Object(credential)) = renewed.members.get_mut("credential") {
            granted.write_into(credential, now);
        }
        renewed.access_token = granted.access_token.clone();
        renewed.ends = granted.expires_at(now);
        // A token that lives for seconds would otherwise be due at once.
        let half = granted.lifetime().map(|lifetime| lifetime / 2);
        renewed.renew_before = half.map_or(RENEW_BEFORE, |half| half.min(RENEW_BEFORE));
        if granted.refresh_token.is_some() {
            renewed.refresh_token.clone_from(&granted.refresh_token);
        }
        renewed
    }

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
        let stored = Stored {
            file: self.file.clone(),
            members,
        };
        let mut read = Self::read(stored, provider, &self.connect_options, now)?;
        if read.access_token == self.access_token {
            read.verified = Arc::clone(&self.verified);
        }
        Ok(read)
    }

    pub(crate) fn connect_hint(&self, provider: &ProviderUrl) -> String {
        connect_hint(&self.connect_options, provider)
    }

    fn read(
        Stored { file, members }: Stored,
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
        // Two servers of one host share a file name; a token is for one origin, and never sent in clear to the same
        // host.
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
        let verified = is_client_kind(&members) || is_client_kind(own);
        Ok(Self {
            verified: Arc::new(AtomicBool::new(verified)),
            warning: file::exposure(&file),
            connect_options: connect_options.to_owned(),
            file,
            access_token,
            refresh_token,
            ends,
            renew_before: RENEW_BEFORE,
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
    stated_kinds(members).any(|kind| kind.eq_ignore_ascii_case("owner"))
}

/// Whether an object says that it is the token of a grant or a package.
fn is_client_kind(members: &Map<String, Value>) -> bool {
    let is_named = |kind: &str| {
        CLIENT_KINDS
            .iter()
            .any(|one| kind.eq_ignore_ascii_case(one))
    };
    stated_kinds(members).any(is_named)
}

fn stated_kinds(members: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let named = KIND_MEMBERS.iter().filter_map(|name| members.get(*name));
    named.filter_map(Value::as_str).map(str::trim)
}

/// The error for an owner's credential; `where_from` is a subject and a verb.
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

fn file_path(root: &Path, provider: &ProviderUrl) -> PathBuf {
    root.join(FOLDER).join(provider.host_file_name())
}
