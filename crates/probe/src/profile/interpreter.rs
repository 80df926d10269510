//! Interpreters, whose stacks show the interpreter and not the functions of the program that it runs.

use std::fs;
use std::path::Path;

/// An interpreter, and how to make it name the functions of its programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interpreter {
    /// The language.
    language: &'static str,
    /// How the names of its programs begin, except libraries.
    programs: &'static [&'static str],
    /// How the name of its library begins, where a program embeds it.
    library: &'static str,
    /// How the names that it writes for its functions begin; empty where it writes them unchanged.
    names: &'static [&'static str],
    /// The remedy.
    remedy: &'static str,
}

const ALL: [Interpreter; 8] = [
    Interpreter {
        language: "Python",
        programs: &["python", "pypy"],
        library: "libpython",
        names: &["py::"],
        remedy: "start it with python -X perf (3.12 or later, or PYTHONPERFSUPPORT=1), or sample it with py-spy",
    },
    Interpreter {
        language: "JavaScript",
        programs: &["node", "nodejs", "bun", "deno"],
        library: "libnode",
        names: &["JS:", "LazyCompile:", "Function:", "Eval:", "Script:"],
        remedy: "start it with node --perf-basic-prof --interpreted-frames-native-stack",
    },
    Interpreter {
        language: "Java",
        programs: &["java"],
        library: "libjvm",
        names: &[],
        remedy: "start it with java -XX:+PreserveFramePointer, and give jcmd PID Compiler.perfmap (17 or later) while it runs",
    },
    Interpreter {
        language: "Ruby",
        programs: &["ruby", "puma"],
        library: "libruby",
        names: &[],
        remedy: "start it with ruby --yjit --yjit-perf (3.3 or later), or sample it with rbspy",
    },
    Interpreter {
        language: "PHP",
        programs: &["php"],
        library: "libphp",
        names: &[],
        remedy: "sample it with phpspy",
    },
    Interpreter {
        language: "Perl",
        programs: &["perl"],
        library: "libperl",
        names: &[],
        remedy: "start it with perl -d:NYTProf",
    },
    Interpreter {
        language: "Erlang",
        programs: &["beam.smp"],
        library: "libbeam",
        names: &[],
        remedy: "start it with erl +JPperf true",
    },
    Interpreter {
        language: ".NET",
        programs: &["dotnet"],
        library: "libcoreclr",
        names: &[],
        remedy: "start it with DOTNET_PerfMapEnabled=1 in its environment",
    },
];

impl Interpreter {
    /// The interpreter that a process runs, as its program or as a library.
    pub(super) fn of(pid: u32) -> Option<Self> {
        let program = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        let libraries = maps.lines().filter_map(|line| line.get(line.find('/')?..));
        Self::by_files(&program, libraries)
    }

    fn by_files<'a>(program: &Path, mut files: impl Iterator<Item = &'a str>) -> Option<Self> {
        let name = program.file_name()?.to_str()?;
        // "python3.12", "php8.2-fpm"; but not "nodejs-proxy" for node, nor "javac".
        let is_version = |rest: &str| {
            rest.is_empty()
                || rest.starts_with(|c: char| c.is_ascii_digit())
                || rest == "-fpm"
                || rest == "-cgi"
        };
        let is_program =
            |one: &&Self| one.programs.iter().any(|begin| name.strip_prefix(begin).is_some_and(is_version));
        let all = ALL.iter().find(is_program).copied();
        all.or_else(|| {
            files.find_map(|file| {
                let name = Path::new(file).file_name()?.to_str()?;
                ALL.iter().find(|one| name.starts_with(one.library)).copied()
            })
        })
    }

    /// What is missing from stacks that contain none of the program's functions by name, and the remedy; `None` where they do.
    /// `named` are the names that the process itself wrote.
    pub(super) fn note<'a>(&self, mut named: impl Iterator<Item = &'a str>) -> Option<String> {
        let Self { language, names, remedy, .. } = self;
        let is_function = |name: &str| names.is_empty() || names.iter().any(|begin| name.starts_with(begin));
        (!named.any(is_function)).then(|| {
            format!(
                "This server is a program in {language}, and these are the functions of what runs it, not its own. To see its own: \
                 {remedy}."
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn language(program: &str, files: &[&str]) -> Option<&'static str> {
        Interpreter::by_files(Path::new(program), files.iter().copied()).map(|found| found.language)
    }

    #[test]
    fn interpreters_are_known_by_their_programs_and_libraries() {
        assert_eq!(language("/usr/bin/python3.12", &[]), Some("Python"));
        assert_eq!(language("/usr/bin/node", &[]), Some("JavaScript"));
        assert_eq!(language("/usr/sbin/php8.2-fpm", &[]), Some("PHP"));
        assert_eq!(language("/usr/bin/ruby3.1", &[]), Some("Ruby"));
        assert_eq!(language("/usr/bin/uwsgi", &["/usr/lib/libpython3.11.so.1.0"]), Some("Python"));
        assert_eq!(language("/opt/jdk/bin/java", &[]), Some("Java"));
        for native in ["/usr/sbin/nginx", "/usr/bin/javac", "/usr/bin/node_exporter", "/usr/bin/rubyist"] {
            assert_eq!(language(native, &["/usr/lib/libc.so.6"]), None, "{native}");
        }
    }

    #[test]
    fn the_remedy_is_named_unless_the_functions_are_there() {
        let python = Interpreter::by_files(Path::new("python3"), [].into_iter()).unwrap();
        let note = python.note([].into_iter()).unwrap();
        assert!(note.contains("Python") && note.contains("python -X perf"), "{note}");
        assert_eq!(python.note(["py::handle:/srv/app.py"].into_iter()), None);
        let node = Interpreter::by_files(Path::new("node"), [].into_iter()).unwrap();
        assert!(node.note(["BytecodeHandler:LdaZero"].into_iter()).unwrap().contains("--perf-basic-prof"));
        assert_eq!(node.note(["JS:~handle /srv/app.js:4:9"].into_iter()), None);
    }
}
