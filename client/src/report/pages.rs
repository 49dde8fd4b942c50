//! A long text in pages of bounded size: every character is on exactly one page, in order.
//!
//! Pages end at ends of lines where they can; a line that is longer than a page is cut, never left out.

use super::ReportError;

/// A text in pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pages(Vec<String>);

impl Pages {
    /// Pages whose characters cost at most `room` together; a page has one character at least.
    #[must_use]
    pub fn of(text: &str, room: usize, cost: fn(char) -> usize) -> Self {
        let mut pages = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (page, after) = rest.split_at(end_of_page(rest, room, cost));
            pages.push(page.strip_suffix('\n').unwrap_or(page).to_owned());
            rest = after;
        }
        if pages.is_empty() {
            pages.push(String::new());
        }
        Self(pages)
    }

    /// How many there are; never none.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// One of them, counted from 1.
    ///
    /// # Errors
    /// There are not so many.
    pub fn page(&self, number: usize) -> Result<&str, ReportError> {
        let page = number.checked_sub(1).and_then(|index| self.0.get(index));
        page.map(String::as_str).ok_or(ReportError::NoPage {
            number,
            count: self.count(),
        })
    }
}

fn end_of_page(text: &str, room: usize, cost: fn(char) -> usize) -> usize {
    let mut used = 0;
    let mut after_line = None;
    for (at, c) in text.char_indices() {
        used += cost(c);
        if used > room && at > 0 {
            return after_line.unwrap_or(at);
        }
        if c == '\n' {
            after_line = Some(at + 1);
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

    use super::*;

    #[test]
    fn nothing_is_lost_and_no_page_is_over_its_room() {
        let long = "x".repeat(95);
        let text = format!("one\ntwo\n{long}\n\nthree é\n");
        for room in 1..120 {
            let pages = Pages::of(&text, room, |_| 1);
            let all: Vec<&str> = (1..=pages.count())
                .map(|n| pages.page(n).unwrap())
                .collect();
            assert!(
                all.iter().all(|page| page.chars().count() <= room),
                "{room}"
            );
            let kept: String = all.concat().chars().filter(|c| *c != '\n').collect();
            assert_eq!(kept, text.replace('\n', ""), "{room}");
        }
        let pages = Pages::of(&text, 9, |_| 1);
        assert_eq!(pages.page(1).unwrap(), "one\ntwo");
        for none in [0, pages.count() + 1] {
            assert!(matches!(pages.page(none), Err(ReportError::NoPage { .. })));
        }
    }

    #[test]
    fn what_costs_more_has_less_room() {
        let double = |c| if c == '"' { 2 } else { 1 };
        assert_eq!(Pages::of("\"\"\"\"", 4, double).page(1).unwrap(), "\"\"");
        assert_eq!(Pages::of("", 4, double).count(), 1);
    }
}
