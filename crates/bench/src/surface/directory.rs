//! Data directories to be served: the corpus, copied so that the original stays as it was written, with a grant of all of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use contract::grant::Authority;
use contract::id::ConnectionId;
use contract::seal::SealingKey;
use contract::time::Clock;
use demo::Life;
use grants::{Flags, Secret, Selection};
use read::{GrantReader, ReaderSettings};
use store::search::Part;
use store::{Catalog as _, EmbeddedStore, OpenOptions, Search as _, Store};

use crate::BenchError;

pub(crate) struct GrantedDirectory {
    pub(super) folder: PathBuf,
    pub(super) token: Secret,
    /// The id of the grant, or of the package of grants.
    pub(super) grant: String,
    authority: Authority,
    clock: Arc<dyn Clock>,
}

impl GrantedDirectory {
    /// Issues the grant, as the owner would.
    pub(crate) fn granted(folder: PathBuf, clock: &Arc<dyn Clock>) -> Result<Self, BenchError> {
        let store = open(&folder, clock)?;
        let selection = everything(&store)?;
        let issued =
            grants::issue(&store, &selection, "bench", None, clock.as_ref()).map_err(refused)?;
        let grant = issued.grant_id.map(|id| id.to_string());
        let package = issued.grant_package_id.map(|id| id.to_string());
        let grant = grant.or(package);
        let token = issued.access_token;
        let resolved = grants::resolve(&store, token.expose(), clock.now()).map_err(refused)?;
        Ok(Self {
            folder,
            token,
            grant: grant.ok_or_else(|| refused("it was issued without an id"))?,
            authority: resolved.authority,
            clock: Arc::clone(clock),
        })
    }

    pub(super) fn more_tokens(&self, clients: usize) -> Result<Vec<Secret>, BenchError> {
        let store = open(&self.folder, &self.clock)?;
        let selection = everything(&store)?;
        let issue = |number: usize| {
            let client = format!("bench-{number}");
            let issued = grants::issue(
                &store,
                &selection,
                client.as_str(),
                None,
                self.clock.as_ref(),
            );
            Ok(issued.map_err(refused)?.access_token)
        };
        (0..clients).map(issue).collect()
    }

    /// A reader over the directory itself that finds without some parts.
    pub(crate) fn reader_without(&self, parts: &[Part]) -> Result<GrantReader, BenchError> {
        self.reader(open(&self.folder, &self.clock)?.without(parts))
    }

    /// A reader under this grant over another directory with the same corpus. It takes no notes of what it shows.
    pub(crate) fn reader_over(&self, folder: &Path) -> Result<GrantReader, BenchError> {
        self.reader(open(folder, &self.clock)?)
    }

    fn reader(&self, store: EmbeddedStore) -> Result<GrantReader, BenchError> {
        let settings = settings(&store, &self.clock)?;
        let store: Arc<dyn Store> = Arc::new(store);
        Ok(GrantReader::new(store, self.authority.clone(), settings))
    }
}

/// A resource server without a transport: whatever it takes to answer a question but the way to it.
pub(super) struct InProcess {
    store: Arc<dyn Store>,
    grant: String,
    settings: ReaderSettings,
}

impl InProcess {
    /// Over a directory that no other process has open.
    pub(super) fn over(directory: &GrantedDirectory) -> Result<Self, BenchError> {
        let store = open(&directory.folder, &directory.clock)?;
        Ok(Self {
            settings: settings(&store, &directory.clock)?,
            store: Arc::new(store),
            grant: directory.grant.clone(),
        })
    }

    /// A reader for one question: whose it is, is looked up each time.
    pub(super) fn reader(&self) -> Result<GrantReader, BenchError> {
        let now = self.settings.clock.now();
        let authority = grants::authority_of(&*self.store, &self.grant, now).map_err(refused)?;
        let store = Arc::clone(&self.store);
        Ok(GrantReader::new(store, authority, self.settings.clone()))
    }
}

/// Without a log of what was shown.
pub(super) fn settings(
    store: &EmbeddedStore,
    clock: &Arc<dyn Clock>,
) -> Result<ReaderSettings, BenchError> {
    Ok(ReaderSettings {
        sealing_key: SealingKey::from_bytes(store.sealing_key()?),
        public_url: "http://127.0.0.1:7420".to_owned(),
        clock: Arc::clone(clock),
        disclosures: None,
        max_bytes: None,
    })
}

fn everything(store: &EmbeddedStore) -> Result<Selection, BenchError> {
    let ids = store
        .connections()
        .into_iter()
        .map(|connection| connection.id);
    let flags = Flags {
        connections: ids.map(|id: ConnectionId| id.as_str().to_owned()).collect(),
        ..Flags::default()
    };
    Selection::from_flags(flags).map_err(refused)
}

pub(crate) fn open(folder: &Path, clock: &Arc<dyn Clock>) -> Result<EmbeddedStore, BenchError> {
    let options = OpenOptions::new("pdpp bench", Arc::clone(clock));
    Ok(EmbeddedStore::open(folder, options)?)
}

fn refused(error: impl std::fmt::Display) -> BenchError {
    BenchError::Grant(error.to_string())
}

pub(crate) fn load_life(folder: &Path, clock: &Arc<dyn Clock>) -> Result<(), BenchError> {
    let store = open(folder, clock)?;
    demo::load(&store, &Life::generate()?, &mut |_| {})?;
    Ok(store.settle_index()?)
}

/// Copies the files of a directory that no process has open.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), BenchError> {
    std::fs::create_dir_all(to).map_err(BenchError::file(to))?;
    for entry in std::fs::read_dir(from).map_err(BenchError::file(from))? {
        let entry = entry.map_err(BenchError::file(from))?;
        let (path, kind) = (entry.path(), entry.file_type());
        let target = to.join(entry.file_name());
        let kind = kind.map_err(BenchError::file(&path))?;
        if kind.is_dir() {
            copy(&path, &target)?;
        } else if kind.is_file() {
            std::fs::copy(&path, &target).map_err(BenchError::file(&path))?;
        }
    }
    Ok(())
}
