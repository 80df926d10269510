//! Which requests may read, and which may start and stop runs.

use kendall_archive::origin;

use super::*;

#[test]
fn what_changes_something_comes_from_a_page_of_this_site() {
    let site = served();
    let run = site.run("e", "r");
    let origin = format!("Origin: http://{}", site.address);
    let cookie = site.cookie();
    let post = |path: &str, lines: &[&str]| {
        site.ask("POST", path, &[lines, &["Content-Length: 0", &cookie]].concat())
    };
    for lines in [&[][..], &["Origin: http://evil.example"], &["Origin: null"]] {
        assert_eq!(post("/stop/e/r", lines).status, 403);
        assert_eq!(post("/resume/e/r", lines).status, 403);
    }
    for path in ["/stop/e/r", "/resume/e/r"] {
        let without = site.ask("POST", path, &[&origin, "Content-Length: 0"]);
        assert!(without.status == 401 && without.body.contains("with its token"), "{}", without.body);
    }
    assert_eq!(site.ask("GET", "/", &["Host: evil.example"]).status, 421);
    assert_eq!(site.ask("GET", "/", &["Host: localhost", "Host: evil.example"]).status, 400);
    assert_eq!(site.get("/stop/e/r").status, 405, "looking at an address changes nothing");
    let image = ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: image"];
    let image = site.ask("GET", "/runs/e/r/report.html", &image);
    assert!(image.status == 403 && image.body.contains("another site"), "{}", image.body);
    assert!(!run.join("report.html").exists());
    let stopped = post("/stop/e/r", &[&origin]);
    assert!(stopped.status == 409 && stopped.body.contains("nothing to stop"), "{}", stopped.body);
    live().write(&run).unwrap();
    let foreign = post("/resume/e/r", &[&origin]);
    assert!(foreign.status == 409 && foreign.body.contains("not started by this user"), "{}", foreign.body);
    let foreign = post("/stop/e/r", &[&origin]);
    assert!(foreign.status == 409 && foreign.body.contains("not started by this user"), "{}", foreign.body);
    let page = site.get("/resume/e/r").body;
    assert!(page.contains("/bin/false run --resume") && !page.contains("<form"), "{page}");
    origin::sign(&run).unwrap();
    let page = site.get("/resume/e/r").body;
    assert!(page.contains("/bin/false run --resume") && page.contains("<form"), "{page}");
    let resumed = post("/resume/e/r", &[&origin]);
    assert!(resumed.status == 409 && resumed.body.contains("already running"), "{}", resumed.body);
    // The program here fails, and the page shows that.
    let mut ended = live();
    ended.state = LiveState::Interrupted;
    ended.write(&run).unwrap();
    assert_eq!(post("/resume/e/r", &[&origin]).status, 303);
    let until = Instant::now() + PATIENCE;
    while !site.get("/runs/e/r/").body.contains("ended with exit status: 1") {
        assert!(Instant::now() < until, "the page does not show the failure");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn where_others_can_reach_it_a_token_is_asked_for() {
    let site = serve(tempfile::tempdir().unwrap(), "0.0.0.0:0");
    site.run("e", "r");
    let (before, token) = site.url.split_once("?token=").unwrap();
    assert!(before.starts_with("http://127.0.0.1:") && token.len() >= 32, "{}", site.url);
    assert_eq!(site.get("/").status, 401);
    assert_eq!(site.get("/runs/e/r/manifest.json").status, 401);
    assert_eq!(site.get(&format!("/?token={token}")).status, 200, "a program that keeps no cookies");
    let known = site.ask("GET", &format!("/?token={token}&q=a"), &["Accept: text/html"]);
    assert!(known.status == 303 && known.head.contains("location: /?q=a\r"), "{}", known.head);
    let cookie = known.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    assert!(cookie.contains("httponly") && cookie.contains("samesite=strict"), "{cookie}");
    let cookie = format!("Cookie: {}", cookie.split(';').next().unwrap());
    assert_eq!(site.ask("GET", "/runs/e/r/manifest.json", &[&cookie]).status, 200);
}

#[test]
fn heads_without_end_cost_their_own_connection() {
    let site = served();
    let mut stream = site.connect();
    let line = format!("X-Long: {}\r\n", "x".repeat(8000));
    let sent = (0..20).try_for_each(|i| {
        let start = if i == 0 { "GET / HTTP/1.1\r\nHost: localhost\r\n" } else { "" };
        stream.write_all(format!("{start}{line}").as_bytes())
    });
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(
        sent.is_err() || answer.is_empty() || answer.starts_with(b"HTTP/1.1 431"),
        "{}",
        String::from_utf8_lossy(&answer)
    );
    assert_eq!(site.get("/").status, 200);
}
