//! What may be asked: the types of the PDPP read contract and the one trait that answers it.
//! No I/O, no runtime, no clock of its own. Everything that stores data stands behind these types, and everything people
//! and agents touch only translates them. Text from outside is parsed here once, into types whose rules then hold
//! everywhere.

#![warn(clippy::indexing_slicing)]

pub mod aggregate;
pub mod citation;
pub mod condition;
pub mod declaration;
pub mod document;
pub mod error;
pub mod grant;
pub mod handle;
pub mod host;
pub mod id;
pub mod json;
pub mod key;
pub mod names;
pub mod page;
pub mod query;
pub mod reader;
pub mod record;
pub mod scalar;
pub mod schema;
pub mod seal;
pub mod search;
pub mod segment;
pub mod steering;
pub mod step_up;
pub mod time;
pub mod upstream;
pub mod window;
pub mod wire;
pub mod words;

pub use error::{AvailableConnection, ConnectionChoice, ErrorCode, ReadError};
pub use handle::{Handle, HandleError, RecordHandle, WindowHandle};
pub use host::Host;
pub use id::{
    BlobId, ClientId, ConnectionId, ConnectorKey, FieldName, GrantId, IdError, PackageId,
    StreamName, ViewId,
};
pub use json::{JsonError, JsonErrorCode, JsonKind, RecordBody};
pub use key::{KeyError, RecordKey};
pub use scalar::{FieldKind, Scalar, ScalarError};
pub use seal::{Binding, CursorError, SealingKey, TokenKind};
pub use time::{Clock, Instant, TimeRange};
pub use window::{Window, WindowError, WindowRequest, WindowSelector};
