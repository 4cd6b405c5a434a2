//! Code addresses as others know them: a module and a place in it.

use waylay_control_protocol::Site;

/// The modules of the process, as far as they have been looked at.
#[derive(Debug, Default)]
pub(crate) struct Modules {
    all: Vec<Module>,
}

/// One of them.
#[derive(Clone, Debug)]
pub struct Module {
    /// Where offset 0 of the file would be.
    pub base: usize,
    /// Where it begins.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// The name of its file, without folders.
    pub name: String,
    /// A runtime that orders threads by accesses that look like any other.
    pub orders: bool,
}

impl Modules {
    /// The place of an address; none in code that belongs to no module. `look` lists the modules there are.
    pub(crate) fn site(&mut self, code: usize, look: impl FnOnce() -> Vec<Module>) -> Option<Site> {
        if !self.all.iter().any(|module| (module.start..module.end).contains(&code)) {
            self.all = look();
        }
        self.known(code)
    }

    /// The site of an address in a module that was looked at before, of code or of data in it.
    pub(crate) fn known(&self, address: usize) -> Option<Site> {
        let module = self.all.iter().find(|module| (module.start..module.end).contains(&address))?;
        Some(Site::new(&module.name, (address - module.base) as u32))
    }

    /// Whether code is in a runtime that orders threads, in a module that was looked at before.
    pub(crate) fn orders(&self, code: usize) -> bool {
        self.all.iter().any(|module| module.orders && (module.start..module.end).contains(&code))
    }

    /// The address of a place; none when its module is not loaded.
    pub(crate) fn code(&mut self, site: Site, look: impl FnOnce() -> Vec<Module>) -> Option<usize> {
        let site = site.plain();
        let offset = site.0 as u32;
        let matching = |module: &&Module| Site::new(&module.name, offset) == site;
        if !self.all.iter().any(|module| matching(&module)) {
            self.all = look();
        }
        self.all.iter().find(matching).map(|module| module.base + offset as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(base: usize, name: &str) -> Module {
        Module {
            base,
            start: base + 0x10,
            end: base + 0x100,
            name: name.to_owned(),
            orders: name == "runtime",
        }
    }

    #[test]
    fn a_place_is_the_same_wherever_its_module_lies() {
        let (mut here, mut there) = (Modules::default(), Modules::default());
        let site = here.site(0x1020, || vec![module(0x1000, "a"), module(0x2000, "b")]).unwrap();
        assert_eq!(there.site(0x7020, || vec![module(0x7000, "a")]), Some(site));
        assert_eq!(there.code(site, Vec::new), Some(0x7020), "looked at before");
        assert_ne!(here.known(0x2020), Some(site));
        assert_eq!(here.known(0x1000), None, "in front of the module");
    }

    #[test]
    fn modules_are_looked_at_again_when_something_is_not_found() {
        let mut modules = Modules::default();
        assert_eq!(modules.site(0x1020, Vec::new), None);
        let site = modules.site(0x1020, || vec![module(0x1000, "a")]).unwrap();
        assert_eq!(modules.code(Site::new("late", 0x20), || vec![module(0x5000, "late")]), Some(0x5020));
        assert_eq!(modules.code(site, Vec::new), None);
    }

    #[test]
    fn runtimes_are_known_by_their_code() {
        let mut modules = Modules::default();
        modules.site(0x1020, || vec![module(0x1000, "a"), module(0x2000, "runtime")]);
        assert!(modules.orders(0x2020) && !modules.orders(0x1020) && !modules.orders(0x2000));
    }
}
