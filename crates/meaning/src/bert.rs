//! The network: a BERT encoder in single precision.
//!
//! Several texts are run at once as one long list of tokens; only attention looks at each by itself. So no text is padded,
//! and a text's vector does not depend on the others it is run with.

use ndarray::{Array1, Array2, ArrayView2, Axis, Slice};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use crate::folder::{Config, Folder, ModelError, Pooling};

pub(crate) struct Bert {
    words: Array2<f32>,
    positions: Array2<f32>,
    /// What is added to every token: all texts are of the first kind.
    kind: Array1<f32>,
    norm: Norm,
    layers: Vec<Layer>,
    heads: usize,
    pooling: Pooling,
}

struct Layer {
    query: Linear,
    key: Linear,
    value: Linear,
    attended: Linear,
    attended_norm: Norm,
    widen: Linear,
    narrow: Linear,
    norm: Norm,
}

/// `x * weights + bias`.
struct Linear {
    weights: Array2<f32>,
    bias: Array1<f32>,
}

/// Brings each row to mean 0 and variance 1, then scales and shifts it.
struct Norm {
    scale: Array1<f32>,
    shift: Array1<f32>,
    epsilon: f32,
}

impl Linear {
    fn run(&self, input: &Array2<f32>) -> Array2<f32> {
        let mut output = input.dot(&self.weights);
        output += &self.bias;
        output
    }
}

impl Norm {
    #[expect(
        clippy::cast_precision_loss,
        reason = "a row has at most some thousand numbers"
    )]
    fn run(&self, rows: &mut Array2<f32>) {
        for mut row in rows.rows_mut() {
            let length = row.len() as f32;
            let mean = row.sum() / length;
            let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / length;
            let factor = 1.0 / (variance + self.epsilon).sqrt();
            for ((x, scale), shift) in row.iter_mut().zip(&self.scale).zip(&self.shift) {
                *x = (*x - mean) * factor * scale + shift;
            }
        }
    }
}

impl Bert {
    pub(crate) fn load(folder: &Folder) -> Result<Self, ModelError> {
        let tensors = SafeTensors::deserialize(&folder.weights)
            .map_err(|error| folder.malformed_weights(error))?;
        // A model that was saved with its head has its encoder under a name.
        let is_nested = tensors
            .tensor("bert.embeddings.word_embeddings.weight")
            .is_ok();
        let source = Weights {
            folder,
            tensors,
            prefix: if is_nested { "bert." } else { "" },
        };
        let Config {
            hidden_size: size,
            num_hidden_layers,
            max_position_embeddings,
            ..
        } = folder.config;
        let words = source.matrix("embeddings.word_embeddings.weight")?;
        let positions = source.matrix("embeddings.position_embeddings.weight")?;
        let kinds = source.matrix("embeddings.token_type_embeddings.weight")?;
        let is_wide = words.ncols() == size && positions.ncols() == size && kinds.ncols() == size;
        if !is_wide || positions.nrows() < max_position_embeddings || kinds.nrows() == 0 {
            return Err(
                folder.malformed_weights("its embeddings have another shape than config.json says")
            );
        }
        let layers = (0..num_hidden_layers).map(|number| source.layer(number));
        Ok(Self {
            kind: kinds.row(0).to_owned(),
            words,
            positions,
            norm: source.norm("embeddings.LayerNorm")?,
            layers: layers.collect::<Result<_, _>>()?,
            heads: folder.config.num_attention_heads,
            pooling: folder.pooling,
        })
    }

    /// How many tokens it knows.
    pub(crate) fn vocabulary(&self) -> usize {
        self.words.nrows()
    }

    /// The vector of each text, of unit length. Tokens and positions must be known.
    pub(crate) fn run(&self, texts: &[&[u32]]) -> Vec<Vec<f32>> {
        let mut state = self.embeddings(texts);
        self.norm.run(&mut state);
        for layer in &self.layers {
            state = self.run_layer(layer, texts, &state);
        }
        let mut start = 0;
        let mut vectors = Vec::with_capacity(texts.len());
        for text in texts {
            let rows = state.slice_axis(Axis(0), Slice::from(start..start + text.len()));
            start += text.len();
            vectors.push(self.pool(&rows));
        }
        vectors
    }

    fn embeddings(&self, texts: &[&[u32]]) -> Array2<f32> {
        let tokens: usize = texts.iter().map(|text| text.len()).sum();
        let mut state = Array2::zeros((tokens, self.kind.len()));
        let places = texts.iter().flat_map(|text| text.iter().enumerate());
        for (mut row, (position, token)) in state.rows_mut().into_iter().zip(places) {
            row += &self.words.row(*token as usize);
            row += &self.positions.row(position);
            row += &self.kind;
        }
        state
    }

    fn run_layer(&self, layer: &Layer, texts: &[&[u32]], input: &Array2<f32>) -> Array2<f32> {
        let attended = self.attend(layer, texts, input);
        let mut state = layer.attended.run(&attended);
        state += input;
        layer.attended_norm.run(&mut state);
        let mut wide = layer.widen.run(&state);
        wide.mapv_inplace(gelu);
        let mut output = layer.narrow.run(&wide);
        output += &state;
        layer.norm.run(&mut output);
        output
    }

    fn attend(&self, layer: &Layer, texts: &[&[u32]], input: &Array2<f32>) -> Array2<f32> {
        let width = self.kind.len() / self.heads;
        let mut query = layer.query.run(input);
        #[expect(
            clippy::cast_precision_loss,
            reason = "a head has at most some hundred numbers"
        )]
        let scale = 1.0 / (width as f32).sqrt();
        query *= scale;
        let (key, value) = (layer.key.run(input), layer.value.run(input));
        let mut attended = Array2::zeros(input.raw_dim());
        let mut start = 0;
        for text in texts {
            for head in 0..self.heads {
                let rows = Slice::from(start..start + text.len());
                let columns = Slice::from(head * width..(head + 1) * width);
                let part = |whole: &'_ Array2<f32>| {
                    let rows = whole.slice_axis(Axis(0), rows);
                    rows.slice_axis(Axis(1), columns).to_owned()
                };
                let mut weights = part(&query).dot(&part(&key).t());
                for mut row in weights.rows_mut() {
                    let most = row.fold(f32::MIN, |most, x| most.max(*x));
                    row.mapv_inplace(|x| (x - most).exp());
                    let sum = row.sum();
                    row /= sum;
                }
                let mixed = weights.dot(&part(&value));
                let mut target = attended.slice_axis_mut(Axis(0), rows);
                target.slice_axis_mut(Axis(1), columns).assign(&mixed);
            }
            start += text.len();
        }
        attended
    }

    fn pool(&self, rows: &ArrayView2<'_, f32>) -> Vec<f32> {
        let vector = match self.pooling {
            Pooling::Mean => rows.mean_axis(Axis(0)),
            Pooling::First => rows.rows().into_iter().next().map(|row| row.to_owned()),
        };
        let vector = vector.unwrap_or_else(|| Array1::zeros(self.kind.len()));
        let length = vector.dot(&vector).sqrt();
        if length > 0.0 {
            (vector / length).to_vec()
        } else {
            vector.to_vec()
        }
    }
}

/// The exact form, by error function.
fn gelu(x: f32) -> f32 {
    0.5 * x * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2))
}

/// The error function to seven digits (Abramowitz and Stegun 7.1.26), which is all that single precision holds.
fn erf(x: f32) -> f32 {
    let size = x.abs();
    let t = 1.0 / (1.0 + 0.327_591_1 * size);
    let series = ((((1.061_405_4 * t - 1.453_152) * t + 1.421_413_7) * t - 0.284_496_74) * t
        + 0.254_829_6)
        * t;
    (1.0 - series * (-size * size).exp()).copysign(x)
}

/// The tensors of a file.
struct Weights<'f> {
    folder: &'f Folder,
    tensors: SafeTensors<'f>,
    prefix: &'static str,
}

impl Weights<'_> {
    fn layer(&self, number: usize) -> Result<Layer, ModelError> {
        let name = |part: &str| format!("encoder.layer.{number}.{part}");
        let size = self.folder.config.hidden_size;
        let layer = Layer {
            query: self.linear(&name("attention.self.query"))?,
            key: self.linear(&name("attention.self.key"))?,
            value: self.linear(&name("attention.self.value"))?,
            attended: self.linear(&name("attention.output.dense"))?,
            attended_norm: self.norm(&name("attention.output.LayerNorm"))?,
            widen: self.linear(&name("intermediate.dense"))?,
            narrow: self.linear(&name("output.dense"))?,
            norm: self.norm(&name("output.LayerNorm"))?,
        };
        let inner = layer.widen.bias.len();
        let shapes = [
            (&layer.query, (size, size)),
            (&layer.key, (size, size)),
            (&layer.value, (size, size)),
            (&layer.attended, (size, size)),
            (&layer.widen, (size, inner)),
            (&layer.narrow, (inner, size)),
        ];
        if shapes
            .iter()
            .any(|(linear, shape)| linear.weights.dim() != *shape)
        {
            let detail = format!("layer {number} has another shape than config.json says");
            return Err(self.folder.malformed_weights(detail));
        }
        Ok(layer)
    }

    fn linear(&self, name: &str) -> Result<Linear, ModelError> {
        let weights = self.matrix(&format!("{name}.weight"))?;
        let bias = self.row(&format!("{name}.bias"), weights.nrows())?;
        // Turned around once, so that each use reads memory in order.
        let weights = weights.t().as_standard_layout().into_owned();
        Ok(Linear { weights, bias })
    }

    fn norm(&self, name: &str) -> Result<Norm, ModelError> {
        let size = self.folder.config.hidden_size;
        Ok(Norm {
            scale: self.row(&format!("{name}.weight"), size)?,
            shift: self.row(&format!("{name}.bias"), size)?,
            epsilon: self.folder.config.layer_norm_eps,
        })
    }

    fn matrix(&self, name: &str) -> Result<Array2<f32>, ModelError> {
        let tensor = self.tensor(name)?;
        let [rows, columns] = *tensor.shape() else {
            let detail = format!("{name} has {} dimensions, not 2", tensor.shape().len());
            return Err(self.folder.malformed_weights(detail));
        };
        let numbers = self.numbers(name, &tensor)?;
        Array2::from_shape_vec((rows, columns), numbers)
            .map_err(|error| self.folder.malformed_weights(format!("{name}: {error}")))
    }

    fn row(&self, name: &str, length: usize) -> Result<Array1<f32>, ModelError> {
        let tensor = self.tensor(name)?;
        let numbers = self.numbers(name, &tensor)?;
        if numbers.len() != length {
            let detail = format!("{name} has {} numbers, not {length}", numbers.len());
            return Err(self.folder.malformed_weights(detail));
        }
        Ok(Array1::from_vec(numbers))
    }

    fn tensor(&self, name: &str) -> Result<TensorView<'_>, ModelError> {
        let name = format!("{}{name}", self.prefix);
        self.tensors
            .tensor(&name)
            .map_err(|error| self.folder.malformed_weights(format!("{name}: {error}")))
    }

    fn numbers(&self, name: &str, tensor: &TensorView<'_>) -> Result<Vec<f32>, ModelError> {
        if tensor.dtype() != Dtype::F32 {
            let detail = format!("{name} is not of single precision; save the model as float32");
            return Err(self.folder.unsupported_weights(detail));
        }
        let (numbers, _) = tensor.data().as_chunks::<4>();
        let numbers: Vec<f32> = numbers
            .iter()
            .map(|bytes| f32::from_le_bytes(*bytes))
            .collect();
        if numbers.iter().all(|number| number.is_finite()) {
            return Ok(numbers);
        }
        Err(self
            .folder
            .malformed_weights(format!("{name} holds what is no number")))
    }
}
