//! A job array of Slurm, and a job behind it that merges.
//!
//! The array has `%M` for how many run at once. Its jobs may be requeued, by an administrator, by preemption or because a node
//! died, and go on where they were (`--resume`). Slurm sends SIGTERM to all processes of a job and kills them some seconds later:
//! a shard that gets it writes what it has and ends. The merge waits for the end of all shards, however they end (`afterany`): with
//! `afterok` it would wait for ever behind one that found a failure.

use std::io::Write;
use std::process::{Command, Stdio};

use waylay_report::shell;

use super::Task;

/// What may be asked of the jobs beside what always is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    /// Longest time of a shard, as sbatch takes it.
    pub time: Option<String>,
    /// The partition.
    pub partition: Option<String>,
    /// Further words for sbatch.
    pub options: Vec<String>,
}

/// The script of the shards.
pub fn shards_script(task: &Task, wishes: &Wishes) -> String {
    let limit = task.at_most.map_or_else(String::new, |most| format!("%{most}"));
    let out = format!("{}/\"$SLURM_ARRAY_TASK_ID\"", shell::word(task.shards_folder()));
    let mark = "WAYLAY_OUT";
    let words = task.shard_arguments(mark, None);
    let words: Vec<String> =
        words.iter().map(|word| if word == mark { out.clone() } else { shell::word(word) }).collect();
    let mut lines = vec!["#!/bin/sh".to_owned()];
    lines.push(format!("#SBATCH --array=1-{}{limit}", task.shards));
    lines.push(format!(
        "#SBATCH --output={}",
        quoted(&task.folder.join("log").join("%a.log").display().to_string())
    ));
    lines.extend(header("waylay", wishes));
    lines.push("#SBATCH --requeue".to_owned());
    lines.push(format!("WAYLAY_NIGHT={} ; export WAYLAY_NIGHT", shell::word(&task.night)));
    // The signal of a time limit reaches only the shell, unless the command takes its place.
    lines.push(format!("exec {} {}", shell::word(&task.waylay), words.join(" ")));
    lines.join("\n") + "\n"
}

/// The script of the merge.
pub fn merge_script(task: &Task, wishes: &Wishes) -> String {
    let mut lines = vec!["#!/bin/sh".to_owned()];
    lines.push(format!(
        "#SBATCH --output={}",
        quoted(&task.folder.join("log").join("merge.log").display().to_string())
    ));
    lines.extend(header("waylay-merge", &Wishes { time: None, ..wishes.clone() }));
    lines.push("#SBATCH --requeue".to_owned());
    lines.push(format!("exec {} fleet collect {}", shell::word(&task.waylay), shell::word(&task.folder)));
    lines.join("\n") + "\n"
}

fn header(name: &str, wishes: &Wishes) -> Vec<String> {
    let mut lines = vec![format!("#SBATCH --job-name={name}"), "#SBATCH --open-mode=append".to_owned()];
    lines.extend(wishes.time.iter().map(|time| format!("#SBATCH --time={time}")));
    lines.extend(wishes.partition.iter().map(|partition| format!("#SBATCH --partition={partition}")));
    lines.extend(wishes.options.iter().map(|option| format!("#SBATCH {option}")));
    lines
}

/// A value of a directive, which is split at blanks.
fn quoted(value: &str) -> String {
    if value.contains(' ') { format!("\"{value}\"") } else { value.to_owned() }
}

/// Hands a night over: the numbers of both jobs.
///
/// # Errors
/// When Slurm is not there, or refuses.
pub fn submit(task: &Task, wishes: &Wishes) -> Result<Vec<String>, String> {
    let array = sbatch(&[], &shards_script(task, wishes))?;
    let behind = format!("--dependency=afterany:{array}");
    match sbatch(&[&behind], &merge_script(task, wishes)) {
        Ok(merge) => Ok(vec![array, merge]),
        Err(error) => {
            // Half a night is none.
            let _ = cancel(&[array]);
            Err(error)
        }
    }
}

fn sbatch(options: &[&str], script: &str) -> Result<String, String> {
    let mut child = command("sbatch")
        .arg("--parsable")
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(missing)?;
    let written = child.stdin.take().map_or(Ok(()), |mut input| input.write_all(script.as_bytes()));
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    if !output.status.success() || written.is_err() {
        return Err(format!("Slurm refuses the night: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    // A cluster's name may stand behind it.
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.trim().split(';').next().unwrap_or_default().to_owned())
}

fn command(name: &str) -> Command {
    let mut command = Command::new(name);
    // What a job of ours was told must not be told to the next.
    for variable in ["SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT"] {
        command.env_remove(variable);
    }
    command
}

fn missing(error: std::io::Error) -> String {
    format!("Slurm is not installed here, or its commands are not in PATH: sbatch: {error}")
}

/// The states of jobs as Slurm tells them, a word for each task that is not over.
///
/// # Errors
/// When Slurm is not there.
pub fn states(jobs: &[String]) -> Result<Vec<String>, String> {
    let output = command("squeue")
        .args(["--noheader", "--array", "--format=%T", "--jobs", &jobs.join(",")])
        .output()
        .map_err(missing)?;
    // Jobs that are long over are not known any more.
    Ok(String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect())
}

/// Ends jobs in order.
///
/// # Errors
/// When Slurm is not there, or refuses.
pub fn cancel(jobs: &[String]) -> Result<(), String> {
    let output = command("scancel").args(jobs).output().map_err(missing)?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("Slurm does not cancel: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Engine;
    use super::super::tests::task;
    use super::*;

    #[test]
    fn the_scripts_say_what_slurm_needs() {
        let wishes =
            Wishes { time: Some("08:00:00".into()), partition: Some("low".into()), options: Vec::new() };
        let script = shards_script(&task(Engine::Slurm), &wishes);
        let expected = "#!/bin/sh\n\
            #SBATCH --array=1-16%4\n\
            #SBATCH --output=\"/nights/one two/log/%a.log\"\n\
            #SBATCH --job-name=waylay\n\
            #SBATCH --open-mode=append\n\
            #SBATCH --time=08:00:00\n\
            #SBATCH --partition=low\n\
            #SBATCH --requeue\n\
            WAYLAY_NIGHT=n ; export WAYLAY_NIGHT\n\
            exec /opt/waylay run --resume --out '/nights/one two/shards'/\"$SLURM_ARRAY_TASK_ID\" mix.toml --seed 7\n";
        assert_eq!(script, expected);
        let merge = merge_script(&task(Engine::Slurm), &wishes);
        assert!(merge.ends_with("exec /opt/waylay fleet collect '/nights/one two'\n"), "{merge}");
        assert!(!merge.contains("--array") && !merge.contains("--time"), "{merge}");
    }
}
