//! Reading what `strace -f -xx -o` wrote: one finished call after the other, in the order in which they ended.

use std::collections::HashMap;

/// What is to be traced: every call that changes files or names, or syncs them.
pub const CALLS: &str = "trace=open,openat,creat,write,pwrite64,pwritev,writev,ftruncate,truncate,fallocate,\
    fsync,fdatasync,rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdir,mkdirat,rmdir,close,dup,dup2,dup3,\
    fcntl,copy_file_range,sendfile";

/// A call that succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub name: String,
    pub arguments: Vec<Argument>,
    pub result: i64,
}

/// What a call was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Argument {
    /// A string in quotes.
    Bytes(Vec<u8>),
    /// Anything else as it stands there.
    Word(String),
}

impl Call {
    /// An argument that is a number; what is none counts as -1, as `AT_FDCWD`.
    pub fn number(&self, at: usize) -> i64 {
        match self.arguments.get(at) {
            Some(Argument::Word(word)) => word.parse().unwrap_or(-1),
            _ => -1,
        }
    }

    pub fn word(&self, at: usize) -> &str {
        match self.arguments.get(at) {
            Some(Argument::Word(word)) => word,
            _ => "",
        }
    }

    pub fn bytes(&self, at: usize) -> &[u8] {
        match self.arguments.get(at) {
            Some(Argument::Bytes(bytes)) => bytes,
            _ => &[],
        }
    }
}

/// All calls that succeeded.
pub fn read(log: &str) -> Vec<Call> {
    let mut begun: HashMap<&str, String> = HashMap::new();
    let mut calls = Vec::new();
    for line in log.lines() {
        let Some((process, rest)) = line.split_once(char::is_whitespace) else { continue };
        let rest = rest.trim_start();
        if let Some(first) = rest.strip_suffix(" <unfinished ...>") {
            begun.insert(process, first.to_owned());
            continue;
        }
        let whole = match rest.strip_prefix("<... ").and_then(|rest| rest.split_once(" resumed>")) {
            Some((_, last)) => begun.remove(process).unwrap_or_default() + last,
            None => rest.to_owned(),
        };
        calls.extend(call(&whole));
    }
    calls
}

fn call(text: &str) -> Option<Call> {
    let (head, result) = text.rsplit_once(" = ")?;
    let result = result.split_whitespace().next()?.parse().ok().filter(|result| *result >= 0)?;
    let (name, arguments) = head.trim_end().strip_suffix(')')?.split_once('(')?;
    Some(Call { name: name.to_owned(), arguments: split(arguments), result })
}

/// Splits at commas that stand in no quotes; a string is written in hexadecimal throughout.
fn split(text: &str) -> Vec<Argument> {
    let is_quoted = |part: &str| part.starts_with('"');
    text.split(", ")
        .map(|part| match part.trim() {
            part if is_quoted(part) => {
                let inner = part.trim_end_matches("...").trim_matches('"');
                let bytes = inner.split("\\x").filter(|hex| !hex.is_empty());
                Argument::Bytes(bytes.map(|hex| u8::from_str_radix(hex, 16).unwrap()).collect())
            }
            word => Argument::Word(word.to_owned()),
        })
        .collect()
}

#[test]
fn calls_are_put_together_and_failures_left_out() {
    let log = r#"7  openat(AT_FDCWD, "\x2f\x61", O_RDWR|O_CREAT, 0600) = 5
7  pwrite64(5, "\x41\x2c\x20", 3, 8 <unfinished ...>
8  fsync(6)  = 0
7  <... pwrite64 resumed>) = 3
8  unlink("\x2f\x62") = -1 ENOENT (No such file or directory)
8  +++ exited with 0 +++
"#;
    let calls = read(log);
    let names: Vec<_> = calls.iter().map(|call| (call.name.as_str(), call.result)).collect();
    assert_eq!(names, [("openat", 5), ("fsync", 0), ("pwrite64", 3)]);
    assert_eq!(calls[0].bytes(1), b"/a");
    assert_eq!((calls[0].word(2), calls[0].number(0)), ("O_RDWR|O_CREAT", -1));
    assert_eq!((calls[2].bytes(1), calls[2].number(3)), (&b"A, "[..], 8));
}
