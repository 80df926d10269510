//! Hostile values of options and arguments. Files have the names of those that the campaign of the command line prepares.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use super::draw::Draw;

const NUMBERS: &str = "\
    0 -0 -1 1 2 1.5 1e308 1e309 -1e308 1e-320 5e-324 NaN nan inf -inf Infinity 255 256 65535 65536 4294967295 \
    4294967296 9223372036854775807 9223372036854775808 18446744073709551615 18446744073709551616 \
    999999999999999999999999999999 -9223372036854775809 0x10 1_000 1,5 ½ ٣ ００ 000000000000000000000000000001 1e . \
    --1 +5 1% -5% 100% 101% 1e400% 0% NaN% 50 100000 1e9 1e18";

const TIMES: &str = "\
    0s 0 -1s 1ns 0.1ns 1e30s 99999999999999999999h 18446744073709551615ns 18446744073709551615s NaNs infs 1s1 s 1h1h \
    1e-320s ١s 9223372036s 1e9h 1ms";

/// Marks of shells, options, formats and patterns.
const TEXTS: &str = "\
    %s%n%x ${HOME} $(id) `id` - -- -x --no-such --help = =x @ @none * ? \\ \" ' null true { } [ {} [] {\"a\": a=b=c key= \
    a,b,,c , ,,,, : :: x/y/z on off auto ?u?l?q ( (?P<x a{99999} [\\p{L}&&[^a]]{100} (a*)*b é\u{301}\u{301} 🦀🦀🦀 \u{202e}gnp.exe";

/// Values with blanks, or with control codes of a terminal.
const CONTROLS: &[&str] = &[
    "",
    " ",
    "\t",
    "\n",
    "a\nb",
    "\u{1b}[2J\u{1b}]0;title\u{7}",
    "\u{feff}x",
    "; echo x",
    "5 parsecs",
    "a b:1",
    "new\nline",
];

const WRITTEN: &str = "\
    M/M/0 M/M/-1 M/M/4294967296 M/M/100000 D/D/1/0 X/Y/Z M/M/1/∞/1000000000 M/M/2/1 M// M/G/1 p99< p99<-1s p200<1s \
    p0<1s p99<0s p99.99999999999999999<1s mean<NaNs errors<1e99% rate>inf/s rate>1e308/s p99<50ms 0=1,0=2 0=-1 0=0 \
    5=1,1=2,period=0 0=1e308,1e308=1 name=,share=2 name=a,share=1e308,weight=-1 name=a,share=0.5,name=a after=-1 \
    after=1e308 after=1/2/ limit=0 poisson constant closed csv= csv=folder hdr=none/none json=/dev/full p99=0% \
    p101=1% delay=-1ms loss=200% lru gittins fifo ?l?l?l?l?l?l?l?l?l?l?l?l?l?l?l?l?l?l?l?l http=2 10.0.0.0/33 \
    10.0.0.0/0 fe80::/129 0000000000000000000000000000000000000000000000000000000000000000 \
    ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff";

const ADDRESSES: &str = "\
    127.0.0.1 127.0.0.1:0 127.0.0.1:1 127.0.0.1:65536 127.0.0.1:-1 127.0.0.1:99999999999 [::1]:0 [::1 :: :0 : \
    1.2.3.4.5:1 256.0.0.1:1 [::1%none]:1 127.0.0.1:0/path http:// http://:80/ http://127.0.0.1:1/ \
    https://127.0.0.1:1/ http://[::1 http://127.0.0.1:1/\u{0301} http://127.0.0.1:1/{random:0} \
    http://127.0.0.1:1/${NONE} file:///etc/passwd javascript:alert(1) reverse://127.0.0.1:1?difficulty=-1 \
    reverse://127.0.0.1:1?difficulty=0 reverse://127.0.0.1:1?none=1 hold://[::1]:0 \
    hold://127.0.0.1:1?users=4294967296 recover://127.0.0.1:1?length=99999 \
    recover://127.0.0.1:1?passwords=18446744073709551615 textsearch://127.0.0.1:1?mix= \
    textsearch://127.0.0.1:1?patterns=99999999999 transport://127.0.0.1:1?size=1e30 \
    chat://127.0.0.1:1?accounts=18446744073709551615 memory sqlite: sqlite:/dev/zero sqlite:folder postgres:// \
    mysql://none:99999/x redis://127.0.0.1:1/none";

/// Files of the folder of a case, and devices.
const PATHS: &str = "\
    none none/none folder folder/ . empty empty/none binary table.csv fifo loop dangling link /dev/null /dev/zero /dev/full \
    /dev/stdin /dev/random /proc/self/environ /proc/self/mem notes x.toml net.toml key lines.txt words.txt folder/new new \
    new/new/new - ~/none new\u{1b}[31m 🦀";

/// A value for an option or argument with a value name such as FILE or N, mostly one that is hostile for its kind.
pub fn value(name: &str, draw: &mut Draw) -> OsString {
    let class = match draw.below(10) {
        0..6 => of_name(name),
        6 => NUMBERS,
        7 => PATHS,
        8 => return draw.pick(CONTROLS).into(),
        _ => return odd(draw),
    };
    let words = |class: &'static str| class.split_whitespace().collect::<Vec<_>>();
    let mut value = draw.pick(&words(class)).to_owned();
    if draw.percent(5) {
        value += draw.pick(&words(TEXTS));
    }
    value.into()
}

/// The class of values that reaches deepest.
fn of_name(name: &str) -> &'static str {
    let has = |parts: &[&str]| parts.iter().any(|part| name.to_ascii_uppercase().contains(part));
    if has(&[
        "FILE",
        "FOLDER",
        "DIR",
        "PATH",
        "RESULTS",
        "EXPERIMENT",
        "SRC",
        "DST",
        "MEASURED",
        "STAMPS",
        "SIDE",
        "TRACE",
        "DATA",
    ]) {
        PATHS
    } else if has(&["ADDR", "URL", "SERVER", "LISTEN", "STORE", "TARGET"]) {
        ADDRESSES
    } else if has(&["TIME", "DURATION", "DEADLINE", "TIMEOUT", "WARMUP", "DELAY", "GAP", "IDLE", "MEAN"]) {
        TIMES
    } else if has(&[
        "STATION",
        "OBJECTIVE",
        "EXPECTATION",
        "KEY=",
        "=",
        "MEASURE",
        "FORMAT",
        "SETTINGS",
        "NETWORK",
        "MASK",
        "HEX",
        "KEY",
    ]) {
        WRITTEN
    } else if name.len() <= 8
        || has(&["NUMBER", "SECONDS", "SHARE", "BYTES", "PER_S", "SEED", "CONNECTIONS", "WORKERS"])
    {
        NUMBERS
    } else {
        TEXTS
    }
}

/// Values outside all lists: very long ones, and bytes that are not text.
fn odd(draw: &mut Draw) -> OsString {
    let length = [300, 5_000, 100_000][draw.below(3)];
    match draw.below(6) {
        0 => "A".repeat(length).into(),
        1 => "9".repeat(length).into(),
        2 => "[".repeat(length).into(),
        3 => "é".repeat(length / 2).into(),
        4 => "a,".repeat(length / 2).into(),
        _ => {
            let mut bytes: Vec<u8> = draw.bytes(20).into_iter().filter(|byte| *byte != 0).collect();
            bytes.push(0xff);
            OsString::from_vec(bytes)
        }
    }
}
