//! The one source of chance in the corpus: a 64-bit mixing generator, the same on every machine.
//! Integers only, because floating-point functions differ between platforms.

/// A small deterministic generator (the `SplitMix64` sequence).
#[derive(Debug, Clone)]
pub(super) struct Prng(u64);

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

impl Prng {
    /// A generator whose sequence depends on the seed and on a stream number: record `n` can be
    /// made without making the records before it.
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        Self(mix(seed ^ GOLDEN).wrapping_add(mix(stream.wrapping_add(1))))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// A number in `0..bound`; 0 for a bound of 0.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        let wide = u128::from(self.next()) * (bound as u128);
        usize::try_from(wide >> 64).unwrap_or(0)
    }

    /// A number in `low..=high`.
    pub(super) fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// True once in `n` times.
    pub(super) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// A position in a list of `2^octaves - 1` entries, by a Zipf-like law: every octave of ranks
    /// (1, 2–3, 4–7, …) is drawn equally often, so frequency falls with rank.
    pub(super) fn zipf(&mut self, octaves: u32) -> usize {
        let bits = self.next();
        let octave = u32::try_from(((bits & 0xFFFF) * u64::from(octaves)) >> 16).unwrap_or(0);
        let first = 1_u64 << octave;
        usize::try_from((first | ((bits >> 32) & (first - 1))) - 1).unwrap_or(0)
    }

    /// A number in `0..bound` that prefers small ones strongly (the cube of a uniform draw).
    pub(super) fn skewed(&mut self, bound: usize) -> usize {
        let uniform = u128::from(self.next() >> 43);
        let cube = uniform * uniform * uniform;
        usize::try_from((cube * (bound as u128)) >> 63).unwrap_or(0)
    }
}

/// A bijection on 64 bits that looks random.
pub(super) fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}
