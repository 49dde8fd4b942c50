//! Patterns on names: `*` is anything, `?` one character, everything else is itself.

/// Whether the whole name fits.
pub(super) fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    // reached[n]: the part of the pattern so far fits the first n characters.
    let mut reached = vec![false; name.len() + 1];
    reached[0] = true;
    for wanted in pattern {
        let mut next = vec![false; name.len() + 1];
        match wanted {
            '*' => {
                let mut any = false;
                for (n, slot) in next.iter_mut().enumerate() {
                    any |= reached[n];
                    *slot = any;
                }
            }
            wanted => {
                for (n, character) in name.iter().enumerate() {
                    next[n + 1] = reached[n] && (wanted == '?' || wanted == *character);
                }
            }
        }
        reached = next;
    }
    reached[name.len()]
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn stars_and_question_marks() {
        for (pattern, name, is) in [
            ("*", "", true),
            ("*", "39-clock-bomb", true),
            ("39*", "39-clock-bomb", true),
            ("39*", "139-x", false),
            ("*bomb", "39-clock-bomb", true),
            ("*-clock-*", "39-clock-bomb", true),
            ("?9-*", "39-clock-bomb", true),
            ("?9-*", "9-clock-bomb", false),
            ("39-clock-bomb", "39-clock-bomb", true),
            ("39-clock", "39-clock-bomb", false),
            ("**b", "39-clock-bomb", true),
        ] {
            assert_eq!(fits(pattern, name), is, "{pattern} on {name}");
        }
    }
}
