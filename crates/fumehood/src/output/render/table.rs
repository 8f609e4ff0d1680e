//! Columns of text.

use model::text::escape;

use super::super::style::Paint;

/// One cell: its text, which is escaped, and how it is painted.
pub(super) struct Cell {
    text: String,
    paint: fn(Paint, String) -> String,
}

impl Cell {
    pub(super) fn plain(text: impl AsRef<str>) -> Self {
        Self::painted(text, |_, text| text)
    }

    /// Takes a text that is escaped already.
    pub(super) fn escaped(text: String) -> Self {
        Self { text, paint: |_, text| text }
    }

    pub(super) fn painted(text: impl AsRef<str>, paint: fn(Paint, String) -> String) -> Self {
        Self { text: escape(text.as_ref()).into_owned(), paint }
    }
}

/// Lays rows out in columns two blanks apart; the last column is as wide as it likes.
pub(super) fn table(rows: &[Vec<Cell>], paint: Paint) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.text.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            let blanks = widths[column] - cell.text.chars().count() + 2;
            text.push_str(&(cell.paint)(paint, cell.text.clone()));
            if column + 1 < row.len() {
                text.push_str(&" ".repeat(blanks));
            }
        }
        text.truncate(text.trim_end_matches(' ').len());
        text.push('\n');
    }
    text
}

/// A page of labels with what belongs to them.
pub(super) struct Page {
    text: String,
    paint: Paint,
}

const LABEL: usize = 11;

impl Page {
    pub(super) fn new(paint: Paint) -> Self {
        Self { text: String::new(), paint }
    }

    /// Adds a line without a label.
    pub(super) fn heading(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Adds a line with its label; further ones of the same label have none.
    pub(super) fn line(&mut self, label: &str, line: &str) {
        let label = self.paint.dim(format!("{label:<LABEL$}"));
        self.text.push_str(&format!("{label}{line}\n"));
    }

    /// Adds lines below a label.
    pub(super) fn lines(&mut self, label: &str, lines: impl IntoIterator<Item = String>) {
        for (at, line) in lines.into_iter().enumerate() {
            self.line(if at == 0 { label } else { "" }, &line);
        }
    }

    pub(super) fn finish(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_each_other_and_cells_cannot_break_out() {
        let rows = [
            vec![Cell::plain("a"), Cell::painted("long", |p, t| p.good(t)), Cell::plain("x")],
            vec![Cell::plain("bbb"), Cell::plain("s\n\u{1b}[2J"), Cell::plain("")],
        ];
        assert_eq!(table(&rows, Paint::PLAIN), "a    long          x\nbbb  s\\n\\u{1b}[2J\n");
        assert!(table(&rows, Paint::COLOURED).starts_with("a    \x1b[32mlong\x1b[0m          x\n"));
    }
}
