#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use super::*;

fn env(pairs: &[(&str, &str)]) -> Environment {
    pairs
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect()
}

fn resolve(flags: &Flags, env: &Environment) -> Result<Settings, ConfigError> {
    Settings::resolve(flags, env, Needs::Server)
}

fn folder_with(config: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("tribunal")).unwrap();
    std::fs::write(dir.path().join("tribunal/config.toml"), config).unwrap();
    dir
}

const FILE: &str = r#"
server = "https://from-file:1"
repo = "from-file"
token = "token-from-file"
key = "keys/file.pem"
"#;

#[test]
fn flags_win_over_environment_wins_over_file() {
    let dir = folder_with(FILE);
    let xdg = dir.path().to_str().unwrap();
    std::fs::write(dir.path().join("token"), "token-from-flag-file\n").unwrap();

    let file_only = resolve(&Flags::default(), &env(&[("XDG_CONFIG_HOME", xdg)])).unwrap();
    assert_eq!(
        file_only.server().unwrap().to_string(),
        "https://from-file:1"
    );
    assert_eq!(file_only.repo().unwrap().as_str(), "from-file");
    assert_eq!(file_only.token().unwrap().reveal(), "token-from-file");
    assert_eq!(
        file_only.key().unwrap(),
        dir.path().join("tribunal/keys/file.pem")
    );

    let environment = env(&[
        ("XDG_CONFIG_HOME", xdg),
        ("TRIBUNAL_SERVER", "https://from-env:1"),
        ("TRIBUNAL_REPO", "from-env"),
        ("TRIBUNAL_TOKEN", "token-from-env"),
        ("TRIBUNAL_KEY", "env.pem"),
    ]);
    let env_too = resolve(&Flags::default(), &environment).unwrap();
    assert_eq!(env_too.server().unwrap().to_string(), "https://from-env:1");
    assert_eq!(env_too.repo().unwrap().as_str(), "from-env");
    assert_eq!(env_too.token().unwrap().reveal(), "token-from-env");
    assert_eq!(env_too.key().unwrap(), Path::new("env.pem"));

    let flags = Flags {
        server: Some("https://from-flag:1".to_owned()),
        repo: Some("from-flag".to_owned()),
        token_file: Some(dir.path().join("token")),
        key: Some("flag.pem".into()),
        ..Flags::default()
    };
    let all = resolve(&flags, &environment).unwrap();
    assert_eq!(all.server().unwrap().to_string(), "https://from-flag:1");
    assert_eq!(all.repo().unwrap().as_str(), "from-flag");
    assert_eq!(all.token().unwrap().reveal(), "token-from-flag-file");
    assert_eq!(all.key().unwrap(), Path::new("flag.pem"));
}

#[test]
fn home_is_used_without_xdg_and_an_absent_file_is_fine() {
    let dir = tempfile::tempdir().unwrap();
    let home = env(&[("HOME", dir.path().to_str().unwrap())]);
    let nothing = resolve(&Flags::default(), &home).unwrap();
    assert_eq!(nothing.server().unwrap_err().exit, crate::exit::Exit::Usage);
    assert_eq!(nothing.repo().unwrap_err().exit, crate::exit::Exit::Usage);
    assert!(nothing.token().is_none());

    std::fs::create_dir_all(dir.path().join(".config/tribunal")).unwrap();
    std::fs::write(
        dir.path().join(".config/tribunal/config.toml"),
        "repo = \"r\"",
    )
    .unwrap();
    let found = resolve(&Flags::default(), &home).unwrap();
    assert_eq!(found.repo().unwrap().as_str(), "r");
}

#[test]
fn empty_variables_say_nothing() {
    let dir = folder_with(FILE);
    let settings = resolve(
        &Flags::default(),
        &env(&[
            ("XDG_CONFIG_HOME", dir.path().to_str().unwrap()),
            ("TRIBUNAL_SERVER", ""),
            ("TRIBUNAL_TOKEN", " "),
        ]),
    )
    .unwrap();
    assert_eq!(
        settings.server().unwrap().to_string(),
        "https://from-file:1"
    );
    assert_eq!(settings.token().unwrap().reveal(), "token-from-file");
}

#[test]
fn all_mistakes_at_once_and_no_secret_among_them() {
    let dir = folder_with("server = \"http://example.org:1\"\ntoken = \"sec ret\"\n");
    let flags = Flags {
        repo: Some("No Such".to_owned()),
        client_cert: Some("c.pem".into()),
        ..Flags::default()
    };
    let error = resolve(
        &flags,
        &env(&[("XDG_CONFIG_HOME", dir.path().to_str().unwrap())]),
    )
    .unwrap_err();
    assert_eq!(error.0.len(), 4, "{error}");
    assert!(!error.to_string().contains("sec ret"), "{error}");
}

#[test]
fn unknown_keys_and_a_named_file_that_is_not_there_are_mistakes() {
    let dir = folder_with("tokne = \"hunter2\"\n");
    let error = resolve(
        &Flags::default(),
        &env(&[("XDG_CONFIG_HOME", dir.path().to_str().unwrap())]),
    )
    .unwrap_err();
    assert!(error.to_string().contains("tokne"), "{error}");
    assert!(!error.to_string().contains("hunter2"), "{error}");

    let flags = Flags {
        config: Some(dir.path().join("absent.toml")),
        ..Flags::default()
    };
    assert!(resolve(&flags, &Environment::new()).is_err());
}

#[test]
fn a_token_does_not_show_itself() {
    let settings = resolve(&Flags::default(), &env(&[("TRIBUNAL_TOKEN", "hunter2")])).unwrap();
    assert!(!format!("{settings:?}").contains("hunter2"));
}

#[test]
fn an_offline_command_does_not_stumble_over_what_it_does_not_use() {
    let broken = env(&[
        ("TRIBUNAL_SERVER", "http://example.org"),
        ("TRIBUNAL_TOKEN_FILE", "/nowhere/token"),
        ("TRIBUNAL_REPO", "app"),
    ]);
    assert_eq!(resolve(&Flags::default(), &broken).unwrap_err().0.len(), 2);
    let offline = Settings::resolve(&Flags::default(), &broken, Needs::Offline).unwrap();
    assert_eq!(offline.repo().unwrap().as_str(), "app");
    let flags = Flags {
        repo: Some("No Such".to_owned()),
        ..Flags::default()
    };
    assert!(Settings::resolve(&flags, &broken, Needs::Offline).is_err());
}
