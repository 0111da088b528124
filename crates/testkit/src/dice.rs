//! Small random numbers that are the same every time, so that a seed is a case.

#[derive(Debug, Clone)]
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, or none but zero where there is no such number.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.roll() % end).unwrap_or_default()
    }

    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// A part of the list, in its order, of at least one.
    pub fn some<T: Copy>(&mut self, from: &[T]) -> Vec<T> {
        let mut chosen: Vec<T> = from.iter().copied().filter(|_| self.once_in(2)).collect();
        if chosen.is_empty() {
            chosen.push(self.pick(from));
        }
        chosen
    }
}

/// How much of a random test is run: as much as usual, unless this variable of the environment asks for more.
#[expect(
    clippy::disallowed_methods,
    reason = "a long run by hand asks for more"
)]
pub fn repetitions(variable: &str, usual: u32) -> u32 {
    let asked = std::env::var(variable).ok();
    asked.and_then(|asked| asked.parse().ok()).unwrap_or(usual)
}
