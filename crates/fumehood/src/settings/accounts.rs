//! Accounts of the system, as its own databases list them.
//!
//! Leaves to others: accounts of a directory service, which these files do not hold; settings name those by number.

/// The accounts and groups of the system.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accounts {
    /// Name, number, and the number of the first group.
    users: Vec<(String, u32, u32)>,
    /// Name, number, and the names of those who are in it.
    groups: Vec<(String, u32, Vec<String>)>,
}

impl Accounts {
    /// Reads `/etc/passwd` and `/etc/group`. What cannot be read lists nobody.
    pub fn read() -> Self {
        let text = |path| String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned();
        Self::parse(&text("/etc/passwd"), &text("/etc/group"))
    }

    /// Reads texts in the format of passwd(5) and group(5).
    fn parse(passwd: &str, group: &str) -> Self {
        let user = |line: &str| {
            let fields: Vec<&str> = line.split(':').collect();
            let [name, _, uid, gid, ..] = fields[..] else { return None };
            Some((name.to_owned(), uid.parse().ok()?, gid.parse().ok()?))
        };
        let in_group = |line: &str| {
            let fields: Vec<&str> = line.split(':').collect();
            let [name, _, gid, members] = fields[..] else { return None };
            let members = members.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
            Some((name.to_owned(), gid.parse().ok()?, members))
        };
        Self {
            users: passwd.lines().filter_map(user).filter(|(name, ..)| !name.is_empty()).collect(),
            groups: group.lines().filter_map(in_group).filter(|(name, ..)| !name.is_empty()).collect(),
        }
    }

    /// Returns the number of an account; nothing when there is none of this name.
    pub fn number(&self, name: &str) -> Option<u32> {
        self.users.iter().find(|(known, ..)| known == name).map(|(_, uid, _)| *uid)
    }

    /// Returns the name of an account.
    pub fn name(&self, number: u32) -> Option<&str> {
        self.users.iter().find(|(_, uid, _)| *uid == number).map(|(name, ..)| name.as_str())
    }

    /// Returns who is in a group, by their numbers; nothing when there is no such group.
    pub fn members(&self, group: &str) -> Option<Vec<u32>> {
        let (_, gid, members) = self.groups.iter().find(|(name, ..)| name == group)?;
        let named = members.iter().filter_map(|name| self.number(name));
        let first = self.users.iter().filter(|(.., first)| first == gid).map(|(_, uid, _)| *uid);
        Some(named.chain(first).collect())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Ada, Grace and Lin; two of them are operators.
    pub(in super::super) fn three() -> Accounts {
        Accounts::parse(
            "root:x:0:0::/root:/bin/sh\nbroken\nada:x:1000:1000::/home/ada:/bin/sh\ngrace:x:1001:50::/:/bin/sh\nlin:x:1002:1002::/:/bin/sh\n",
            "root:x:0:\nops:x:50:ada,gone\nempty:x:51:\nbroken:x\n",
        )
    }

    #[test]
    fn accounts_are_found_by_name_and_by_group() {
        let accounts = three();
        assert_eq!((accounts.number("ada"), accounts.number("gone")), (Some(1000), None));
        assert_eq!((accounts.name(1001), accounts.name(7)), (Some("grace"), None));
        assert_eq!(accounts.members("ops"), Some(vec![1000, 1001]), "named, and by their first group");
        assert_eq!((accounts.members("empty"), accounts.members("nobody")), (Some(vec![]), None));
    }
}
