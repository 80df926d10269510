//! A small picture of each run: the first figure of its report, as a separate image.

use std::io::Read;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use kendall_report::STYLE;
use lru::LruCache;

use crate::id::RunId;
use crate::run::changed;

/// The part of a report that is searched for the first figure.
const LOOKED_THROUGH_BYTES: u64 = 1 << 20;
/// A larger drawing is neither kept nor shown.
const LONGEST_BYTES: usize = 128 * 1024;
/// The number of most recently used pictures that are kept.
const MOST_KEPT: NonZeroUsize = NonZeroUsize::new(200).expect("it is not 0");

/// The pictures of runs, each of a version of the report.
#[derive(Debug)]
pub(crate) struct Pictures(Mutex<LruCache<RunId, (SystemTime, Arc<str>)>>);

impl Pictures {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(LruCache::new(MOST_KEPT)))
    }

    /// The picture of a run, if its report has a figure. Reads files.
    pub(crate) fn of(&self, id: &RunId, folder: &Path) -> Option<Arc<str>> {
        let report = folder.join("report.html");
        let as_of = changed(&report)?;
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned();
        if let Some((_, svg)) = kept.filter(|(of, _)| *of == as_of) {
            return Some(svg);
        }
        let mut page = Vec::new();
        kendall_files::open(&report).ok()?.take(LOOKED_THROUGH_BYTES).read_to_end(&mut page).ok()?;
        let svg: Arc<str> = first_figure(&String::from_utf8_lossy(&page))?.into();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).put(id.clone(), (as_of, Arc::clone(&svg)));
        Some(svg)
    }
}

/// The drawing of the first panel of a page, with the page's style embedded.
fn first_figure(page: &str) -> Option<String> {
    const END: &str = "</svg>";
    let panel = &page[page.find("class=\"panel")?..];
    let svg = &panel[panel.find("<svg ")?..];
    let svg = &svg[..svg.find(END)? + END.len()];
    // The drawing's own first tag contains its size.
    let tag = &svg[..=svg.find('>')?];
    let size = ["viewBox", "width", "height"]
        .map(|name| attribute(tag, name).map(|value| format!("{name}=\"{value}\"")));
    let size = size.into_iter().collect::<Option<Vec<String>>>()?.join(" ");
    (svg.len() <= LONGEST_BYTES).then(|| {
        // The style becomes XML text here, in which two characters have to be escaped.
        let style = STYLE.replace('&', "&amp;").replace('<', "&lt;");
        format!("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" {size}><style>{style}</style>{svg}</svg>")
    })
}

/// The value of an attribute in a tag.
fn attribute<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    let from = tag.find(&format!(" {name}=\""))? + name.len() + 3;
    tag[from..].split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_drawing_of_a_panel_is_taken_and_not_the_signs_of_a_legend() {
        let page = r#"<ul><li><svg viewBox="0 0 1 1" width="1" height="1"></svg></li></ul>
            <div class="panel"><svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 430" width="720" height="430" role="img">
            <title>seen</title></svg></div><div class="panel"><svg viewBox="0 0 2 2" width="2" height="2"></svg></div>"#;
        let svg = first_figure(page).unwrap();
        assert!(
            svg.starts_with("<svg xmlns")
                && svg.contains("viewBox=\"0 0 720 430\" width=\"720\" height=\"430\"><style>")
        );
        assert!(svg.contains("<title>seen</title></svg></svg>") && !svg.contains("0 0 2 2"));
        assert_eq!(first_figure("<p>no figure"), None);
        assert_eq!(first_figure("class=\"panel\"><svg viewBox"), None);
    }

    #[test]
    fn a_picture_is_kept_until_the_report_changes() {
        let folder = tempfile::tempdir().unwrap();
        let report = folder.path().join("report.html");
        let page = |title: &str| {
            format!(
                "<div class=\"panel\"><svg viewBox=\"0 0 2 2\" width=\"2\" height=\"2\"><title>{title}</title></svg>"
            )
        };
        let (pictures, id) = (Pictures::new(), RunId::parse("a/b").unwrap());
        assert_eq!(pictures.of(&id, folder.path()), None);
        std::fs::write(&report, page("one")).unwrap();
        let one = pictures.of(&id, folder.path()).unwrap();
        assert!(one.contains("one") && Arc::ptr_eq(&one, &pictures.of(&id, folder.path()).unwrap()));
        std::fs::write(&report, page("two")).unwrap();
        std::fs::File::open(&report)
            .unwrap()
            .set_modified(SystemTime::now() + std::time::Duration::from_secs(2))
            .unwrap();
        assert!(pictures.of(&id, folder.path()).unwrap().contains("two"));
    }
}
