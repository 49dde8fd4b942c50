//! The manifest's rule as a table: which bytes are the list of sealed test files, and what is told where they are not.

use super::*;
use proptest::prelude::*;

fn manifest() -> RepoPath {
    RepoPath::literal("tests/sealed/MANIFEST.txt")
}

fn sealed(names: &[&str]) -> Vec<GitPath> {
    names
        .iter()
        .map(|name| GitPath::from(format!("tests/sealed/{name}").as_str()))
        .collect()
}

/// Row, what lies under the sealed root, the manifest (with `%` for the root), and what is told; `""` where it holds.
#[rustfmt::skip]
const ROWS: &[(&str, &[&str], &str, &str)] = &[
    ("in_order", &["test_b.py", "test_a.py"], "%test_a.py\n%test_b.py\n", ""),
    ("byte_order_of_whole_paths", &["test_Z.py", "test_a.py", "test_a-b.py", "test_a1.py", "test_a_b.py", "test_sub.py", "test_sub/test_x.py"], "%test_Z.py\n%test_a-b.py\n%test_a.py\n%test_a1.py\n%test_a_b.py\n%test_sub.py\n%test_sub/test_x.py\n", ""),
    ("both_name_forms", &["a_test.py", "test_.py", "_test.py"], "%_test.py\n%a_test.py\n%test_.py\n", ""),
    ("other_files_are_not_listed", &["test_a.py", "conftest.py", "helper.py", "MANIFEST.txt", "test_a.pyi", "test_a.txt", "Test_b.py"], "%test_a.py\n", ""),
    ("non_ascii", &["test_café.py"], "%test_café.py\n", ""),
    ("crlf", &["test_a.py", "test_b.py"], "%test_a.py\r\n%test_b.py\r\n", ""),
    ("blank_lines", &["test_a.py", "test_b.py"], "\n%test_a.py\n\n  \r\n%test_b.py\n\n", ""),
    ("no_final_newline", &["test_a.py"], "%test_a.py", ""),
    ("nothing_sealed_nothing_listed", &[], "", ""),
    ("a_file_named_like_a_pattern", &["test_[ab].py"], "%test_[ab].py\n", ""),
    ("one_is_missing_at_the_end", &["test_a.py", "test_b.py"], "%test_a.py\n", "it ends without tests/sealed/test_b.py"),
    ("one_is_missing_in_the_middle", &["test_a.py", "test_b.py", "test_c.py"], "%test_a.py\n%test_c.py\n", "line 2: tests/sealed/test_c.py is not in byte order; tests/sealed/test_b.py belongs here"),
    ("one_too_many", &["test_a.py"], "%test_a.py\n%test_b.py\n", "line 2: tests/sealed/test_b.py is no sealed test file; nothing more belongs here"),
    ("case_folded_order", &["test_Z.py", "test_a.py"], "%test_a.py\n%test_Z.py\n", "line 1: tests/sealed/test_a.py is not in byte order; tests/sealed/test_Z.py belongs here"),
    ("order_by_component", &["test_sub.py", "test_sub/test_x.py"], "%test_sub/test_x.py\n%test_sub.py\n", "is not in byte order"),
    ("duplicate", &["test_a.py", "test_b.py"], "%test_a.py\n%test_a.py\n%test_b.py\n", "line 2: tests/sealed/test_a.py stands there twice"),
    ("comment", &["test_a.py"], "# sealed\n%test_a.py\n", "line 1: # sealed is a comment"),
    ("comment_behind_a_path", &["test_a.py"], "%test_a.py # why\n", "line 1"),
    ("dot_slash", &["test_a.py"], "./%test_a.py\n", "begins with ./"),
    ("pattern", &["test_a.py"], "%test_*.py\n", "is a pattern"),
    ("byte_order_mark", &["test_a.py"], "\u{feff}%test_a.py\n", "begins with a byte order mark"),
    ("space_before", &["test_a.py"], " %test_a.py\n", "has white space around it"),
    ("space_behind", &["test_a.py"], "%test_a.py \n", "has white space around it"),
    ("relative_to_its_folder", &["test_a.py"], "test_a.py\n", "is no sealed test file; tests/sealed/test_a.py belongs here"),
    ("absolute", &["test_a.py"], "/%test_a.py\n", "is no sealed test file"),
    ("quoted_by_git", &["test_café.py"], "\"%test_caf\\303\\251.py\"\n", "is no sealed test file"),
    ("old_mac_line_ends", &["test_a.py", "test_b.py"], "%test_a.py\r%test_b.py\r", "line 1"),
    ("other_unicode_form", &["test_café.py"], "%test_cafe\u{301}.py\n", "is no sealed test file"),
    ("control_characters_are_escaped", &["test_a.py"], "\u{1b}x\n", "\\u{1b}x is no sealed"),
    ("a_sealed_name_with_a_line_end", &["test_a\n.py"], "%test_a\n.py\n", "cannot be named in a manifest"),
];

#[test]
fn a_manifest_is_the_sorted_list_and_nothing_else() {
    for (row, names, text, told) in ROWS {
        let text = text.replace('%', "tests/sealed/");
        let seen = check(&manifest(), Some(text.as_bytes()), &sealed(names));
        let seen = seen.map_or_else(|finding| finding.detail, |_| String::new());
        assert_eq!(seen.is_empty(), told.is_empty(), "{row}: {seen}");
        assert!(seen.contains(told), "{row}: {seen}");
    }
}

#[test]
fn a_missing_manifest_is_drift() {
    let told = check(&manifest(), None, &sealed(&["test_a.py"])).map_err(|f| (f.reason, f.subject));
    let subject = Some("tests/sealed/MANIFEST.txt".to_owned());
    assert_eq!(told, Err((Reason::ManifestDrift, subject)));
}

#[test]
fn a_sealed_name_that_is_no_text_is_drift() {
    let paths = [GitPath::new(b"tests/sealed/test_\xff.py".to_vec())];
    let told = check(&manifest(), Some(b""), &paths).map_err(|f| f.detail);
    assert_eq!(
        told,
        Err("tests/sealed/test_\\xff.py cannot be named in a manifest".to_owned())
    );
}

#[test]
fn files_outside_the_manifests_folder_are_not_its_business() {
    let mut paths = sealed(&["test_a.py"]);
    paths.push(GitPath::from("tests/test_b.py"));
    paths.push(GitPath::from("properties/test_c.py"));
    assert!(check(&manifest(), Some(b"tests/sealed/test_a.py"), &paths).is_ok());
}

proptest! {
    #[test]
    fn what_is_rendered_holds(names in proptest::collection::vec("[a-zA-Z_./-]{0,3}test_[a-zé~.-]{0,4}", 0..8)) {
        let paths: Vec<GitPath> = names
            .iter()
            .map(|n| format!("tests/sealed/{n}.py"))
            .filter(|p| p.parse::<RepoPath>().is_ok())
            .map(|p| GitPath::from(p.as_str()))
            .collect();
        let text = render(&manifest(), &paths).unwrap_or_default();
        prop_assert!(check(&manifest(), Some(text.as_bytes()), &paths).is_ok());
        let crlf = text.replace('\n', "\r\n");
        prop_assert!(check(&manifest(), Some(crlf.trim_end().as_bytes()), &paths).is_ok());
    }

    #[test]
    fn any_bytes_hold_or_are_told(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        if let Err(finding) = check(&manifest(), Some(&bytes), &sealed(&["test_a.py"])) {
            prop_assert_eq!(finding.reason, Reason::ManifestDrift);
        }
    }
}
