//! What was seen: a bounded list of plain texts in native memory, told before the next record.
//!
//! The same thing is told once per telling. Nothing here holds a reference to a Python object.

/// Different facts that one telling keeps; the protocol tells 20.
const KEPT: usize = 20;
/// Characters of a text.
const LONGEST: usize = 200;

pub(crate) struct Facts {
    list: Vec<(&'static str, String)>,
}

impl Facts {
    pub(crate) const fn new() -> Self {
        Self { list: Vec::new() }
    }

    pub(crate) fn add(&mut self, kind: &'static str, what: &str) {
        let what: String = what
            .chars()
            .take(LONGEST)
            .map(|c| if c.is_control() { '\u{fffd}' } else { c })
            .collect();
        if self.list.len() < KEPT && !self.list.iter().any(|(k, w)| *k == kind && *w == what) {
            self.list.push((kind, what));
        }
    }

    /// All of them, each as a record, and none left.
    pub(crate) fn take(&mut self) -> Vec<Vec<u8>> {
        let record = |(kind, what): (&'static str, String)| {
            let mut text = format!(r#"{{"kind":"tamper","tamper":"{kind}","what":"#);
            quoted(&mut text, &what);
            text.push('}');
            text.into_bytes()
        };
        self.list.drain(..).map(record).collect()
    }
}

fn quoted(into: &mut String, text: &str) {
    into.push('"');
    for c in text.chars() {
        match c {
            '"' => into.push_str("\\\""),
            '\\' => into.push_str("\\\\"),
            c => into.push(c),
        }
    }
    into.push('"');
}
