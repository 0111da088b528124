//! Equality of JSON values, exact in every number.

use std::borrow::Cow;

use super::{JsonError, number, scan::Scanner};

/// A value in the form in which it is compared: strings decoded, members sorted by name, the rest as written.
enum Value<'t> {
    Bare(&'t str),
    Text(Cow<'t, str>),
    Array(Vec<Value<'t>>),
    Object(Vec<(Cow<'t, str>, Value<'t>)>),
}

/// Whether two texts are the same JSON value.
///
/// The order of members and white space do not matter, strings are compared decoded, and numbers by exact value:
/// `1`, `1.0` and `10e-1` are the same, `9007199254740993` and `9007199254740992` are not. A text that is not JSON is
/// only the same as itself.
pub fn same_value(a: &str, b: &str) -> bool {
    a == b || matches!((whole(a), whole(b)), (Ok(a), Ok(b)) if same(&a, &b))
}

fn same(a: &Value<'_>, b: &Value<'_>) -> bool {
    match (a, b) {
        (Value::Bare(a), Value::Bare(b)) => number::same_number(a, b),
        (Value::Text(a), Value::Text(b)) => a == b,
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .zip(b)
                    .all(|((left, a), (right, b))| left == right && same(a, b))
        }
        _ => false,
    }
}

fn whole(text: &str) -> Result<Value<'_>, JsonError> {
    let mut scanner = Scanner::new(text);
    scanner.skip_white_space();
    let value = read(&mut scanner, 1)?;
    scanner.end()?;
    Ok(value)
}

fn read<'t>(scanner: &mut Scanner<'t>, depth: usize) -> Result<Value<'t>, JsonError> {
    match scanner.peek() {
        Some(b'"') => scanner.string().map(Value::Text),
        Some(b'[') => {
            let mut values = Vec::new();
            elements(scanner, depth, b']', |scanner| {
                values.push(read(scanner, depth + 1)?);
                Ok(())
            })?;
            Ok(Value::Array(values))
        }
        Some(b'{') => {
            let mut members = Vec::new();
            elements(scanner, depth, b'}', |scanner| {
                members.push(member(scanner, depth)?);
                Ok(())
            })?;
            members.sort_by(|(a, _), (b, _)| a.cmp(b));
            Ok(Value::Object(members))
        }
        _ => scanner.bare_scalar().map(Value::Bare),
    }
}

fn member<'t>(
    scanner: &mut Scanner<'t>,
    depth: usize,
) -> Result<(Cow<'t, str>, Value<'t>), JsonError> {
    if scanner.peek() != Some(b'"') {
        return Err(scanner.malformed("expected a member name in double quotes"));
    }
    let name = scanner.string()?;
    scanner.skip_white_space();
    scanner.expect(b':', "expected ':' after the member name")?;
    scanner.skip_white_space();
    Ok((name, read(scanner, depth + 1)?))
}

/// Reads what stands between the opening bracket that is next and `close`, calling `each` for every element.
fn elements<'t>(
    scanner: &mut Scanner<'t>,
    depth: usize,
    close: u8,
    mut each: impl FnMut(&mut Scanner<'t>) -> Result<(), JsonError>,
) -> Result<(), JsonError> {
    scanner.check_depth(depth)?;
    scanner.skip();
    scanner.skip_white_space();
    if scanner.takes(close) {
        return Ok(());
    }
    loop {
        scanner.skip_white_space();
        each(scanner)?;
        scanner.skip_white_space();
        if scanner.takes(close) {
            return Ok(());
        }
        scanner.expect(b',', "expected ',' between elements")?;
    }
}
