//! Aligned columns.

use super::text::plain;

/// Lines of cells under a heading; the last column is not padded.
pub(super) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table of these columns.
    pub(super) fn new(heading: &[&str]) -> Self {
        Self { rows: vec![heading.iter().map(|cell| (*cell).to_owned()).collect()] }
    }

    /// Adds a line. Its cells are made harmless.
    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| plain(&cell)).collect());
    }

    /// The table as text, each line ended.
    pub(super) fn show(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let line: Vec<String> =
                row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
            text.push_str(line.join("  ").trim_end());
            text.push('\n');
        }
        text
    }
}

/// Names and values under each other; what has no value is left out.
pub(super) struct Fields {
    lines: Vec<(&'static str, String)>,
}

impl Fields {
    pub(super) fn new() -> Self {
        Self { lines: Vec::new() }
    }

    /// Adds a line, unless the value is empty.
    pub(super) fn add(&mut self, name: &'static str, value: impl Into<String>) {
        let value = value.into();
        if !value.is_empty() {
            self.lines.push((name, plain(&value)));
        }
    }

    /// The lines as text, each ended.
    pub(super) fn show(&self) -> String {
        let width = self.lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        self.lines.iter().map(|(name, value)| format!("{name:<width$}  {value}\n")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&["RUN", "STATUS"]);
        table.row(["a".into(), "APPLIED".into()]);
        table.row(["longer".into(), "x\ny".into()]);
        assert_eq!(table.show(), "RUN     STATUS\na       APPLIED\nlonger  x y\n");
    }

    #[test]
    fn an_empty_field_is_left_out() {
        let mut fields = Fields::new();
        fields.add("run", "a");
        fields.add("guard", "");
        fields.add("target", "local/web");
        assert_eq!(fields.show(), "run     a\ntarget  local/web\n");
    }
}
