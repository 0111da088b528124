//! What a pass over a million vectors takes, beside the bare comparison of their bits.

use std::fmt;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use store::VectorScan;

/// As many vectors, of as many bits.
const VECTORS: u64 = if cfg!(debug_assertions) {
    10_000
} else {
    1_000_000
};
const WORDS: u64 = 6;
const RUNS: usize = 21;

/// The median of several passes.
pub(super) struct Scan {
    ours: Duration,
    bare: Duration,
}

pub(super) fn measure() -> Scan {
    let mut scan = VectorScan::new(usize::try_from(WORDS).unwrap_or_default() * 64);
    let mut bits = Vec::new();
    for vector in 0..VECTORS {
        let words: Vec<u64> = (0..WORDS)
            .map(|word| spread(vector * WORDS + word))
            .collect();
        scan.add(vector, &words);
        bits.extend(words);
    }
    let asked: Vec<u64> = (0..WORDS).map(|word| spread(u64::MAX - word)).collect();
    Scan {
        ours: median(|| scan.nearest(&asked, 500)),
        bare: median(|| nearest(&bits, &asked)),
    }
}

/// The number of the vector with the fewest bits that differ.
fn nearest(bits: &[u64], asked: &[u64]) -> usize {
    let (vectors, _) = bits.as_chunks::<6>();
    let distance = |vector: &[u64; 6]| -> u32 {
        vector
            .iter()
            .zip(asked)
            .map(|(one, other)| (one ^ other).count_ones())
            .sum()
    };
    let distances = vectors.iter().map(distance).enumerate();
    distances
        .min_by_key(|(_, distance)| *distance)
        .map_or(0, |(at, _)| at)
}

fn median(mut run: impl FnMut() -> usize) -> Duration {
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let begin = Instant::now();
            std::hint::black_box(run());
            begin.elapsed()
        })
        .collect();
    times.sort_unstable();
    times.get(RUNS / 2).copied().unwrap_or_default()
}

/// Bits that look random.
fn spread(seed: u64) -> u64 {
    let mut x = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^ (x >> 27)
}

impl Scan {
    fn ratio(&self) -> f64 {
        self.ours.as_secs_f64() / self.bare.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    pub(super) fn json(&self) -> Value {
        let millis = |time: Duration| time.as_secs_f64() * 1000.0;
        json!({"vectors": VECTORS, "bits": WORDS * 64, "ours_ms": millis(self.ours), "bare_ms": millis(self.bare), "ratio": self.ratio()})
    }
}

impl fmt::Display for Scan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = |time: Duration| time.as_secs_f64() * 1000.0;
        write!(
            f,
            "the 500 nearest of {VECTORS} vectors of {} bits: {:.1} ms, {:.1} times the bare comparison ({:.1} ms)",
            WORDS * 64,
            millis(self.ours),
            self.ratio(),
            millis(self.bare)
        )
    }
}
