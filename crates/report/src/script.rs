//! The script of pages with plots: uPlot, which keeps scales, axes and selections, and our own, which draws and answers.
//!
//! It stands at the end of a page and takes up every `figure.chart` whose panels hold a plot as JSON in addition to its static drawing.
//! It asks no network for anything, adds no global name, and leaves a drawing as it is where it cannot read its data.

/// The script, to be put into one script element after all figures.
pub const SCRIPT: &str = concat!(
    "(() => {\n\"use strict\";\n",
    include_str!("../vendor/uplot/uPlot.iife.min.js"),
    include_str!("../templates/plot/numbers.js"),
    include_str!("../templates/plot/axis.js"),
    include_str!("../templates/plot/look.js"),
    include_str!("../templates/plot/marks.js"),
    include_str!("../templates/plot/nearest.js"),
    include_str!("../templates/plot/readout.js"),
    include_str!("../templates/plot/input.js"),
    include_str!("../templates/plot/decode.js"),
    include_str!("../templates/plot/plot.js"),
    include_str!("../templates/plot/save.js"),
    include_str!("../templates/plot/figure.js"),
    include_str!("../templates/plot/trials.js"),
    include_str!("../templates/plot/start.js"),
    "})();\n",
);

/// The styles of what the script adds.
pub const STYLE: &str =
    concat!(include_str!("../vendor/uplot/uPlot.min.css"), "\n", include_str!("../templates/plot.css"));

/// The content that a page may load and run, for its meta element: only what the page itself contains.
pub const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:; \
                          base-uri 'none'; form-action 'none'";

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    /// uPlot 1.6.32 as the npm registry has it. A later version is put in with its own digests, on purpose.
    #[test]
    fn the_vendored_library_is_the_published_one() {
        let files: [(&[u8], &str); 3] = [
            (
                include_bytes!("../vendor/uplot/uPlot.iife.min.js"),
                "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
            ),
            (
                include_bytes!("../vendor/uplot/uPlot.min.css"),
                "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
            ),
            (
                include_bytes!("../vendor/uplot/LICENSE"),
                "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
            ),
        ];
        for (file, digest) in files {
            let ours: String = Sha256::digest(file).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(ours, digest);
        }
    }

    #[test]
    fn the_script_ends_where_its_element_ends_and_reaches_for_nothing_outside() {
        let script = super::SCRIPT.to_lowercase();
        for word in ["</script", "<!--", "eval(", "new function", "xmlhttprequest", "fetch(", "import("] {
            assert!(!script.contains(word), "{word}");
        }
        assert!(!super::STYLE.to_lowercase().contains("</style"));
        assert!(!super::STYLE.contains("url("));
    }
}
