//! Numbers as exact decimals, never through floating point.

use super::scan::is_number;

/// Up to this many zeros are written out in the normal form; beyond, an exponent takes their place.
const ZEROS_WRITTEN: i128 = 40;

/// Exponents of up to this many digits are added exactly; longer ones are compared by their digits.
const EXPONENT_DIGITS: usize = 30;

/// The one spelling of a number's value: `1.0`, `10e-1` and `1` all give `1`.
///
/// No digit is lost, and the work and the size of the answer are bounded by the length of the text, whatever the
/// exponent. Numbers of ordinary size are written plainly, so an integer comes out as its digits. A text that is not a
/// JSON number is returned as it is.
pub fn canonical_number(raw: &str) -> String {
    if !is_number(raw) {
        return raw.to_owned();
    }
    let (sign, unsigned) = match raw.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", raw),
    };
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let significant = all.trim_start_matches('0');
    let digits = significant.trim_end_matches('0');
    if digits.is_empty() {
        return "0".to_owned();
    }
    // The value is `digits` times ten to the power of the written exponent plus `shift`.
    let shift = (significant.len() - digits.len()) as i128 - fraction.len() as i128;
    let (exponent_sign, exponent_digits) = match exponent.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, exponent.strip_prefix('+').unwrap_or(exponent)),
    };
    let exponent_digits = exponent_digits.trim_start_matches('0');
    if exponent_digits.len() > EXPONENT_DIGITS {
        let minus = if exponent_sign < 0 { "-" } else { "" };
        return format!("{sign}{digits}e{minus}{exponent_digits}{shift:+}");
    }
    let written: i128 = exponent_digits.parse().unwrap_or(0);
    format!("{sign}{}", spelled(digits, exponent_sign * written + shift))
}

/// Writes `digits` times ten to the power of `exponent`; `digits` neither begins nor ends with a zero.
fn spelled(digits: &str, exponent: i128) -> String {
    let length = digits.len() as i128;
    let zeros = |count: i128| "0".repeat(usize::try_from(count).unwrap_or(0));
    match exponent {
        0..=ZEROS_WRITTEN => format!("{digits}{}", zeros(exponent)),
        _ if exponent < 0 && -exponent < length => {
            let point = usize::try_from(length + exponent).unwrap_or(0);
            let (whole, fraction) = digits.split_at(point);
            format!("{whole}.{fraction}")
        }
        _ if exponent < 0 && -exponent - length <= ZEROS_WRITTEN => {
            format!("0.{}{digits}", zeros(-exponent - length))
        }
        _ => format!("{digits}e{exponent}"),
    }
}

/// Whether two JSON numbers have exactly the same value.
pub(super) fn same_number(a: &str, b: &str) -> bool {
    a == b || canonical_number(a) == canonical_number(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_values_have_one_spelling() {
        for (raw, canonical) in [
            ("1", "1"),
            ("1.0", "1"),
            ("10e-1", "1"),
            ("0.00100", "0.001"),
            ("-12.50E+1", "-125"),
            ("-0", "0"),
            ("0e999999999999999999999999", "0"),
            ("100", "100"),
            ("12345678901234567890.123", "12345678901234567890.123"),
            ("1e999999999", "1e999999999"),
            ("10e999999998", "1e999999999"),
            ("1e-999999999", "1e-999999999"),
            ("1e0000000000000000000000000000000000000000000000002", "100"),
        ] {
            assert_eq!(canonical_number(raw), canonical, "{raw}");
        }
    }

    #[test]
    fn values_that_floats_confuse_stay_apart() {
        assert!(!same_number("9007199254740993", "9007199254740992"));
        assert!(!same_number("0.1", "0.1000000000000000055511151231257827"));
        assert!(!same_number("1e400", "1e401"));
        let long = format!("1e{}", "9".repeat(60));
        assert!(!same_number(&long, "1e9"));
        assert!(same_number(&long, &long.replace('e', "E+")));
    }

    #[test]
    fn a_text_that_is_no_number_is_returned_as_it_is() {
        for text in ["", "-", "01", "1.", ".5", "+1", "1e", "NaN", "0x1", "1 "] {
            assert_eq!(canonical_number(text), text);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn moving_the_point_changes_nothing(digits in "[1-9][0-9]{0,30}", shift in 0_usize..60, negative: bool) {
            let sign = if negative { "-" } else { "" };
            let plain = format!("{sign}{digits}");
            let moved = format!("{sign}{digits}{}e-{shift}", "0".repeat(shift));
            prop_assert_eq!(canonical_number(&plain), plain.as_str());
            prop_assert!(same_number(&moved, &canonical_number(&moved)));
            prop_assert!(same_number(&plain, &moved));
        }

        #[test]
        fn the_normal_form_is_stable(raw in "-?(0|[1-9][0-9]{0,8})(\\.[0-9]{1,8})?([eE][+-]?[0-9]{1,4})?") {
            let once = canonical_number(&raw);
            prop_assert_eq!(canonical_number(&once), once.clone());
            // Zero has no sign in the normal form.
            let (left, right): (f64, f64) = (raw.parse().unwrap(), once.parse().unwrap());
            prop_assert_eq!(left.abs().to_bits(), right.abs().to_bits());
        }
    }
}
