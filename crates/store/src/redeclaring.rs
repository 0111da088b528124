//! What a new version of a declaration may not take away: the same rule for every database.

use contract::declaration::{Declaration, DeclarationChange, DeclarationError, DeclarationErrors};
use contract::id::StreamName;
use contract::json::RecordBody;

use crate::Result;

/// The live records of a connector, in any of its connections.
pub(crate) trait HeldRecords {
    fn any(&mut self, stream: &StreamName) -> Result<bool>;
    /// Whether any of them satisfies the test.
    fn any_with(&mut self, stream: &StreamName, test: &dyn Fn(&RecordBody) -> bool)
    -> Result<bool>;
}

/// Refuses to drop or retype what existing records hold.
pub(crate) fn refuse_losses(
    records: &mut dyn HeldRecords,
    declaration: &Declaration,
    change: &DeclarationChange,
) -> Result<()> {
    let mut refusals = Vec::new();
    for removed in &change.removed {
        let (is_held, what) = match &removed.field {
            None => (
                records.any(&removed.stream)?,
                format!(
                    "the stream {:?} is missing here, and",
                    removed.stream.as_str()
                ),
            ),
            Some(field) => {
                let has_data = |body: &RecordBody| body.get(field.as_str()).is_some();
                (
                    records.any_with(&removed.stream, &has_data)?,
                    "it is missing, and".to_owned(),
                )
            }
        };
        if is_held {
            refusals.push(DeclarationError {
                path: removed.path.clone(),
                rule: format!(
                    "{what} records hold it, so it cannot be removed; keep it, or remove the connections first"
                ),
            });
        }
    }
    for retyped in &change.retyped {
        let stream = declaration.stream(retyped.stream.as_str());
        let field = stream.and_then(|stream| stream.field(retyped.field.as_str()));
        let violates = |body: &RecordBody| match (field, body.get(retyped.field.as_str())) {
            (Some(field), Some(raw)) => !field.accepts(raw),
            _ => false,
        };
        if records.any_with(&retyped.stream, &violates)? {
            refusals.push(DeclarationError {
                path: retyped.path.clone(),
                rule: "existing records hold values of another type; widen the type instead"
                    .to_owned(),
            });
        }
    }
    if refusals.is_empty() {
        Ok(())
    } else {
        Err(DeclarationErrors(refusals).into())
    }
}
