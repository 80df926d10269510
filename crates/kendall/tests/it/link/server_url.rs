//! What the command at the client's end is given, as users type it.

use serde_json::Value;

use super::{User, succeeded, users};

/// As a user types it: the URL with its port, and a line for the shell.
#[test]
fn the_command_gets_the_servers_url() {
    for &user in users() {
        let kendall = env!("CARGO_BIN_EXE_kendall");
        let server = format!("exec '{kendall}' serve reverse --listen 10.0.0.2:5003 >/dev/null");
        let words = |command: &[&str]| {
            let output = succeeded(user.link(&["--quiet", "--server", &server], command));
            String::from_utf8(output.stdout).unwrap()
        };
        assert_eq!(words(&["echo", "{server}/a  b"]), "http://10.0.0.2:5003/a  b\n");
        assert_eq!(words(&["echo {host} {port} | tr 0 o"]), "1o.o.o.2 5oo3\n");
        let load =
            format!("'{kendall}' load 'reverse://{{host}}:{{port}}?difficulty=100' -r 200 -n 20 --json");
        let found: Value = serde_json::from_str(&words(&[&load])).unwrap();
        assert_eq!(found["run"]["ended"][0], 20, "{found}");
        // The whole wait passes before the sentence: long enough for a server to listen on a machine that is busy.
        let lonely = server.replace("10.0.0.2", "127.0.0.1");
        let output = user.link(&["--wait", "5s", "--server", &lonely], &["true"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains("listen on 10.0.0.2 or 0.0.0.0"), "{said}");
    }
    let output = User::Own.link(&[], &["curl", "{server}"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && (users().is_empty() || said.contains("--server or --forward")),
        "{said}"
    );
}
