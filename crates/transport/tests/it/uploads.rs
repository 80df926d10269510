//! Uploads: the server receives the bytes of a client, compares them, and reports the progress.

use kendall_transport::Kind;
use kendall_transport::protocol::{Head, Pattern};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Builder;

use crate::serving::{options, start};

/// More than a window of any transport, so that the server must read while the client sends.
const BYTES: u64 = 3_000_000;

/// Uploads over a transport, optionally with one byte changed. Returns the last report, if the server has sent any.
fn last_report(kind: Kind, changed: Option<usize>) -> Option<u64> {
    let server = start(&options(kind));
    let to = server.address;
    let last = Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let stream = kind.transport().connect(to).await.unwrap().stream;
        let (mut reader, mut writer) = tokio::io::split(stream);
        let (pattern, mut upload) = (Pattern::default(), Vec::new());
        while (upload.len() as u64) < BYTES {
            upload.extend_from_slice(pattern.piece(upload.len() as u64..BYTES));
        }
        changed.into_iter().for_each(|place| upload[place] ^= 1);
        let send = async {
            // A server that has rejected it reads no more.
            let head = writer.write_all(&Head::Take(BYTES).encode()).await;
            head.is_ok() && writer.write_all(&upload).await.is_ok() && writer.flush().await.is_ok()
        };
        let reports = async {
            let (mut last, mut report) = (None, [0; 8]);
            while last != Some(BYTES) && reader.read_exact(&mut report).await.is_ok() {
                let bytes = u64::from_be_bytes(report);
                assert!((last.unwrap_or(0)..=BYTES).contains(&bytes), "{kind}: {bytes} after {last:?}");
                last = Some(bytes);
            }
            last
        };
        tokio::join!(send, reports).1
    });
    server.stop();
    last
}

#[test]
fn reports_grow_to_all_bytes_over_every_transport() {
    for kind in Kind::ALL {
        assert_eq!(last_report(kind, None), Some(BYTES), "{kind}");
    }
}

#[test]
fn an_upload_with_a_wrong_byte_is_never_reported_as_complete() {
    for kind in Kind::ALL {
        assert!(last_report(kind, Some(2_000_000)).is_none_or(|bytes| bytes <= 2_000_000), "{kind}");
    }
}
