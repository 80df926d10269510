//! The text form of several links in a row: "delay=5ms rate=100mbit > delay=20ms rate=10mbit / rate=50mbit".

use std::str::FromStr;

use kendall_linkmodel::{Fault, Settings};

use crate::protocol::LinkSettings;

/// One of several links in a row: its settings, and after a slash those that differ on the way back.
#[derive(Clone, Debug, PartialEq)]
pub struct Hop {
    /// From client to server.
    pub up: Settings,
    /// From server to client.
    pub down: Settings,
}

impl FromStr for Hop {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        // Rates may contain a slash, as in 2MB/s: the slash between the directions has spaces around it.
        let (there, back) = text.split_once(" / ").unwrap_or((text, ""));
        let up: Settings = there.parse()?;
        let mut down = up.clone();
        down.apply(back)?;
        down.check()?;
        Ok(Self { up, down })
    }
}

impl LinkSettings {
    /// Links in a row, in the order from client to server.
    pub fn row(hops: &[Hop]) -> Self {
        let up = hops.iter().map(|hop| hop.up.clone()).collect();
        // Packets on the way back cross the hops in reverse order.
        let down = hops.iter().rev().map(|hop| hop.down.clone()).collect();
        Self { up, down }
    }

    /// Reads links in a row, with > between them.
    ///
    /// # Errors
    /// As for the settings of a link.
    pub fn read_row(text: &str) -> Result<Self, Fault> {
        Ok(Self::row(&text.split('>').map(str::parse).collect::<Result<Vec<Hop>, _>>()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_after_the_slash_differs_on_the_way_back() {
        let hop: Hop = "delay=5ms rate=1MB/s / rate=2MB/s loss=1%".parse().unwrap();
        assert_eq!(hop.up, "delay=5ms rate=8mbit".parse().unwrap());
        assert_eq!(hop.down, "delay=5ms rate=16mbit loss=1%".parse().unwrap());
        let same: Hop = "delay=5ms".parse().unwrap();
        assert_eq!(same.up, same.down);
        assert!("delay=5ms / dealy=6ms".parse::<Hop>().unwrap_err().to_string().contains("dealy"));
    }

    #[test]
    fn the_way_back_crosses_the_same_links_in_the_other_order() {
        let asked = LinkSettings::read_row("delay=1ms > delay=2ms / delay=3ms").unwrap();
        let delays = |way: &[Settings]| way.iter().map(|hop| hop.delay_ns / 1_000_000).collect::<Vec<_>>();
        assert_eq!((delays(&asked.up), delays(&asked.down)), (vec![1, 2], vec![3, 1]));
    }
}
