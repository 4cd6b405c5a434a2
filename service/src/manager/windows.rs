//! The Windows service manager: `waylay serve` runs under it with `--service NAME`.

use std::ffi::{OsStr, OsString};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use windows_service::service::{
    ServiceAccess, ServiceAction, ServiceActionType, ServiceControl, ServiceControlAccept,
    ServiceErrorControl, ServiceExitCode, ServiceFailureActions, ServiceFailureResetPeriod, ServiceInfo,
    ServiceStartType, ServiceState, ServiceStatus, ServiceType,
};
use windows_service::service_control_handler::{self, ServiceControlHandlerResult};
use windows_service::service_manager::{ServiceManager, ServiceManagerAccess};
use windows_service::{define_windows_service, service_dispatcher};

use super::{ManagerError, Plan, Work, check_name};
use crate::board::Board;

/// The service manager has no watchdog; it starts the service again when it dies.
#[derive(Debug)]
pub struct Watchdog;

impl Watchdog {
    /// Nothing to watch with.
    pub fn start(_board: Arc<Board>) -> Watchdog {
        Watchdog
    }

    /// The service is up: said when it was started.
    pub fn ready(&self) {}

    /// The service ends: said when it was asked to.
    pub fn stopping(&self) {}
}

fn refused(what: &str, error: &windows_service::Error) -> ManagerError {
    let why = match error {
        windows_service::Error::Winapi(error) => error.to_string(),
        other => other.to_string(),
    };
    ManagerError::Refused(format!("{what}: {why} (services are changed from an administrator's console)"))
}

fn manager(access: ServiceManagerAccess) -> Result<ServiceManager, ManagerError> {
    ServiceManager::local_computer(None::<&str>, access)
        .map_err(|error| refused("cannot reach the service manager", &error))
}

/// Registers the service, and has it started now and with the machine. What was done, in words.
pub fn install(plan: &Plan) -> Result<String, ManagerError> {
    check_name(&plan.name)?;
    let manager = manager(ServiceManagerAccess::CONNECT | ServiceManagerAccess::CREATE_SERVICE)?;
    let info = ServiceInfo {
        name: OsString::from(&plan.name),
        display_name: OsString::from(format!("Waylay ({})", plan.name)),
        service_type: ServiceType::OWN_PROCESS,
        start_type: ServiceStartType::AutoStart,
        error_control: ServiceErrorControl::Normal,
        executable_path: plan.executable.clone(),
        launch_arguments: vec![
            "serve".into(),
            plan.config.clone().into_os_string(),
            "--service".into(),
            OsString::from(&plan.name),
            "--folder".into(),
            plan.folder.clone().into_os_string(),
        ],
        dependencies: Vec::new(),
        account_name: None,
        account_password: None,
    };
    let access = ServiceAccess::CHANGE_CONFIG | ServiceAccess::START;
    let service = manager
        .create_service(&info, access)
        .map_err(|error| refused("cannot register the service", &error))?;
    // Started again ten seconds after it died, however often.
    let again = ServiceAction { action_type: ServiceActionType::Restart, delay: Duration::from_secs(10) };
    let actions = ServiceFailureActions {
        reset_period: ServiceFailureResetPeriod::After(Duration::from_secs(86_400)),
        reboot_msg: None,
        command: None,
        actions: Some(vec![again.clone(), again.clone(), again]),
    };
    let restarts = service.update_failure_actions(actions);
    let started = service.start::<&OsStr>(&[]);
    match (restarts, started) {
        (Ok(()), Ok(())) => Ok(format!("service {} is installed and started", plan.name)),
        (Err(error), _) => Ok(format!(
            "service {} is installed; {}",
            plan.name,
            refused("it is not restarted when it dies", &error)
        )),
        (_, Err(error)) => {
            Ok(format!("service {} is installed; {}", plan.name, refused("it did not start", &error)))
        }
    }
}

/// Ends and removes it. What was done, in words.
pub fn uninstall(name: &str, _user: bool) -> Result<String, ManagerError> {
    check_name(name)?;
    let manager = manager(ServiceManagerAccess::CONNECT)?;
    let access = ServiceAccess::STOP | ServiceAccess::DELETE;
    let service =
        manager.open_service(name, access).map_err(|error| refused("there is no such service", &error))?;
    // One that does not run cannot be stopped, and is removed all the same.
    let _ = service.stop();
    service.delete().map_err(|error| refused("cannot remove the service", &error))?;
    Ok(format!("service {name} is ended and removed"))
}

/// How it is, in words; and whether it runs.
pub fn status(name: &str, _user: bool) -> Result<(String, bool), ManagerError> {
    check_name(name)?;
    let manager = manager(ServiceManagerAccess::CONNECT)?;
    let Ok(service) = manager.open_service(name, ServiceAccess::QUERY_STATUS) else {
        return Ok((format!("not installed: there is no service {name}"), false));
    };
    let status = service.query_status().map_err(|error| refused("cannot ask the service", &error))?;
    let running = status.current_state == ServiceState::Running;
    Ok((format!("service {name}: {:?}", status.current_state), running))
}

static WORK: OnceLock<Mutex<Option<(String, Work)>>> = OnceLock::new();

define_windows_service!(ffi_main, service_main);

/// Runs `work` under the service manager, which started this process. Its result is the service's exit code.
pub fn run(name: &str, work: Work) -> Result<(), ManagerError> {
    check_name(name)?;
    let _ = WORK.set(Mutex::new(Some((name.to_owned(), work))));
    service_dispatcher::start(name, ffi_main)
        .map_err(|error| refused("this process was not started by the service manager", &error))
}

fn service_main(_arguments: Vec<OsString>) {
    let work = WORK.get().and_then(|work| work.lock().unwrap_or_else(PoisonError::into_inner).take());
    let Some((name, work)) = work else { return };
    let (asked, ends) = mpsc::channel();
    let handler = move |control| match control {
        ServiceControl::Interrogate => ServiceControlHandlerResult::NoError,
        ServiceControl::Stop | ServiceControl::Shutdown => {
            waylay_driver::interrupt::request();
            let _ = asked.send(());
            ServiceControlHandlerResult::NoError
        }
        _ => ServiceControlHandlerResult::NotImplemented,
    };
    let Ok(handle) = service_control_handler::register(&name, handler) else { return };
    let status = |state, accepted, code, wait_hint| ServiceStatus {
        service_type: ServiceType::OWN_PROCESS,
        current_state: state,
        controls_accepted: accepted,
        exit_code: ServiceExitCode::Win32(code),
        checkpoint: 0,
        wait_hint,
        process_id: None,
    };
    let accepted = ServiceControlAccept::STOP | ServiceControlAccept::SHUTDOWN;
    let _ = handle.set_service_status(status(ServiceState::Running, accepted, 0, Duration::ZERO));
    let pending = std::thread::spawn(move || {
        if ends.recv().is_ok() {
            // A campaign ends in order: its tests are cancelled and what they found is written.
            let wait = Duration::from_secs(120);
            let none = ServiceControlAccept::empty();
            let _ = handle.set_service_status(status(ServiceState::StopPending, none, 0, wait));
        }
    });
    let code = work();
    drop(pending);
    let none = ServiceControlAccept::empty();
    let _ = handle.set_service_status(ServiceStatus {
        service_type: ServiceType::OWN_PROCESS,
        current_state: ServiceState::Stopped,
        controls_accepted: none,
        exit_code: ServiceExitCode::Win32(code),
        checkpoint: 0,
        wait_hint: Duration::ZERO,
        process_id: None,
    });
}
