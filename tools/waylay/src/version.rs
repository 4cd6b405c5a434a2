//! What `waylay --version` says: the version, the commit and kind of build, and the versions of everything that other builds
//! may have written or have to read. docs/install.md has the policy for each.

use std::sync::OnceLock;

/// The first line is what `-V` prints.
pub(crate) fn long() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let formats = [
            ("plugin ABI", waylay_abi::ABI_VERSION.to_string()),
            ("schedule", waylay_schedule::schedule::VERSION.to_string()),
            ("strict.json", waylay_explore::recording::FORMAT.to_string()),
            ("campaign.json", waylay_driver::store::CAMPAIGN_FORMAT.to_string()),
            ("failure.json", waylay_driver::failure::FORMAT.to_string()),
            ("pack", waylay_fleet::pack::FORMAT.to_string()),
            ("history", waylay_history::schema::VERSION.to_string()),
        ];
        let mut text = env!("CARGO_PKG_VERSION").to_owned();
        text += &format!("\ncommit        {}\nbuild         {}", env!("WAYLAY_COMMIT"), env!("WAYLAY_BUILD"));
        for (name, version) in formats {
            text += &format!("\n{name:13} {version}");
        }
        text
    })
}
