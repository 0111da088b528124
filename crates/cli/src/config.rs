//! Settings: the command line first, then the environment, then defaults. Nothing else reads the environment.

use std::path::PathBuf;

use etcetera::base_strategy::{BaseStrategy, choose_native_strategy};

use crate::args::GlobalOptions;
use crate::failure::Failure;

/// What a run is configured with.
#[derive(Debug)]
pub(crate) struct Settings {
    /// Where the data lives.
    pub(crate) data_dir: PathBuf,
}

impl Settings {
    /// Puts the settings together.
    pub(crate) fn resolve(global: &GlobalOptions) -> Result<Self, Failure> {
        let named = global
            .data_dir
            .clone()
            .or_else(|| std::env::var_os("PDPP_DATA_DIR").map(PathBuf::from));
        let data_dir = match named {
            Some(path) if !path.as_os_str().is_empty() => path,
            _ => default_data_dir()?,
        };
        Ok(Self { data_dir })
    }
}

fn default_data_dir() -> Result<PathBuf, Failure> {
    choose_native_strategy()
        .map(|folders| folders.data_dir().join("pdpp"))
        .map_err(|_| {
            Failure::new("this user has no home folder to keep data in")
                .hint("name a folder with --data-dir or PDPP_DATA_DIR")
        })
}
