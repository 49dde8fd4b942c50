//! Candidate text made fit to be shown: escaped, capped, one line where one line is wanted.
//!
//! Every message, log field and terminal line that carries text from outside goes through here.

/// `text` on one line, control and format characters escaped, at most `cap` characters (an ellipsis marks a cut).
#[must_use]
pub fn shown(text: &str, cap: usize) -> String {
    let mut out = String::new();
    for (n, c) in text.chars().enumerate() {
        if n >= cap {
            out.push('…');
            break;
        }
        push_escaped(&mut out, c);
    }
    out
}

/// Bytes that ought to be UTF-8, shown like [`shown`]; what is not UTF-8 becomes `\xNN`.
#[must_use]
pub fn shown_bytes(bytes: &[u8], cap: usize) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text.push_str(&shown(chunk.valid(), usize::MAX));
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
        if text.chars().count() > cap {
            break;
        }
    }
    if text.chars().count() > cap {
        text = text.chars().take(cap).collect();
        text.push('…');
    }
    text
}

/// Several lines: newlines and tabs stay, everything else that steers a terminal is escaped; at most `cap` characters.
#[must_use]
pub fn shown_block(text: &str, cap: usize) -> String {
    let mut out = String::new();
    for (n, c) in text.chars().enumerate() {
        if n >= cap {
            out.push_str("\n…");
            break;
        }
        if matches!(c, '\n' | '\t') {
            out.push(c);
        } else {
            push_escaped(&mut out, c);
        }
    }
    out
}

fn push_escaped(out: &mut String, c: char) {
    // Bidirectional overrides, zero-width characters and tags can make one path look like another.
    let steers = c.is_control()
        || matches!(c, '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    if steers {
        out.extend(c.escape_default());
    } else {
        out.push(c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_what_steers_a_terminal_and_caps() {
        assert_eq!(shown("a\u{1b}[31mb\n", 80), "a\\u{1b}[31mb\\n");
        assert_eq!(shown("abcdef", 3), "abc…");
        assert_eq!(shown("caf\u{e9}\u{202e}", 80), "café\\u{202e}");
        assert_eq!(shown("a\u{61c}\u{e0041}b", 80), "a\\u{61c}\\u{e0041}b");
        assert_eq!(shown_bytes(b"a\xffb", 80), "a\\xffb");
        assert_eq!(shown_block("a\n\tb\u{7}", 80), "a\n\tb\\u{7}");
    }
}
