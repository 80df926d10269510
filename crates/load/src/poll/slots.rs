//! Slots of connections, with keys that are never reused.

/// The slot of a connection, and its generation. A kernel event in transit while its connection was closed never
/// finds another one in its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    place: u32,
    generation: u32,
}

impl Key {
    pub(crate) fn to_bits(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.place)
    }

    pub(crate) fn from_bits(bits: u64) -> Self {
        Self { place: bits as u32, generation: (bits >> 32) as u32 }
    }
}

/// The connections. There are no more slots than connections were open at once.
pub(crate) struct Slots<T> {
    places: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    pub(crate) fn insert(&mut self, connection: T) -> Key {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push((0, None));
            (self.places.len() - 1) as u32
        });
        let (generation, slot) = &mut self.places[place as usize];
        *slot = Some(connection);
        Key { place, generation: *generation }
    }

    pub(crate) fn get(&mut self, key: Key) -> Option<&mut T> {
        let (generation, slot) = self.places.get_mut(key.place as usize)?;
        slot.as_mut().filter(|_| *generation == key.generation)
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        let (generation, slot) = self.places.get_mut(key.place as usize)?;
        if *generation != key.generation {
            return None;
        }
        let connection = slot.take()?;
        *generation = generation.wrapping_add(1);
        self.free.push(key.place);
        Some(connection)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        self.places.iter().zip(0..).filter_map(|((generation, slot), place)| {
            Some((Key { place, generation: *generation }, slot.as_ref()?))
        })
    }
}
