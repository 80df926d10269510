//! One of several links in a row, as it is written on the command line and in experiments.

use kendall_linkmodel::{Fault, Settings};

/// One of several links in a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Hop {
    /// From client to server.
    pub(crate) up: Settings,
    /// From server to client.
    pub(crate) down: Settings,
}

/// Reads "delay=5ms rate=10mbit", and after a slash what differs on the way back.
pub(crate) fn read(text: &str) -> Result<Hop, Fault> {
    // Rates may have a slash of their own, as in 2MB/s: the one between the ways stands free.
    let (there, back) = text.split_once(" / ").unwrap_or((text, ""));
    let up: Settings = there.parse()?;
    let mut down = up.clone();
    down.apply(back)?;
    down.check()?;
    Ok(Hop { up, down })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_after_the_slash_differs_on_the_way_back() {
        let hop = read("delay=5ms rate=1MB/s / rate=2MB/s loss=1%").unwrap();
        assert_eq!(hop.up, "delay=5ms rate=8mbit".parse().unwrap());
        assert_eq!(hop.down, "delay=5ms rate=16mbit loss=1%".parse().unwrap());
        let same = read("delay=5ms").unwrap();
        assert_eq!(same.up, same.down);
        assert!(read("delay=5ms / dealy=6ms").unwrap_err().to_string().contains("dealy"));
    }
}
