//! The exit codes, in one table: what a script may branch on. Nothing else in this crate names a number.

/// Every way in which the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// The join allows the merge; or a command without a join did what it was asked.
    MergeOk,
    /// The join does not allow it.
    Blocked,
    /// The same, with a forbidden mark among the reasons.
    ForbiddenMark,
    /// The same, with a cassette gap among the reasons.
    CassetteGap,
    /// There is no verdict; asking again is right.
    NoVerdict,
    /// What was handed out cannot be trusted.
    Unverified,
    /// The command line, the configuration, or this machine.
    Usage,
    /// The server refused the request.
    Refused,
    /// The server does not answer.
    Unreachable,
    /// The server does not know the token, or does not let it.
    NotAllowed,
}

impl Exit {
    /// All of them, in the order of the help text.
    pub const ALL: [Self; 10] = [
        Self::MergeOk,
        Self::Blocked,
        Self::ForbiddenMark,
        Self::CassetteGap,
        Self::NoVerdict,
        Self::Unverified,
        Self::Usage,
        Self::Refused,
        Self::Unreachable,
        Self::NotAllowed,
    ];

    /// The number that the shell sees.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::MergeOk => 0,
            Self::Blocked => 1,
            Self::ForbiddenMark => 2,
            Self::CassetteGap => 3,
            Self::NoVerdict => 4,
            Self::Unverified => 5,
            Self::Usage => 64,
            Self::Refused => 65,
            Self::Unreachable => 69,
            Self::NotAllowed => 77,
        }
    }

    /// What it means, for the help text.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::MergeOk => "MERGE_OK, or the command did what it was asked",
            Self::Blocked => {
                "MERGE_BLOCKED (also a stale base, or a human change set that was not asked for)"
            }
            Self::ForbiddenMark => {
                "MERGE_BLOCKED, a forbidden mark among the reasons (beats 3 and 1)"
            }
            Self::CassetteGap => "MERGE_BLOCKED, a cassette gap among the reasons (beats 1)",
            Self::NoVerdict => "no verdict: aborted on the server's side, or --wait ran out; retry",
            Self::Unverified => {
                "verification failed: signature, key, subject, age, or a missing file"
            }
            Self::Usage => "usage or configuration",
            Self::Refused => "the request was refused; the reason code says why",
            Self::Unreachable => "server unreachable",
            Self::NotAllowed => "not authenticated or not allowed",
        }
    }

    /// The table as `--help` prints it.
    #[must_use]
    pub fn help() -> String {
        let mut text = "Exit codes:\n".to_owned();
        for exit in Self::ALL {
            text.push_str(&format!("  {:>2}  {}\n", exit.code(), exit.meaning()));
        }
        text
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::Exit;

    #[test]
    fn the_table_is_the_protocols() {
        let codes: Vec<u8> = Exit::ALL.into_iter().map(Exit::code).collect();
        assert_eq!(codes, [0, 1, 2, 3, 4, 5, 64, 65, 69, 77]);
    }

    #[test]
    fn the_table_is_complete() {
        // A variant that ALL forgets makes this list too short to compile against `code`'s exhaustive match only if it
        // is also forgotten there; so count them by their last discriminant.
        assert_eq!(Exit::ALL.len(), Exit::NotAllowed as usize + 1);
        assert!(Exit::ALL.is_sorted());
    }

    #[test]
    fn help_names_each() {
        let help = Exit::help();
        for exit in Exit::ALL {
            assert!(
                help.lines()
                    .any(|l| l.trim_start().starts_with(&exit.code().to_string())
                        && l.ends_with(exit.meaning()))
            );
        }
    }
}
