//! Tables of the page.

/// A table in Markdown.
#[derive(Debug)]
pub(super) struct Table {
    text: String,
}

impl Table {
    /// With these heads. One that ends in `:` is a column of numbers, and leaves that away.
    pub(super) fn new(heads: &[&str]) -> Self {
        let mut table = Self { text: String::new() };
        table.line(heads.iter().map(|head| head.trim_end_matches(':').to_owned()));
        table.line(heads.iter().map(|head| if head.ends_with(':') { "---:" } else { "---" }.to_owned()));
        table
    }

    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.line(cells);
    }

    pub(super) fn show(self) -> String {
        self.text
    }

    fn line(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells: Vec<String> = cells.into_iter().map(|cell| cell.replace('|', "\\|")).collect();
        self.text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
}
