//! Examples of commands, for the end of their help.

/// The examples of a command.
pub(super) fn of(path: &str) -> &'static [&'static str] {
    EXAMPLES.iter().find(|(of, _)| *of == path).map_or(&[], |(_, examples)| examples)
}

const EXAMPLES: &[(&str, &[&str])] = &[
    ("plan", &["kendall plan experiments/quickstart.toml"]),
    (
        "run",
        &[
            "kendall run experiments/quickstart.toml --open",
            "kendall run --resume results/quickstart/2026-11-21T04-10-05Z",
            "kendall run experiments/quickstart.toml --junit expectations.xml",
        ],
    ),
    ("web", &["kendall web", "kendall web results --listen 127.0.0.1:8080"]),
    (
        "report",
        &[
            "kendall report results/quickstart/2026-11-21T04-10-05Z",
            "kendall report results/quickstart/2026-11-21T04-10-05Z --figures figures",
        ],
    ),
    (
        "export",
        &[
            "kendall export results/quickstart/2026-11-21T04-10-05Z --format csv",
            "kendall export results/quickstart/2026-11-21T04-10-05Z --format parquet --out tables",
        ],
    ),
    (
        "fit",
        &[
            "kendall fit results/quickstart/2026-11-21T04-10-05Z",
            "kendall fit table.csv",
            "kendall fit wrk-1.txt wrk-2.txt",
        ],
    ),
    (
        "predict",
        &[
            "kendall predict results/quickstart/2026-11-21T04-10-05Z --slo 'p99<50ms'",
            "kendall predict low-1 low-2 full --rate 500 --duration 5m",
        ],
    ),
    (
        "validate",
        &[
            "kendall validate http://127.0.0.1:8080/ --open",
            "kendall validate experiments/validate/node.toml --within 10%",
        ],
    ),
    ("worker", &["kendall worker --cluster nats://queue.example:4222 --device auto"]),
    ("check", &["kendall check results/quickstart/2026-11-21T04-10-05Z"]),
    ("replay", &["kendall replay results/quickstart/2026-11-21T04-10-05Z G/G/2/LIFO"]),
    (
        "compare",
        &[
            "kendall compare http://127.0.0.1:8080/ http://127.0.0.1:8081/ --rate 200",
            "kendall compare results/A --by discipline",
        ],
    ),
    (
        "load",
        &[
            "kendall load http://127.0.0.1:8080/ --rate 200 --duration 30s",
            "kendall load http://127.0.0.1:8080/ --rate 500 --duration 1m --expect 'p99<50ms'",
            "kendall load http://127.0.0.1:8080/ --users 10 --think 1s --duration 30s --record loaded",
        ],
    ),
    ("probe", &["kendall probe 4711 --duration 10s", "kendall probe 4711 --profile --record probed"]),
    (
        "link run",
        &[
            "kendall link run --delay 20ms --rate 10mbit -- ping -c 3 10.0.0.2",
            "kendall link run --delay 20ms --loss 1% --server 'iperf3 -s -1' -- iperf3 -c 10.0.0.2",
        ],
    ),
    (
        "link relay",
        &[
            "kendall link relay --to 127.0.0.1:80 --listen 127.0.0.1:8080 --delay 20ms --rate 10mbit",
            "kendall link relay --to 127.0.0.1:5353 --udp --loss 1%",
        ],
    ),
    (
        "peak",
        &[
            "kendall peak http://127.0.0.1:8080/ --slo 'p99<50ms'",
            "kendall peak reverse://127.0.0.1:5003 --slo 'mean<20ms'",
        ],
    ),
    ("serve reverse", &["kendall serve reverse", "kendall serve reverse --workers 4 --discipline fifo"]),
    (
        "serve recover",
        &["kendall serve recover", "kendall serve recover --dictionary words.txt --charset '?l?d'"],
    ),
    (
        "serve textsearch",
        &[
            "kendall serve textsearch --data sentences.txt",
            "kendall serve textsearch --data-rows 1000000 --workers 2",
        ],
    ),
    (
        "serve hold",
        &[
            "kendall serve hold --mean 5ms --workers 4",
            "kendall serve hold --service constant --mean 20ms --room 100",
        ],
    ),
    (
        "serve chat",
        &[
            "kendall serve chat",
            "kendall serve chat --listen 0.0.0.0:5011 --tls",
            "kendall serve chat --store sqlite:accounts.db --keys keys",
        ],
    ),
    ("serve transport", &["kendall serve transport", "kendall serve transport --listen 127.0.0.1:5012"]),
    ("serve http", &["kendall serve http --command 'python3 -m http.server -b 127.0.0.1 8000'"]),
    (
        "recover encrypt",
        &[
            "kendall recover encrypt report.pdf",
            "kendall recover encrypt report.pdf --password zebra --out hidden",
        ],
    ),
    (
        "recover request",
        &[
            "kendall recover request report.pdf.enc --hash 38aa53de31c04bcfae9163cc23b7963ed9cf90f7 --length 5",
        ],
    ),
    ("curve show", &["kendall curve show serverkey"]),
    ("curve cat", &["kendall curve cat server.example KEY 192.0.2.7:10000 < request"]),
    (
        "curve serve",
        &[
            "kendall curve serve server.example serverkey 127.0.0.1:10000 -- cat",
            "kendall curve serve server.example serverkey 127.0.0.1:10000 --programs 10 -- sh -c 'date'",
        ],
    ),
    (
        "curve connect",
        &["kendall curve connect server.example KEY 192.0.2.7:10000 -- sh -c 'echo hello; cat'"],
    ),
    ("chat history", &["kendall chat history bob", "kendall chat history bob --json"]),
    ("chat open", &["kendall chat open", "kendall chat open --files downloads --receipts off"]),
    ("chat login", &["kendall chat login ann --server 127.0.0.1:5011"]),
    ("chat who", &["kendall chat who", "kendall chat who --json"]),
    (
        "chat send",
        &[
            "kendall chat send bob --file report.pdf --file notes.txt",
            "kendall chat send bob --lines < messages.txt",
        ],
    ),
    (
        "chat recv",
        &["kendall chat recv --count 1", "kendall chat recv --from bob --files downloads --timeout 10m"],
    ),
    ("chat talk", &["kendall chat talk bob", "kendall chat talk"]),
    ("chat peers", &["kendall chat peers", "kendall chat peers --forget bob"]),
    ("chat passwd", &["kendall chat passwd"]),
    ("chat delete", &["kendall chat --profile old delete"]),
    ("selfcheck", &["kendall selfcheck", "kendall selfcheck --seeds 5 --json"]),
    ("doctor", &["kendall doctor", "kendall doctor --json"]),
    ("completions", &["kendall completions bash > ~/.local/share/bash-completion/completions/kendall"]),
];
