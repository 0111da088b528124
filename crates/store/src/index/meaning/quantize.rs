//! Vectors in few bytes: the sign of each number for a first look, and eight bits of it for a second.

/// A vector in eight bits per number.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Code {
    pub(super) scale: f32,
    pub(super) numbers: Vec<i8>,
}

/// How many words of 64 bits hold the signs.
pub(super) fn words_for(dimensions: usize) -> usize {
    dimensions.div_ceil(64)
}

/// The signs of a vector, as bits.
pub(super) fn signs(vector: &[f32]) -> Vec<u64> {
    let word = |part: &[f32]| {
        let bits = part.iter().enumerate();
        bits.fold(0, |word, (at, number)| {
            word | u64::from(*number > 0.0) << at
        })
    };
    vector.chunks(64).map(word).collect()
}

impl Code {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the numbers are between -127 and 127"
    )]
    pub(super) fn new(vector: &[f32]) -> Self {
        let most = vector
            .iter()
            .fold(0.0_f32, |most, number| most.max(number.abs()));
        let scale = most / 127.0;
        let numbers = vector.iter().map(|number| match scale {
            0.0 => 0,
            _ => (number / scale).round() as i8,
        });
        Self {
            scale,
            numbers: numbers.collect(),
        }
    }

    pub(super) fn from_bytes(scale: f32, bytes: &[u8]) -> Self {
        let numbers = bytes.iter().map(|byte| byte.cast_signed()).collect();
        Self { scale, numbers }
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        self.numbers
            .iter()
            .map(|number| number.cast_unsigned())
            .collect()
    }

    /// How alike this and a vector of unit length are.
    pub(super) fn cosine(&self, question: &[f32]) -> f32 {
        let numbers = self.numbers.iter().zip(question);
        let sum: f32 = numbers
            .map(|(number, asked)| f32::from(*number) * asked)
            .sum();
        sum * self.scale
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_bits_keep_a_vector_nearly_as_it_is() {
        let vector: Vec<f32> = (0_i16..100)
            .map(|at| f32::from(at % 7 - 3) / 20.0)
            .collect();
        let length = vector
            .iter()
            .map(|number| number * number)
            .sum::<f32>()
            .sqrt();
        let vector: Vec<f32> = vector.iter().map(|number| number / length).collect();
        let code = Code::new(&vector);
        assert!((code.cosine(&vector) - 1.0).abs() < 0.01);
        assert_eq!(Code::from_bytes(code.scale, &code.bytes()), code);
        assert_eq!(Code::new(&[0.0; 3]).numbers, [0; 3]);
        assert_eq!(signs(&vector).len(), words_for(100));
        assert_eq!(signs(&[1.0, -1.0, 0.0, 2.0]), [0b1001]);
    }
}
