//! Cursor values as one column of integers that orders as the values do.

use contract::scalar::FieldKind;

use crate::records::SortValue;

/// An integer is itself. A float is its bits, made to order like it; a stream's cursor field has only one of the two.
pub(crate) fn sort_bits(value: SortValue) -> Option<i64> {
    match value {
        SortValue::Integer(value) => Some(value),
        // The two zeros are equal.
        SortValue::Real(value) => Some(in_order((value + 0.0).to_bits().cast_signed())),
        SortValue::Missing => None,
    }
}

/// The inverse, for a stream whose cursor field is of this kind.
pub(crate) fn sort_value(bits: Option<i64>, cursor: Option<FieldKind>) -> SortValue {
    match (bits, cursor) {
        (None, _) => SortValue::Missing,
        (Some(bits), Some(FieldKind::Number)) => {
            SortValue::Real(f64::from_bits(in_order(bits).cast_unsigned()))
        }
        (Some(value), _) => SortValue::Integer(value),
    }
}

/// The bits of negative floats ascend as the floats descend, so all but the sign are turned. Its own inverse.
fn in_order(bits: i64) -> i64 {
    if bits < 0 { bits ^ i64::MAX } else { bits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bits_of_floats_order_as_the_floats_do() {
        let ascending = [
            f64::NEG_INFINITY,
            -1e300,
            -1.5,
            -f64::MIN_POSITIVE,
            0.0,
            f64::MIN_POSITIVE,
            0.1,
            1e300,
            f64::INFINITY,
        ];
        let bits: Vec<_> = ascending
            .iter()
            .map(|value| sort_bits(SortValue::Real(*value)))
            .collect();
        assert!(bits.is_sorted_by(|one, next| one < next), "{bits:?}");
        for (value, bits) in ascending.iter().zip(&bits) {
            let back = sort_value(*bits, Some(FieldKind::Number));
            assert_eq!(back, SortValue::Real(*value));
        }
        let zeros = [0.0, -0.0].map(|zero| sort_bits(SortValue::Real(zero)));
        assert_eq!(zeros[0], zeros[1]);
        assert_eq!(
            sort_value(Some(-7), Some(FieldKind::Integer)),
            SortValue::Integer(-7)
        );
        assert_eq!(
            sort_value(None, Some(FieldKind::Number)),
            SortValue::Missing
        );
    }
}
