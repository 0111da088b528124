//! The fields of a row: which are shown, which may be asked about, and what they are to the stream.

use contract::declaration::{Aggregations, FieldDeclaration, FilterOperator, View, thread_field};
use contract::error::{ErrorCode, ReadError};
use contract::grant::Redaction;
use contract::id::FieldName;
use contract::page::FieldRoles;
use contract::record::time_fields;
use contract::scalar::FieldKind;
use contract::step_up::Beyond;
use store::search::Conversation;

use super::Row;
use crate::evidence;

/// Fields that name who speaks where no field has the role.
const SPEAKERS: [&str; 4] = ["author", "author_name", "sender", "from_name"];

impl Row {
    /// Whether a member of a record may be shown. Records may hold more than is declared; that is for the owner.
    pub(crate) fn sees_member(&self, name: &str) -> bool {
        self.limits
            .as_ref()
            .is_none_or(|limits| limits.fields.iter().any(|field| field.as_str() == name))
    }

    /// How much of a member is shown, where it is not shown whole.
    pub(crate) fn redaction(&self, name: &str) -> Option<Redaction> {
        self.limits.as_ref()?.redactions.of_field(name)
    }

    /// Whether all of a member may be seen. Only such members may be looked at to find, order, group or count records.
    pub(crate) fn sees_whole(&self, name: &str) -> bool {
        self.sees_member(name) && self.redaction(name).is_none()
    }

    /// Whether a declared field may be seen whole and asked about.
    pub(crate) fn sees_field(&self, name: &str) -> bool {
        self.sees_whole(name) && self.stream().field(name).is_some()
    }

    /// The fields that may be seen, in declared order.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &FieldDeclaration> + Clone {
        let fields = self.stream().fields.iter();
        fields.filter(|field| self.sees_member(field.name.as_str()))
    }

    /// A field the caller named in `param`, or why it may not be asked about: for a client it makes no difference whether
    /// it exists.
    pub(crate) fn field(&self, name: &str, param: &str) -> Result<&FieldDeclaration, ReadError> {
        let field = self.shown_field(name, param)?;
        if self.sees_whole(name) {
            return Ok(field);
        }
        let message =
            format!("field '{name}' is granted in part, so it can be shown and not asked about");
        let error = ReadError::new(ErrorCode::FieldNotGranted, message).with_param(param);
        Err(self.beyond(error, |beyond| beyond.fields = Some(vec![name.to_owned()])))
    }

    /// Says for a client what it named beyond the row.
    pub(crate) fn beyond(&self, error: ReadError, named: impl FnOnce(&mut Beyond)) -> ReadError {
        if self.is_owner() {
            return error;
        }
        let connection = self.connection().id.as_str();
        let mut beyond = Beyond::stream(self.stream().name.as_str(), Some(connection));
        named(&mut beyond);
        error.with_beyond(beyond)
    }

    /// A field the caller named in `param` to be shown it, whole or in part.
    pub(crate) fn shown_field(
        &self,
        name: &str,
        param: &str,
    ) -> Result<&FieldDeclaration, ReadError> {
        if self.sees_member(name)
            && let Some(field) = self.stream().field(name)
        {
            return Ok(field);
        }
        let (code, problem) = if self.is_owner() {
            (ErrorCode::UnknownField, "is not declared")
        } else {
            (ErrorCode::FieldNotGranted, "is not granted")
        };
        let stream = &self.stream().name;
        let message = format!("field '{name}' of stream '{stream}' {problem}");
        let error = ReadError::new(code, message)
            .with_param(param)
            .with_hint(format!("schema with stream={stream} lists the fields"));
        Err(self.beyond(error, |beyond| beyond.fields = Some(vec![name.to_owned()])))
    }

    /// The field that orders records, where it may be seen.
    pub(crate) fn cursor_field(&self) -> Option<&FieldName> {
        self.visible(self.stream().cursor_field.as_ref())
    }

    /// The field that says when a record belongs to, where it may be seen.
    pub(crate) fn consent_time_field(&self) -> Option<&FieldName> {
        self.visible(self.stream().consent_time_field.as_ref())
    }

    /// The fields that may hold the time of a record, as far as they may be seen; the first with a value decides.
    pub(crate) fn time_fields(&self) -> Vec<FieldName> {
        let stream = self.stream();
        let declared = [&stream.consent_time_field, &stream.cursor_field];
        let declared = declared.map(|field| field.as_ref().map(FieldName::as_str));
        let seen = time_fields(declared).filter(|name| self.sees_field(name));
        let fields = seen.filter_map(|name| stream.field(name));
        fields.map(|field| field.name.clone()).collect()
    }

    /// Those of them that are declared as dates or date-times, by which records are ordered and found in a period.
    pub(crate) fn dated_by(&self) -> Vec<FieldName> {
        let is_dated = |name: &FieldName| {
            let field = self.stream().field(name.as_str());
            field.is_some_and(|field| matches!(field.kind, FieldKind::Date | FieldKind::DateTime))
        };
        let mut fields = self.time_fields();
        fields.retain(is_dated);
        fields
    }

    /// The field that names who wrote a record, as far as it may be seen.
    pub(crate) fn author_field(&self) -> Option<&FieldName> {
        let mut fields = self.whole_fields();
        let field = fields.find(|field| field.role.as_deref() == Some("author"))?;
        Some(&field.name)
    }

    /// The field whose words count double in conversations: that of the author, else one that is usually named so.
    pub(crate) fn speaker_field(&self) -> Option<&FieldName> {
        let by_name = |name: &str| {
            let mut fields = self.whole_fields();
            Some(&fields.find(|field| field.name.as_str() == name)?.name)
        };
        let by_role = self.author_field();
        by_role.or_else(|| SPEAKERS.into_iter().find_map(by_name))
    }

    /// The fields that say what a record is, as far as they may be seen.
    pub(crate) fn roles(&self) -> Option<FieldRoles> {
        let roles = FieldRoles {
            title: evidence::title_fields(self)
                .find(|name| self.stream().field(name).is_some())
                .map(str::to_owned),
            author: self.author_field().map(ToString::to_string),
            time: self.time_fields().first().map(ToString::to_string),
        };
        (roles != FieldRoles::default()).then_some(roles)
    }

    /// The fields that make conversations of the records, as far as they may be seen: those with the roles `thread` and
    /// `order`, else those usually named so; the order is that of the stream's cursor where no field says it.
    pub(crate) fn conversation(&self) -> Option<Conversation> {
        let by_role = |role: &str| {
            let mut fields = self.whole_fields();
            fields.find(|one| one.role.as_deref() == Some(role))
        };
        let by_name = |name: &str| self.whole_fields().find(|one| one.name.as_str() == name);
        let thread = thread_field(self.whole_fields())?;
        let order = by_role("order")
            .or_else(|| by_name("order"))
            .map(|field| &field.name);
        let order = order.or_else(|| self.cursor_field())?;
        Some(Conversation {
            thread: thread.name.clone(),
            order: order.clone(),
        })
    }

    pub(super) fn visible<'f>(&self, field: Option<&'f FieldName>) -> Option<&'f FieldName> {
        field.filter(|name| self.sees_whole(name.as_str()))
    }

    /// The fields that may be seen whole, in declared order.
    fn whole_fields(&self) -> impl Iterator<Item = &FieldDeclaration> + Clone {
        self.fields()
            .filter(|field| self.sees_whole(field.name.as_str()))
    }

    /// The searched fields that may be seen, in declared order.
    pub(crate) fn lexical_fields(&self) -> Vec<FieldName> {
        self.kept(&self.stream().query.lexical_fields)
    }

    /// The fields whose meaning is compared, as far as they may be seen.
    pub(crate) fn semantic_fields(&self) -> Vec<FieldName> {
        self.kept(&self.stream().semantic_fields())
    }

    pub(crate) fn range_operators(&self, field: &FieldName) -> Option<&[FilterOperator]> {
        let declared = self.stream().query.range_filters.get(field)?;
        self.sees_whole(field.as_str())
            .then_some(declared.as_slice())
    }

    /// The aggregates that may be asked for; `None` where the row sees none of their fields.
    pub(crate) fn aggregations(&self) -> Option<Aggregations> {
        let declared = self.stream().query.aggregations.as_ref()?;
        let visible = Aggregations {
            count: declared.count,
            sum: self.kept(&declared.sum),
            min: self.kept(&declared.min),
            max: self.kept(&declared.max),
            group_by: self.kept(&declared.group_by),
            group_by_time: self.kept(&declared.group_by_time),
            count_distinct: self.kept(&declared.count_distinct),
        };
        (visible != Aggregations::default()).then_some(visible)
    }

    fn kept(&self, fields: &[FieldName]) -> Vec<FieldName> {
        let visible = fields.iter().filter(|name| self.sees_whole(name.as_str()));
        visible.cloned().collect()
    }

    /// Whether all these fields may be seen.
    pub(crate) fn sees_all(&self, fields: &[FieldName]) -> bool {
        fields.iter().all(|name| self.sees_member(name.as_str()))
    }

    pub(crate) fn views(&self) -> impl Iterator<Item = &View> {
        let views = self.stream().views.iter();
        views.filter(|view| self.sees_all(&view.fields))
    }
}
