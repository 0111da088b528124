//! What an authority may see. This is the only place where a grant narrows a query.
//!
//! A [`Row`] is one stream of one connection with what its authority allows: fields, time and keys, or everything for the
//! owner. What the current declaration no longer has, a row does not have either, so a grant is always read as
//! declaration ∩ grant. Anything that cannot be understood shows nothing.

mod fields;
mod limits;
mod redactions;

use std::collections::BTreeSet;
use std::sync::Arc;

use contract::declaration::{
    Cardinality, Declaration, Expand, Pointing, Relationship, StreamDeclaration,
};
use contract::grant::{Authority, GrantedAuthority, GrantedRow, TimeConstraint};
use contract::id::{FieldName, GrantId};
use contract::json::RecordBody;
use contract::key::RecordKey;
use contract::seal::SealingKey;
use store::catalog::Connection;
use store::search::{Filter, Scope};
use store::{Store, StreamRef};

use self::limits::{RowRules, TimeLimit};
use self::redactions::Redactions;
use crate::failure::Failure;

#[derive(Clone, Copy)]
pub(crate) struct Reach<'a> {
    store: &'a dyn Store,
    authority: &'a Authority,
    sealing_key: &'a SealingKey,
}

/// One stream of one connection, as far as the authority may see it.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    connection: Arc<Connection>,
    declaration: Arc<Declaration>,
    /// Which stream of the declaration it is.
    stream_index: usize,
    /// What a grant allows; `None` for the owner, who may read everything.
    limits: Option<Arc<Limits>>,
}

#[derive(Debug)]
struct Limits {
    grant_id: GrantId,
    /// Granted and still declared.
    fields: Vec<FieldName>,
    constraint: Option<TimeConstraint>,
    time: Option<TimeLimit>,
    keys: Option<BTreeSet<RecordKey>>,
    rules: RowRules,
    redactions: Redactions,
}

/// A relationship whose child stream and foreign key the authority may see.
pub(crate) struct Relation {
    pub(crate) expand: Expand,
    pub(crate) relationship: Relationship,
    pub(crate) child: Row,
}

impl<'a> Reach<'a> {
    /// Whether meanings can be compared.
    pub(crate) fn has_model(self) -> bool {
        self.store.model().is_some()
    }

    pub(crate) fn new(
        store: &'a dyn Store,
        authority: &'a Authority,
        sealing_key: &'a SealingKey,
    ) -> Self {
        Self {
            store,
            authority,
            sealing_key,
        }
    }

    /// The client, unless the owner reads.
    pub(crate) fn client(&self) -> Option<&'a GrantedAuthority> {
        match self.authority {
            Authority::Owner => None,
            Authority::Granted(granted) => Some(granted),
        }
    }

    pub(crate) fn is_owner(&self) -> bool {
        self.client().is_none()
    }

    /// Every row, in the order of the grants; for the owner by connector, stream and connection.
    pub(crate) fn rows(&self) -> Vec<Row> {
        self.rows_where(|_| true)
    }

    pub(crate) fn rows_of(&self, stream: &str) -> Vec<Row> {
        self.rows_where(|name| name == stream)
    }

    pub(crate) fn row(&self, connection: &Arc<Connection>, stream: &str) -> Option<Row> {
        let declaration = self.store.declaration(&connection.connector)?;
        match self.authority {
            Authority::Owner => Row::whole(connection, &declaration, stream),
            Authority::Granted(granted) => {
                let row = granted.row(connection.id.as_str(), stream)?;
                self.limited(connection, &declaration, row)
            }
        }
    }

    /// The stream of a row with other limits.
    pub(crate) fn row_like(&self, row: &Row, granted: &GrantedRow) -> Option<Row> {
        self.limited(&row.connection, &row.declaration, granted)
    }

    /// Whether anything of that connection may be read.
    pub(crate) fn reaches_connection(&self, id: &str) -> bool {
        let mut connections = self.store.connections().into_iter();
        let Some(connection) = connections.find(|known| known.id.as_str() == id) else {
            return false;
        };
        let Authority::Granted(granted) = self.authority else {
            return true;
        };
        let Some(declaration) = self.store.declaration(&connection.connector) else {
            return false;
        };
        let connection = Arc::new(connection);
        let mut rows = granted.rows().iter();
        rows.any(|row| {
            row.connection.as_str() == id && self.limited(&connection, &declaration, row).is_some()
        })
    }

    /// The relationships of a row that may be followed: the related stream is visible in the same connection, and so is the
    /// foreign key, on whichever side it is.
    pub(crate) fn relations(&self, row: &Row) -> Vec<Relation> {
        let declared = row.stream().query.expand.iter();
        let visible = declared.filter_map(|expand| {
            let relationship = row.stream().relationship(&expand.name)?;
            let child = self.row(&row.connection, relationship.stream.as_str())?;
            let holder = match relationship.pointing {
                Pointing::Here => &child,
                Pointing::There => row,
            };
            holder
                .sees_field(relationship.foreign_key.as_str())
                .then(|| Relation {
                    expand: expand.clone(),
                    relationship: relationship.clone(),
                    child,
                })
        });
        visible.collect()
    }

    fn rows_where(&self, wanted: impl Fn(&str) -> bool) -> Vec<Row> {
        let connections: Vec<Arc<Connection>> =
            self.store.connections().into_iter().map(Arc::new).collect();
        match self.authority {
            Authority::Owner => self.owner_rows(&connections, wanted),
            Authority::Granted(granted) => {
                // Each question may be a round trip.
                let declarations = self.store.declarations();
                let rows = granted.rows().iter();
                let rows = rows.filter(|row| wanted(row.stream.as_str()));
                rows.filter_map(|row| {
                    let connection = connections.iter().find(|one| one.id == row.connection)?;
                    let mut declarations = declarations.iter();
                    let declaration =
                        declarations.find(|one| *one.connector_key() == connection.connector)?;
                    self.limited(connection, declaration, row)
                })
                .collect()
            }
        }
    }

    fn limited(
        &self,
        connection: &Arc<Connection>,
        declaration: &Arc<Declaration>,
        granted: &GrantedRow,
    ) -> Option<Row> {
        Row::limited(connection, declaration, granted, self.sealing_key)
    }

    fn owner_rows(
        &self,
        connections: &[Arc<Connection>],
        wanted: impl Fn(&str) -> bool,
    ) -> Vec<Row> {
        let mut rows = Vec::new();
        for declaration in self.store.declarations() {
            let streams = declaration.streams.iter();
            for stream in streams.filter(|stream| wanted(stream.name.as_str())) {
                let carriers = connections
                    .iter()
                    .filter(|connection| connection.connector == *declaration.connector_key());
                rows.extend(carriers.filter_map(|connection| {
                    Row::whole(connection, &declaration, stream.name.as_str())
                }));
            }
        }
        rows
    }
}

impl Row {
    fn whole(
        connection: &Arc<Connection>,
        declaration: &Arc<Declaration>,
        stream: &str,
    ) -> Option<Self> {
        let mut streams = declaration.streams.iter();
        Some(Self {
            connection: Arc::clone(connection),
            stream_index: streams.position(|declared| declared.name.as_str() == stream)?,
            declaration: Arc::clone(declaration),
            limits: None,
        })
    }

    /// What is left of a granted row; nothing where the grant is for another source, no granted field is declared, or the
    /// declaration does not allow one of its rules any more.
    fn limited(
        connection: &Arc<Connection>,
        declaration: &Arc<Declaration>,
        granted: &GrantedRow,
        sealing_key: &SealingKey,
    ) -> Option<Self> {
        let whole = Self::whole(connection, declaration, granted.stream.as_str())?;
        let stream = whole.stream();
        let fields: Vec<FieldName> = granted
            .fields
            .iter()
            .filter(|name| stream.field(name.as_str()).is_some())
            .cloned()
            .collect();
        if fields.is_empty() || granted.connector != connection.connector {
            return None;
        }
        let parts = stream.primary_key.len();
        let keys = granted.resources.as_ref().map(|keys| {
            let keys = keys.iter();
            keys.filter_map(|key| RecordKey::from_wire(key, parts).ok())
                .collect()
        });
        let constraint = granted.time_constraint.clone();
        let limits = Limits {
            grant_id: granted.grant_id.clone(),
            fields,
            time: constraint
                .as_ref()
                .map(|constraint| TimeLimit::new(stream, constraint)),
            constraint,
            keys,
            rules: RowRules::new(declaration, stream, granted).ok()?,
            redactions: Redactions::new(granted, sealing_key),
        };
        Some(Self {
            limits: Some(Arc::new(limits)),
            ..whole
        })
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(crate) fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    /// The stream as declared. Only names that the row sees may leave.
    #[expect(
        clippy::indexing_slicing,
        reason = "found in this declaration, which never changes"
    )]
    pub(crate) fn stream(&self) -> &StreamDeclaration {
        &self.declaration.streams[self.stream_index]
    }

    pub(crate) fn stream_ref(&self) -> StreamRef {
        StreamRef::new(&self.connection.id, &self.stream().name)
    }

    pub(crate) fn grant_id(&self) -> Option<&GrantId> {
        self.limits.as_ref().map(|limits| &limits.grant_id)
    }

    pub(crate) fn is_owner(&self) -> bool {
        self.limits.is_none()
    }

    /// The time the grant is limited to. The field's name is left out where it may not be seen.
    pub(crate) fn time_constraint(&self) -> Option<(Option<&FieldName>, &TimeConstraint)> {
        let constraint = self.limits.as_ref()?.constraint.as_ref()?;
        Some((self.visible(Some(&constraint.field)), constraint))
    }

    pub(crate) fn keys(&self) -> Option<&BTreeSet<RecordKey>> {
        self.limits.as_ref()?.keys.as_ref()
    }

    /// Whether every record of the stream may be seen.
    pub(crate) fn admits_everything(&self) -> bool {
        self.limits.as_ref().is_none_or(|limits| {
            limits.time.is_none() && limits.keys.is_none() && limits.rules.is_empty()
        })
    }

    /// The records that may count in a search or an aggregate, narrowed by the caller's own conditions.
    pub(crate) fn scope(&self, fields: Vec<FieldName>, filters: Vec<Filter>) -> Scope {
        let mut scope = Scope::whole(self.stream_ref(), fields);
        scope.filters = filters;
        if let Some(limits) = &self.limits {
            scope.rules = limits.rules.in_scope();
            scope.keys = limits
                .keys
                .as_ref()
                .map(|keys| keys.iter().cloned().collect());
            match &limits.time {
                None => {}
                Some(TimeLimit::Within(field, range)) => scope.time = Some((field.clone(), *range)),
                Some(TimeLimit::Never) => scope.keys = Some(Vec::new()),
            }
        }
        scope
    }

    /// A record as it may be shown: of redacted members, the part that is granted.
    pub(crate) fn redacted(&self, body: RecordBody) -> Result<RecordBody, Failure> {
        match &self.limits {
            Some(limits) => limits.redactions.apply(body).map_err(Failure::Damaged),
            None => Ok(body),
        }
    }

    /// Whether a record may be seen as it is now.
    pub(crate) fn admits(&self, key: &RecordKey, body: &RecordBody) -> bool {
        let Some(limits) = &self.limits else {
            return true;
        };
        let in_time = limits.time.as_ref().is_none_or(|time| time.admits(body));
        in_time && self.admits_key(key) && limits.rules.admit(body)
    }

    /// Whether a record of that key may be seen, as far as keys decide it.
    pub(crate) fn admits_key(&self, key: &RecordKey) -> bool {
        self.keys().is_none_or(|keys| keys.contains(key))
    }
}

impl Relation {
    pub(crate) fn is_many(&self) -> bool {
        self.relationship.cardinality == Cardinality::HasMany
    }
}
