//! Putting settings into a file and taking them out again, as text: what is not ours is never touched.
//!
//! A block of ours stands between two marks; the first also says what had to be made for it (the file, a line
//! end), so that taking it out gives the old file back byte for byte, whatever else was added meanwhile.

use std::path::PathBuf;

/// The file was made for the block.
const MADE_FILE: &str = " +file";
/// The last line before the block had no end.
const MADE_LINE_END: &str = " +newline";

/// How a setting stands in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// The file is ours alone.
    Whole,
    /// A block before everything else.
    Top,
    /// A block behind everything else.
    End,
    /// A block behind this line where it is there, else at the end, the line included.
    Section(&'static str),
    /// The first member of a JSON object, which knows no marks.
    Member(&'static str),
}

/// One setting in one file.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    /// Whose.
    pub(super) program: &'static str,
    pub(super) path: PathBuf,
    pub(super) text: String,
    pub(super) how: How,
    /// Its mode where the file is new.
    pub(super) mode: u32,
    /// What in the rest of the file says the same thing already, in a sentence.
    pub(super) foreign: fn(&str) -> Option<String>,
}

/// What becomes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    /// It is right already.
    None,
    /// It gets this text.
    Text(String),
    /// It goes.
    Remove,
}

/// Why a file is left alone: a sentence.
pub(super) type Clash = String;

/// Nothing in the file can be in the way.
pub(super) fn nothing(_text: &str) -> Option<String> {
    None
}

impl Piece {
    /// The file with the setting in it.
    pub(super) fn put(&self, old: Option<&str>) -> Result<Change, Clash> {
        let new = match (self.how, old) {
            (How::Whole, None) => self.text.clone(),
            (How::Whole, Some(old)) if self.is_ours(old) => self.text.clone(),
            (How::Whole, Some(_)) => return Err("it is there already, and not made by larder".to_owned()),
            (How::Member(key), old) => match self.put_member(key, old)? {
                Some(new) => new,
                None => return Ok(Change::None),
            },
            (How::Top | How::End | How::Section(_), old) => self.put_block(old)?,
        };
        Ok(if old == Some(new.as_str()) { Change::None } else { Change::Text(new) })
    }

    /// The file without it.
    pub(super) fn take(&self, old: Option<&str>) -> Result<Change, Clash> {
        let Some(old) = old else { return Ok(Change::None) };
        match self.how {
            How::Whole if self.is_ours(old) => Ok(Change::Remove),
            How::Whole => Err("it was not made by larder".to_owned()),
            How::Member(key) => self.take_member(key, old),
            How::Top | How::End | How::Section(_) => match self.cut(old)? {
                None => Ok(Change::None),
                Some((rest, made)) if rest.is_empty() && made.contains(MADE_FILE) => Ok(Change::Remove),
                Some((rest, _)) => Ok(Change::Text(rest)),
            },
        }
    }

    /// The text as it is pasted into an empty file.
    pub(super) fn pasted(&self) -> String {
        match self.how {
            How::Member(_) => self.alone(),
            How::Whole | How::Top | How::End | How::Section(_) => self.text.clone(),
        }
    }

    /// The mark in a file of our own.
    pub(super) fn mark(program: &str) -> String {
        format!("Made by `larder setup {program}`")
    }

    fn is_ours(&self, text: &str) -> bool {
        text.lines().take(3).any(|line| line.contains(&Self::mark(self.program)))
    }

    fn marks(&self) -> (String, String) {
        let program = self.program;
        (format!("# >>> larder setup {program} >>>"), format!("# <<< larder setup {program} <<<"))
    }

    /// The text without our block, and what was made for it; none where there is no block.
    fn cut(&self, old: &str) -> Result<Option<(String, String)>, Clash> {
        let (open, close) = self.marks();
        let lines: Vec<&str> = old.split_inclusive('\n').collect();
        let Some(start) = lines.iter().position(|line| line.starts_with(&open)) else { return Ok(None) };
        let length = lines.iter().skip(start).position(|line| line.trim_end() == close);
        let Some(length) = length else {
            return Err(format!("the end mark `{close}` is gone: take larder's lines out by hand"));
        };
        let made = lines.get(start).and_then(|line| line.trim_end().strip_prefix(&open)).unwrap_or_default();
        let mut rest: String = lines.iter().take(start).copied().collect();
        let behind: String = lines.iter().skip(start + length + 1).copied().collect();
        if made.contains(MADE_LINE_END) && behind.is_empty() {
            rest.truncate(rest.len().saturating_sub(usize::from(rest.ends_with('\n'))));
        }
        rest.push_str(&behind);
        Ok(Some((rest, made.to_owned())))
    }

    fn put_block(&self, old: Option<&str>) -> Result<String, Clash> {
        let (rest, made_file) = match old.map(|old| self.cut(old)).transpose()?.flatten() {
            Some((rest, made)) => (rest, made.contains(MADE_FILE)),
            None => (old.unwrap_or_default().to_owned(), old.is_none()),
        };
        if let Some(foreign) = (self.foreign)(&rest) {
            return Err(foreign);
        }
        let (before, mut text, behind) = self.split(&rest);
        let unended = !before.is_empty() && !before.ends_with('\n');
        let (open, close) = self.marks();
        if !text.ends_with('\n') {
            text.push('\n');
        }
        let file = if made_file && rest.is_empty() { MADE_FILE } else { "" };
        let line_end = if unended { MADE_LINE_END } else { "" };
        let between = if unended { "\n" } else { "" };
        Ok(format!("{before}{between}{open}{file}{line_end}\n{text}{close}\n{behind}"))
    }

    /// What stands before the block, what is in it, and what stands behind.
    fn split(&self, rest: &str) -> (String, String, String) {
        let text = self.text.clone();
        match self.how {
            How::Top => (String::new(), text, rest.to_owned()),
            How::Section(section) => {
                let lines: Vec<&str> = rest.split_inclusive('\n').collect();
                let Some(at) = lines.iter().position(|line| line.trim() == section) else {
                    return (rest.to_owned(), text, String::new());
                };
                let before = lines.iter().take(at + 1).copied().collect();
                let behind = lines.iter().skip(at + 1).copied().collect();
                (before, text.split_inclusive('\n').filter(|line| line.trim() != section).collect(), behind)
            }
            How::Whole | How::End | How::Member(_) => (rest.to_owned(), text, String::new()),
        }
    }

    /// Our member alone, as a file of its own: written so that no old file looks the same.
    fn alone(&self) -> String {
        format!("{{ {} }}\n", self.text)
    }

    fn put_member(&self, key: &str, old: Option<&str>) -> Result<Option<String>, Clash> {
        let Some(old) = old else { return Ok(Some(self.alone())) };
        let is_ours = |member: &serde_json::Value| {
            format!("{{{}}}", self.text)
                .parse::<serde_json::Value>()
                .is_ok_and(|ours| ours.get(key) == Some(member))
        };
        let object: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(old).map_err(|error| format!("it is no JSON object: {error}"))?;
        match object.get(key) {
            Some(member) if is_ours(member) => return Ok(None),
            Some(_) => return Err(format!("it has `{key}` already: add {} by hand", self.text)),
            None => {}
        }
        let (before, behind) = old.split_once('{').unwrap_or_default();
        let end = if object.is_empty() { "\n" } else { "," };
        Ok(Some(format!("{before}{{\n  {}{end}{behind}", self.text)))
    }

    fn take_member(&self, key: &str, old: &str) -> Result<Change, Clash> {
        if old == self.alone() {
            return Ok(Change::Remove);
        }
        let object: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(old).map_err(|error| format!("it is no JSON object: {error}"))?;
        if !object.contains_key(key) {
            return Ok(Change::None);
        }
        for end in [",", "\n"] {
            if let Some((before, behind)) = old.split_once(&format!("{{\n  {}{end}", self.text)) {
                return Ok(Change::Text(format!("{before}{{{behind}")));
            }
        }
        Err(format!("its `{key}` is not the one that larder wrote: take it out by hand"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn piece(how: How, text: &str) -> Piece {
        let path = PathBuf::from("/x");
        Piece { program: "pip", path, text: text.to_owned(), how, mode: 0o644, foreign: nothing }
    }

    fn text(change: Change) -> String {
        match change {
            Change::Text(text) => text,
            other @ (Change::None | Change::Remove) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_block_lands_where_it_belongs() {
        let ini = piece(How::Section("[global]"), "# why\n[global]\na = 1\n");
        for (old, new) in [
            (None, "# >>> larder setup pip >>> +file\n# why\n[global]\na = 1\n# <<< larder setup pip <<<\n"),
            (
                Some("[x]\n"),
                "[x]\n# >>> larder setup pip >>>\n# why\n[global]\na = 1\n# <<< larder setup pip <<<\n",
            ),
            (
                Some("[global]\nb = 2\n"),
                "[global]\n# >>> larder setup pip >>>\n# why\na = 1\n# <<< larder setup pip <<<\nb = 2\n",
            ),
            (
                Some("[x]"),
                "[x]\n# >>> larder setup pip >>> +newline\n# why\n[global]\na = 1\n# <<< larder setup pip <<<\n",
            ),
        ] {
            assert_eq!(text(ini.put(old).unwrap()), new);
            assert_eq!(ini.put(Some(new)), Ok(Change::None), "twice is once");
        }
        let new = text(piece(How::Top, "r=1\n").put(Some("a=b")).unwrap());
        assert_eq!(new, "# >>> larder setup pip >>>\nr=1\n# <<< larder setup pip <<<\na=b");
    }

    #[test]
    fn what_was_added_meanwhile_stays() {
        let end = piece(How::End, "a\n");
        let new = text(end.put(None).unwrap()) + "mine\n";
        assert_eq!(text(end.take(Some(&new)).unwrap()), "mine\n");
        let new = text(end.put(Some("old")).unwrap()) + "mine\n";
        assert_eq!(text(end.take(Some(&new)).unwrap()), "old\nmine\n");
        let newer = piece(How::End, "b\n");
        assert_eq!(text(newer.put(Some(&new)).unwrap()).matches(">>> larder").count(), 1);
        let broken = new.replace("# <<<", "#");
        assert!(end.take(Some(&broken)).is_err() && end.put(Some(&broken)).is_err());
    }

    #[test]
    fn a_file_of_ours_is_told_from_a_strangers() {
        let whole = piece(How::Whole, "# Made by `larder setup pip`\nx\n");
        assert_eq!(text(whole.put(None).unwrap()), whole.text);
        assert_eq!(whole.put(Some(&whole.text)), Ok(Change::None));
        assert_eq!(whole.take(Some("# Made by `larder setup pip`, long ago\n")), Ok(Change::Remove));
        assert!(whole.put(Some("theirs\n")).is_err() && whole.take(Some("theirs\n")).is_err());
        assert_eq!(whole.take(None), Ok(Change::None));
    }

    #[test]
    fn a_member_of_an_object_comes_and_goes() {
        let member = piece(How::Member("m"), "\"m\": [\"u\"]");
        assert_eq!(text(member.put(None).unwrap()), "{ \"m\": [\"u\"] }\n");
        assert_eq!(member.take(Some("{ \"m\": [\"u\"] }\n")), Ok(Change::Remove));
        for old in ["{}", "{ }\n", "{\n}\n", "{\"a\": {\"m\": 1}}", " {\n  \"a\": 1\n}\n"] {
            let new = text(member.put(Some(old)).unwrap());
            let read: serde_json::Value = serde_json::from_str(&new).unwrap();
            assert_eq!(read["m"][0], "u", "{new}");
            assert_eq!(member.put(Some(&new)), Ok(Change::None));
            assert_eq!(text(member.take(Some(&new)).unwrap()), old);
        }
        for theirs in ["{\"m\": []}", "{\"m\": [\"u\", \"v\"]}"] {
            assert!(member.put(Some(theirs)).is_err() && member.take(Some(theirs)).is_err(), "{theirs}");
        }
        assert_eq!(member.take(Some("{\"a\": 1}")), Ok(Change::None));
        assert!(member.put(Some("[]")).is_err() && member.put(Some("{")).is_err());
    }

    proptest! {
        #[test]
        fn taking_out_gives_the_old_file_back(old in "([a-z#\\[\\]= \\r]{0,8}\n?){0,6}|\\[global\\]\n?.{0,10}", at in 0usize..3) {
            let how = [How::Top, How::End, How::Section("[global]")][at];
            let piece = piece(how, "[global]\na = 1\n");
            let new = text(piece.put(Some(&old)).unwrap());
            prop_assert_eq!(text(piece.take(Some(&new)).unwrap()), old);
        }
    }
}
