//! Bars over time, drawn as SVG, each a link to what it counts; a table says the same for readers who do not see them.

use super::format::format_number;

/// The width of the drawing, in its own units; it is stretched to the page.
const WIDTH: u64 = 1_000;
const HEIGHT: u64 = 100;

/// What one bar stands for.
pub(super) struct Bucket {
    pub(super) name: String,
    pub(super) address: String,
    /// Records by the colour of their connector.
    pub(super) counts: Vec<(usize, u64)>,
    pub(super) here: bool,
}

pub(super) struct Chart {
    pub(super) bars: Vec<Bar>,
    pub(super) first: String,
    pub(super) last: String,
    /// The highest count, and what it counts.
    pub(super) most: String,
    pub(super) most_at: String,
}

pub(super) struct Bar {
    pub(super) name: String,
    pub(super) address: String,
    pub(super) total: String,
    pub(super) here: bool,
    pub(super) x: u64,
    pub(super) width: u64,
    pub(super) parts: Vec<BarPart>,
}

pub(super) struct BarPart {
    pub(super) y: u64,
    pub(super) height: u64,
    pub(super) colour: usize,
}

impl Chart {
    pub(super) fn new(buckets: Vec<Bucket>) -> Self {
        let total = |bucket: &Bucket| bucket.counts.iter().map(|(_, count)| count).sum::<u64>();
        let most = buckets.iter().map(total).max().unwrap_or_default().max(1);
        let highest = buckets.iter().max_by_key(|bucket| total(bucket));
        let most_at = highest.map_or_else(String::new, |bucket| bucket.address.clone());
        let name = |bucket: Option<&Bucket>| bucket.map(|one| one.name.clone()).unwrap_or_default();
        let (first, last) = (name(buckets.first()), name(buckets.last()));
        let step = WIDTH / u64::try_from(buckets.len().max(1)).unwrap_or(WIDTH);
        let step = step.max(1);
        let mut bars = Vec::new();
        for (at, bucket) in buckets.into_iter().enumerate() {
            bars.push(Bar {
                total: format_number(total(&bucket)),
                parts: stacked(&bucket.counts, most),
                x: step * u64::try_from(at).unwrap_or_default(),
                width: (step * 4 / 5).max(1),
                name: bucket.name,
                address: bucket.address,
                here: bucket.here,
            });
        }
        Self {
            bars,
            first,
            last,
            most: format_number(most),
            most_at,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bars.is_empty()
    }
}

/// The parts of a bar, from the ground up. What is there at all can be seen.
fn stacked(counts: &[(usize, u64)], most: u64) -> Vec<BarPart> {
    let mut ground = HEIGHT;
    let mut parts = Vec::new();
    for (colour, count) in counts.iter().filter(|(_, count)| *count > 0) {
        let height = (count.saturating_mul(HEIGHT) / most).max(1).min(ground);
        ground -= height;
        parts.push(BarPart {
            y: ground,
            height,
            colour: *colour,
        });
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_stand_on_the_ground_and_the_highest_fills_the_picture() {
        let bucket = |name: &str, counts: &[(usize, u64)]| Bucket {
            name: name.to_owned(),
            address: String::new(),
            counts: counts.to_vec(),
            here: false,
        };
        let chart = Chart::new(vec![
            bucket("Jan", &[(0, 50), (1, 50)]),
            bucket("Feb", &[]),
            bucket("Mar", &[(0, 1)]),
        ]);
        let heights = |bar: &Bar| bar.parts.iter().map(|one| one.height).collect::<Vec<_>>();
        let bars: Vec<Vec<u64>> = chart.bars.iter().map(heights).collect();
        assert_eq!(bars, [vec![50, 50], vec![], vec![1]]);
        assert_eq!((chart.first.as_str(), chart.last.as_str()), ("Jan", "Mar"));
        assert_eq!(chart.most, "100");
        assert!(chart.bars.iter().all(|bar| bar.x + bar.width <= WIDTH));
    }
}
