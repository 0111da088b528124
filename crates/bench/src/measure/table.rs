//! Aligned columns: the first to the left, the others to the right.

use std::io::Write;

use crate::BenchError;

/// Writes a heading, a rule and the lines.
pub(crate) fn write<const N: usize>(
    heading: [String; N],
    lines: impl Iterator<Item = [String; N]>,
    out: &mut dyn Write,
) -> Result<(), BenchError> {
    let mut all = vec![heading];
    all.extend(lines);
    let mut widths = [0; N];
    for cells in &all {
        for (width, cell) in widths.iter_mut().zip(cells) {
            *width = cell.chars().count().max(*width);
        }
    }
    for (number, cells) in all.iter().enumerate() {
        let columns = cells.iter().zip(widths).enumerate();
        let shown: Vec<String> = columns
            .map(|(column, (cell, width))| match column {
                0 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            })
            .collect();
        writeln!(out, "{}", shown.join(" | "))?;
        if number == 0 {
            let rule = widths.map(|width| "-".repeat(width)).join("-|-");
            writeln!(out, "{rule}")?;
        }
    }
    Ok(())
}
