//! The mirrors of Maven's settings, written anew.
//!
//! Only five plain values of each mirror and three of the settings themselves are taken; everything else in the file
//! (servers, proxies, profiles) is not even looked at. So this reads just enough XML to find elements by name.

use super::clean::Cleaned;
use super::credentials::without_secret;

const MIRROR: [&str; 5] = ["id", "name", "url", "mirrorOf", "blocked"];
const SETTINGS: [&str; 3] = ["localRepository", "offline", "interactiveMode"];

/// Returns settings with only the mirrors; nothing when the file is not what it should be.
pub(super) fn clean(text: &str) -> Option<Cleaned> {
    let settings = Element::parse(text).filter(|root| root.name == "settings")?;
    let mut cleaned = Cleaned::default();
    cleaned.text.push_str("<settings>\n");
    cleaned.keep_values(&settings, &SETTINGS, "  ");
    if let Some(mirrors) = settings.child("mirrors") {
        cleaned.text.push_str("  <mirrors>\n");
        for mirror in mirrors.children.iter().filter(|child| child.name == "mirror") {
            cleaned.text.push_str("    <mirror>\n");
            cleaned.keep_values(mirror, &MIRROR, "      ");
            cleaned.text.push_str("    </mirror>\n");
        }
        cleaned.text.push_str("  </mirrors>\n");
    }
    cleaned.text.push_str("</settings>\n");
    Some(cleaned)
}

/// Returns settings that say only that there is no network, or says so in settings that were cleaned.
pub(super) fn offline(settings: Option<String>) -> String {
    let settings = settings.unwrap_or_else(|| "<settings>\n</settings>\n".to_owned());
    if settings.contains("<offline>") {
        return settings;
    }
    settings.replacen("<settings>\n", "<settings>\n  <offline>true</offline>\n", 1)
}

impl Cleaned {
    fn keep_values(&mut self, element: &Element, names: &[&str], indent: &str) {
        let is_value = |child: &&Element| names.contains(&child.name) && !child.text.contains('<');
        for child in element.children.iter().filter(is_value) {
            let text = child.text.trim();
            let kept = without_secret(text);
            if kept.as_deref() != Some(text) {
                self.secrets.push(child.name.to_owned());
            }
            if let Some(kept) = kept {
                self.text.push_str(&format!("{indent}<{0}>{kept}</{0}>\n", child.name));
            }
        }
    }
}

/// An element of XML: its name, the elements in it, and its text as it is written.
struct Element<'a> {
    name: &'a str,
    children: Vec<Element<'a>>,
    text: &'a str,
}

impl<'a> Element<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        // A document type could define what text stands for, so such files are left alone.
        if text.contains("<!DOCTYPE") || text.contains("<![CDATA[") {
            return None;
        }
        let mut open: Vec<(Self, usize)> = vec![(Self { name: "", children: Vec::new(), text: "" }, 0)];
        let mut at = 0;
        while let Some(start) = text[at..].find('<').map(|found| at + found) {
            let rest = &text[start..];
            if rest.starts_with("<!--") {
                at = start + rest.find("-->")? + 3;
                continue;
            }
            let end = start + rest.find('>')?;
            let tag = &text[start + 1..end];
            at = end + 1;
            if tag.starts_with('?') {
                continue;
            }
            if let Some(name) = tag.strip_prefix('/') {
                let (mut element, from) = open.pop().filter(|_| !open.is_empty())?;
                if element.name != name.trim() {
                    return None;
                }
                element.text = &text[from..start];
                open.last_mut()?.0.children.push(element);
            } else {
                let name = tag.split(|c: char| c.is_whitespace() || c == '/').next()?;
                let element = Self { name, children: Vec::new(), text: "" };
                match tag.ends_with('/') {
                    true => open.last_mut()?.0.children.push(element),
                    false => open.push((element, at)),
                }
            }
        }
        let (document, _) = open.pop().filter(|_| open.is_empty())?;
        document.children.into_iter().next()
    }

    fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: &str = r#"<?xml version="1.0"?>
        <settings xmlns="http://maven.apache.org/SETTINGS/1.0.0">
          <!-- <mirrors><mirror><id>old</id></mirror></mirrors> -->
          <servers><server><id>work</id><username>ada</username><password>hunter2</password></server></servers>
          <mirrors><mirror><id>work</id><mirrorOf>*</mirrorOf><url>https://ada:hunter2@mirror.example/maven</url></mirror></mirrors>
          <profiles><profile><properties><sonar.token>hunter2</sonar.token></properties></profile></profiles>
        </settings>"#;

    #[test]
    fn mirrors_are_kept_and_servers_are_not() {
        let cleaned = clean(SETTINGS).expect("it parses");
        assert!(cleaned.text.contains("<url>https://mirror.example/maven</url>"), "{}", cleaned.text);
        assert!(cleaned.text.contains("<mirrorOf>*</mirrorOf>"));
        for gone in ["hunter2", "ada", "sonar", "old"] {
            assert!(!cleaned.text.contains(gone), "{gone} in {}", cleaned.text);
        }
        assert_eq!(cleaned.secrets, ["url"]);
    }

    #[test]
    fn without_a_network_the_settings_say_so() {
        assert_eq!(offline(None), "<settings>\n  <offline>true</offline>\n</settings>\n");
        assert!(offline(clean(SETTINGS).map(|cleaned| cleaned.text)).contains("<offline>true</offline>"));
    }

    #[test]
    fn broken_files_are_refused() {
        for text in [
            "",
            "<settings>",
            "<settings></mirrors>",
            "</settings>",
            "<a></a></a>",
            "<settings><!-- ",
            "<b/>",
        ] {
            assert_eq!(clean(text), None, "{text}");
        }
        assert!(clean("<!DOCTYPE x [<!ENTITY a \"b\">]><settings></settings>").is_none());
    }
}
