//! `waylay serve` and `waylay service`: campaigns at night, and the system's manager of services.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;
use waylay_driver::campaign::{self, Selection};
use waylay_driver::config::{LoadError, Overrides};
use waylay_driver::report::Live;
use waylay_service::config::{self, Config, Mix};
use waylay_service::manager::{self, ManagerError, Plan};
use waylay_service::runner::{Ended, Runner, Watcher};
use waylay_service::serve::ServeError;

use crate::installation::installation;
use crate::nights;
use crate::output::{CLEAN, FAILURES, Failed, print_json};
use crate::run::{colour, examiner, load, options};

#[derive(Debug, Clone, Args)]
pub(crate) struct ServeOptions {
    /// Configuration of the service, or a mix that is run again and again.
    pub(crate) config: PathBuf,
    /// Folder for the results, in place of the configuration's.
    #[arg(long)]
    pub(crate) out: Option<PathBuf>,
    /// Address of the dashboard, in place of the configuration's; port 0 takes any that is free.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<std::net::SocketAddr>,
    /// Check the configuration and everything that it names, and end.
    #[arg(long)]
    pub(crate) check: bool,
    /// Run under the Windows service manager as this service.
    #[arg(long, value_name = "NAME", hide = true)]
    pub(crate) service: Option<String>,
    /// Folder that relative paths begin in.
    #[arg(long, hide = true)]
    pub(crate) folder: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServiceCommand {
    /// Have `waylay serve` started with this machine, and now.
    Install {
        /// Configuration of the service.
        config: PathBuf,
        #[command(flatten)]
        which: Which,
    },
    /// End it and remove it.
    Uninstall {
        #[command(flatten)]
        which: Which,
    },
    /// Say whether it is installed and runs; the exit code is 1 when it does not run.
    Status {
        #[command(flatten)]
        which: Which,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Which {
    /// Name of the service.
    #[arg(long, default_value = "waylay")]
    name: String,
    /// For this user alone, without the rights of an administrator (systemd).
    #[arg(long)]
    user: bool,
}

/// Reads a configuration of the service.
pub(crate) fn load_service(path: &Path) -> Result<Config, Failed> {
    config::load(path).map_err(|error| match error {
        LoadError::Invalid(problems) => Failed::Config(problems.render(colour())),
        other => Failed::Usage(other.to_string()),
    })
}

fn read(options: &ServeOptions) -> Result<Config, Failed> {
    if let Some(folder) = &options.folder {
        std::env::set_current_dir(folder)
            .map_err(|error| Failed::Usage(format!("{}: {error}", folder.display())))?;
    }
    let mut config = load_service(&options.config)?;
    if let Some(out) = &options.out {
        config.out = out.clone();
    }
    if let Some(listen) = options.listen {
        let dashboard = config.dashboard.get_or_insert_with(|| config::Dashboard {
            listen,
            token_file: None,
            hosts: Vec::new(),
            url: None,
        });
        dashboard.listen = listen;
        if !listen.ip().is_loopback() && dashboard.token_file.is_none() {
            let words = "a dashboard that others can reach needs a token: name a `token-file` under [dashboard] of the \
                         service's configuration (`waylay config default --service` prints one)";
            return Err(Failed::Usage(words.to_owned()));
        }
    }
    // What the service writes must not depend on where a campaign happens to look from.
    config.out = std::path::absolute(&config.out)
        .map_err(|error| Failed::Usage(format!("{}: {error}", config.out.display())))?;
    Ok(config)
}

pub(crate) fn serve(options: &ServeOptions, json: bool) -> Result<u8, Failed> {
    let Some(name) = options.service.clone() else { return serve_here(options, json) };
    let options = options.clone();
    let work = move || match serve_here(&options, json) {
        Ok(code) => u32::from(code),
        Err(failed) => u32::from(u8::from(&failed)),
    };
    manager::run(&name, Box::new(work)).map(|()| CLEAN).map_err(refused)
}

fn serve_here(options: &ServeOptions, json: bool) -> Result<u8, Failed> {
    let config = read(options)?;
    let mut runner = Campaigns;
    if options.check {
        let wrong: Vec<String> = config
            .mixes
            .iter()
            .filter_map(|mix| runner.check(mix).err().map(|problem| format!("mix {}: {problem}", mix.name)))
            .collect();
        if !wrong.is_empty() {
            return Err(Failed::Config(wrong.join("\n")));
        }
        eprintln!("waylay: {} is right", options.config.display());
        return Ok(CLEAN);
    }
    let mut ready = |address: Option<std::net::SocketAddr>| {
        if json {
            let address = address.map(|address| format!("http://{address}/"));
            println!("{}", json!({ "dashboard": address }));
        }
    };
    waylay_service::serve::serve(&config, &mut runner, &mut ready).map_err(|error| match error {
        ServeError::Mix { .. } => Failed::Config(error.to_string()),
        ServeError::Web(_) | ServeError::Fleet(_) => Failed::Usage(error.to_string()),
        ServeError::History(_) | ServeError::Log { .. } => Failed::Own(error.to_string()),
    })?;
    Ok(CLEAN)
}

/// Campaigns as `waylay run` runs them.
struct Campaigns;

impl Campaigns {
    fn prepare(
        mix: &Mix,
        out: Option<&Path>,
        most: Option<Duration>,
    ) -> Result<(campaign::Mix, campaign::Options), String> {
        let words = |failed: Failed| match failed {
            Failed::Usage(text) | Failed::Own(text) | Failed::Config(text) => text,
        };
        let overrides = Overrides {
            duration: most,
            out: out.map(Path::to_owned),
            keep_hung: Some(false),
            profile: mix.profile.clone(),
            ..Overrides::default()
        };
        let loaded = load(Some(&mix.config), &overrides).map_err(words)?;
        let installation = installation().map_err(words)?;
        let all = Selection { scenario: None, test: None, plugin: None };
        let scenarios =
            campaign::mix(&loaded, &installation, &all).map_err(|diagnostics| diagnostics.render(false))?;
        Ok((scenarios, options(&loaded)))
    }
}

impl Runner for Campaigns {
    fn check(&mut self, mix: &Mix) -> Result<(), String> {
        Campaigns::prepare(mix, None, mix.duration).map(drop)
    }

    fn check_fleet(&mut self, fleet: &config::Fleet) -> Result<(), String> {
        nights::check(fleet)
    }

    fn run_fleet(
        &mut self,
        fleet: &config::Fleet,
        mix: &Mix,
        folders: (&Path, &Path),
        watcher: &mut dyn Watcher,
    ) -> Result<Ended, String> {
        nights::run(fleet, mix, folders, watcher)
    }

    fn run(
        &mut self,
        mix: &Mix,
        out: &Path,
        most: Option<Duration>,
        live: &mut dyn Live,
    ) -> Result<(), String> {
        let (scenarios, options) = Campaigns::prepare(mix, Some(out), most)?;
        if scenarios.scenarios.is_empty() {
            return Err(format!("nothing can be run: {}", scenarios.problems.join("; ")));
        }
        let installation = installation().map_err(|_| "this command cannot be found".to_owned())?;
        campaign::run(
            scenarios.scenarios,
            scenarios.problems,
            &installation,
            &options,
            live,
            examiner(&installation),
        )
        .map(drop)
        .map_err(|error| error.to_string())
    }
}

fn refused(error: ManagerError) -> Failed {
    Failed::Usage(error.to_string())
}

pub(crate) fn service(command: &ServiceCommand, json: bool) -> Result<u8, Failed> {
    let (words, running) = match command {
        ServiceCommand::Install { config, which } => {
            let options = ServeOptions {
                config: config.clone(),
                out: None,
                listen: None,
                check: true,
                service: None,
                folder: None,
            };
            // What cannot be served is not installed.
            serve_here(&options, false)?;
            let absolute = |path: &Path| {
                std::path::absolute(path)
                    .map_err(|error| Failed::Usage(format!("{}: {error}", path.display())))
            };
            let plan = Plan {
                name: which.name.clone(),
                executable: std::env::current_exe().map_err(|error| Failed::Own(error.to_string()))?,
                config: absolute(config)?,
                folder: absolute(Path::new("."))?,
                user: which.user,
            };
            (manager::install(&plan).map_err(refused)?, true)
        }
        ServiceCommand::Uninstall { which } => {
            (manager::uninstall(&which.name, which.user).map_err(refused)?, true)
        }
        ServiceCommand::Status { which } => manager::status(&which.name, which.user).map_err(refused)?,
    };
    eprintln!("waylay: {words}");
    if json {
        print_json(&json!({ "service": words, "running": running }))?;
    }
    Ok(if running { CLEAN } else { FAILURES })
}
