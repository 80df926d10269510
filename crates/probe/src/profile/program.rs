//! The files that code comes from, each read once for unwinding.

use std::collections::HashMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use framehop::ModuleSectionInfo;
use object::{Object, ObjectSection, ObjectSegment, SegmentFlags};

/// Files larger than this are not read; their frames are addresses.
const MOST_BYTES: u64 = 1 << 30;

/// The files read so far.
#[derive(Default)]
pub(super) struct Images(HashMap<PathBuf, Option<Arc<Image>>>);

impl Images {
    /// The unwind data of a file; `None` where it cannot be read or is not a program.
    pub(super) fn of(&mut self, path: &Path) -> Option<Arc<Image>> {
        let read = || Image::read(path).map(Arc::new);
        self.0.entry(path.to_owned()).or_insert_with(read).clone()
    }
}

/// A program or a library.
pub(super) struct Image {
    sections: Vec<Section>,
    /// The memory ranges of the parts with code, with their offsets in the file.
    code: Vec<(Range<u64>, u64)>,
}

/// A section: its address in memory, and its bytes.
struct Section {
    name: &'static str,
    range: Range<u64>,
    data: Arc<[u8]>,
}

impl Image {
    fn read(path: &Path) -> Option<Self> {
        if fs::metadata(path).ok()?.len() > MOST_BYTES {
            return None;
        }
        let bytes = fs::read(path).ok()?;
        let file = object::File::parse(&*bytes).ok()?;
        let wanted = [".text", ".got", ".eh_frame", ".eh_frame_hdr", ".debug_frame"];
        let section = |name: &'static str| {
            let section = file.section_by_name(name)?;
            let range = section.address()..section.address() + section.size();
            // Of the code and of the table of offsets only the address is needed.
            let data = if matches!(name, ".text" | ".got") { &[][..] } else { section.data().ok()? };
            Some(Section { name, range, data: data.into() })
        };
        let code = |segment: object::Segment<'_, '_>| {
            let SegmentFlags::Elf { p_flags } = segment.flags() else { return None };
            let (at, length) = segment.file_range();
            (p_flags & object::elf::PF_X != 0).then(|| (at..at + length, segment.address()))
        };
        Some(Self {
            sections: wanted.into_iter().filter_map(section).collect(),
            code: file.segments().filter_map(code).collect(),
        })
    }

    /// The difference between addresses in memory and in the file, where a part of the file at `offset` lies at `start`.
    pub(super) fn bias(&self, offset: u64, start: u64) -> Option<u64> {
        let page = rustix::param::page_size() as u64;
        let holds =
            |(range, _): &&(Range<u64>, u64)| range.start / page * page <= offset && offset < range.end;
        let (range, address) = self.code.iter().find(holds)?;
        start.checked_sub(address.wrapping_add(offset).wrapping_sub(range.start))
    }
}

/// The sections of an image, in the form that the unwinder needs.
pub(super) struct Sections<'a>(pub(super) &'a Image);

impl Sections<'_> {
    fn find(&self, name: &[u8]) -> Option<&Section> {
        self.0.sections.iter().find(|section| section.name.as_bytes() == name)
    }
}

impl ModuleSectionInfo<Arc<[u8]>> for Sections<'_> {
    fn base_svma(&self) -> u64 {
        0
    }

    fn section_svma_range(&mut self, name: &[u8]) -> Option<Range<u64>> {
        self.find(name).map(|section| section.range.clone())
    }

    fn section_data(&mut self, name: &[u8]) -> Option<Arc<[u8]>> {
        self.find(name).map(|section| section.data.clone()).filter(|data| !data.is_empty())
    }
}
