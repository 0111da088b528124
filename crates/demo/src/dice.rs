//! The one source of chance: a 64-bit mixing generator, the same on every machine. Integers only.

/// A generator whose sequence depends on a name alone, so that one source can change without changing the others.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

impl Dice {
    pub(crate) fn new(name: &str) -> Self {
        Self(name.bytes().fold(STEP, |state, byte| {
            mix(state ^ u64::from(byte)).wrapping_add(STEP)
        }))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// A number in `0..bound`; 0 for a bound of 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let wide = u128::from(self.next()) * (bound as u128);
        usize::try_from(wide >> 64).unwrap_or(0)
    }

    /// A number in `low..=high`.
    pub(crate) fn between(&mut self, low: i64, high: i64) -> i64 {
        let span = usize::try_from(high - low + 1).unwrap_or(0);
        low + i64::try_from(self.below(span)).unwrap_or(0)
    }

    /// True once in `n` times.
    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// A small number in `1..=most` that is mostly very small.
    pub(crate) fn few(&mut self, most: usize) -> usize {
        let (first, second) = (self.below(most), self.below(most));
        1 + first * second / most.max(1)
    }

    /// One of a list, which must not be empty.
    pub(crate) fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_stay_inside_their_bounds() {
        let mut dice = Dice::new("bounds");
        for _ in 0..10_000 {
            assert!(dice.below(13) < 13);
            assert!((3..=9).contains(&dice.between(3, 9)));
            assert!((1..=12).contains(&dice.few(12)));
        }
        assert_eq!(dice.below(0), 0);
    }

    #[test]
    fn the_sequence_depends_on_the_name() {
        assert_eq!(Dice::new("a").next(), Dice::new("a").next());
        assert_ne!(Dice::new("a").next(), Dice::new("b").next());
    }
}
