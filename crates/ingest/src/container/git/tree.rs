//! Folders as git keeps them, and which files differ between two.

use std::collections::BTreeMap;
use std::io;

use super::objects::{Id, Kind, Objects};

/// Folders inside folders.
const MAX_DEPTH: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    is_folder: bool,
    id: Id,
}

/// The paths of files that one folder has otherwise than another, so many at most.
pub(super) fn changed_paths(
    objects: &mut Objects,
    before: Option<Id>,
    after: Option<Id>,
    most: usize,
) -> io::Result<Vec<String>> {
    let mut found = Changes {
        objects,
        paths: Vec::new(),
        most,
    };
    found.compare(before, after, "", 0)?;
    found.paths.sort_unstable();
    Ok(found.paths)
}

struct Changes<'o> {
    objects: &'o mut Objects,
    paths: Vec<String>,
    most: usize,
}

impl Changes<'_> {
    fn compare(
        &mut self,
        before: Option<Id>,
        after: Option<Id>,
        prefix: &str,
        depth: usize,
    ) -> io::Result<()> {
        if before == after || depth > MAX_DEPTH {
            return Ok(());
        }
        let (mut old, new) = (self.folder(before)?, self.folder(after)?);
        let mut both: Vec<(Vec<u8>, Option<Entry>, Option<Entry>)> = Vec::new();
        for (name, entry) in new {
            let was = old.remove(&name);
            both.push((name, was, Some(entry)));
        }
        both.extend(old.into_iter().map(|(name, was)| (name, Some(was), None)));
        for (name, was, is) in both {
            if was == is {
                continue;
            }
            if self.paths.len() >= self.most {
                break;
            }
            let path = format!("{prefix}{}", String::from_utf8_lossy(&name));
            let folder = |entry: Option<Entry>| entry.filter(|entry| entry.is_folder);
            let is_file = |entry: Option<Entry>| entry.is_some_and(|entry| !entry.is_folder);
            if is_file(was) || is_file(is) {
                self.paths.push(path.clone());
            }
            let (was, is) = (folder(was).map(|one| one.id), folder(is).map(|one| one.id));
            self.compare(was, is, &format!("{path}/"), depth + 1)?;
        }
        Ok(())
    }

    /// What a folder holds; nothing where it is missing.
    fn folder(&mut self, id: Option<Id>) -> io::Result<BTreeMap<Vec<u8>, Entry>> {
        let mut entries = BTreeMap::new();
        let Some(id) = id else {
            return Ok(entries);
        };
        let object = self.objects.get(&id)?;
        let Some(object) = object.filter(|object| object.kind == Kind::Tree) else {
            return Ok(entries);
        };
        let mut rest = object.bytes.as_slice();
        while let Some(end) = rest.iter().position(|byte| *byte == 0) {
            let (head, behind) = rest.split_at(end);
            let Some((id, behind)) = behind.get(1..).and_then(<[u8]>::split_first_chunk) else {
                break;
            };
            let mut head = head.splitn(2, |byte| *byte == b' ');
            let (mode, name) = (head.next().unwrap_or_default(), head.next());
            let is_folder = mode == b"40000";
            let name = name.unwrap_or_default().to_vec();
            entries.insert(name, Entry { is_folder, id: *id });
            rest = behind;
        }
        Ok(entries)
    }
}
