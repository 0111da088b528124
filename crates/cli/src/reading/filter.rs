//! What stands in one word on the command line and in brackets over REST: conditions, and limits of relationships.

use contract::error::{ErrorCode, ReadError};
use contract::query::split_condition;

use crate::failure::{CommandResult, Failure};
use crate::output::visible;

/// `field=value`, `field>=value`, `field>value`, `field<=value`, `field<value` or `field~=value` as a parameter.
pub(super) fn param(text: &str) -> CommandResult<(String, String)> {
    let Some((field, operator, value)) = split_condition(text) else {
        let message = format!("'{}' is not a filter", visible(text));
        return Err(refused(
            message,
            "write 'field=value', 'field>=value' with >=, >, <= or <, or 'field~=value' for an array; `pdpp help filters` says more",
        ));
    };
    let name = match operator {
        None if field.ends_with('~') && field.len() > 1 => {
            format!("filter[{}][contains]", field.trim_end_matches('~'))
        }
        Some(operator) => format!("filter[{field}][{operator}]"),
        None => format!("filter[{field}]"),
    };
    Ok((name, value.to_owned()))
}

/// The field a filter is about, if it is one.
pub(super) fn field(text: &str) -> Option<&str> {
    let end = text.find(['=', '<', '>'])?;
    let field = text.get(..end)?;
    Some(field.strip_suffix('~').unwrap_or(field))
}

/// `relationship=number` as a parameter.
pub(super) fn expand_limit(text: &str) -> CommandResult<(String, String)> {
    match text.split_once('=') {
        Some((relation, number)) if !relation.is_empty() => {
            Ok((format!("expand_limit[{relation}]"), number.to_owned()))
        }
        _ => Err(refused(
            format!("'{}' limits no relationship", visible(text)),
            "write relationship=number, for example --expand-limit attachments=5",
        )),
    }
}

fn refused(message: String, hint: &str) -> Failure {
    ReadError::new(ErrorCode::InvalidArguments, message)
        .with_hint(hint)
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sign_divides_field_and_value() {
        for (text, name, value) in [
            ("a=b", "filter[a]", "b"),
            ("a=", "filter[a]", ""),
            ("a=b=c", "filter[a]", "b=c"),
            ("a==b", "filter[a]", "=b"),
            ("a>=1", "filter[a][gte]", "1"),
            ("a>1", "filter[a][gt]", "1"),
            ("a<=-1", "filter[a][lte]", "-1"),
            ("a<1", "filter[a][lt]", "1"),
            ("a~=b", "filter[a][contains]", "b"),
            ("a=~b", "filter[a]", "~b"),
            ("sent at>=x y", "filter[sent at][gte]", "x y"),
        ] {
            let expected = (name.to_owned(), value.to_owned());
            assert_eq!(param(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_condition_is_refused_with_the_forms() {
        for text in ["", "a", "=b", ">=1", "a!=b"] {
            let told = param(text).unwrap_err().to_string();
            assert!(told.contains("field>=value"), "{told}");
        }
        for text in ["", "files", "=3"] {
            assert!(expand_limit(text).is_err(), "{text}");
        }
    }
}
