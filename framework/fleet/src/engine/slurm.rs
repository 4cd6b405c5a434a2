//! A job array of Slurm, and a job behind it that merges.
//!
//! The array has `%M` for how many run at once. Its jobs may be requeued, by an administrator, by preemption or because a node
//! died, and go on where they were (`--resume`). Slurm sends SIGTERM to all processes of a job and kills them some seconds later:
//! a shard that gets it writes what it has and ends. The merge waits for the end of all shards, however they end (`afterany`): with
//! `afterok` it would wait for ever behind one that found a failure.

use std::io::Write;
use std::process::{Command, Stdio};

use waylay_report::shell;

use super::{Task, Word, Words};

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
    let out = format!("{}/\"$SLURM_ARRAY_TASK_ID\"", shell::word(task.shards_out()));
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

/// Whether Slurm's commands are here.
///
/// # Errors
/// When they are not.
pub fn check() -> Result<(), String> {
    command("sbatch").arg("--version").stdout(Stdio::null()).status().map(drop).map_err(missing)
}

/// Hands a night over: the numbers of both jobs.
///
/// # Errors
/// When Slurm is not there, or refuses.
pub fn submit(task: &Task, wishes: &Wishes) -> Result<Vec<String>, String> {
    let array = submit_shards(task, wishes)?;
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

/// Hands the shards of a night over, for somebody who merges them: the number of the job.
///
/// # Errors
/// When Slurm is not there, or refuses.
pub fn submit_shards(task: &Task, wishes: &Wishes) -> Result<String, String> {
    sbatch(&[], &shards_script(task, wishes))
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
    // Jobs inherit it.
    waylay_driver::give_back_mask(&mut command);
    // What a job of ours was told must not be told to the next.
    for variable in ["SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT"] {
        command.env_remove(variable);
    }
    command
}

fn missing(error: std::io::Error) -> String {
    format!("Slurm is not installed here, or its commands are not in PATH: sbatch: {error}")
}

/// What Slurm says of a night.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// Of its shards.
    pub shards: Words,
    /// Whether the job that merges is not over either.
    pub merge: bool,
}

impl Queue {
    /// Whether nothing of the night is left.
    pub fn is_empty(&self) -> bool {
        self.shards.is_empty() && !self.merge
    }
}

/// How the jobs of a night stand.
///
/// # Errors
/// When Slurm is not there, or does not answer: that says nothing about the night.
pub fn queue(jobs: &[String]) -> Result<Queue, String> {
    let output = command("squeue")
        .args(["--noheader", "--array", "--format=%F %K %T", "--jobs", &jobs.join(",")])
        .output()
        .map_err(missing)?;
    let said = String::from_utf8_lossy(&output.stderr);
    // Jobs that are long over are not known any more.
    if !output.status.success() && !said.contains("Invalid job id") {
        return Err(format!("Slurm does not say how the night stands: {}", said.trim()));
    }
    Ok(read_queue(&String::from_utf8_lossy(&output.stdout), jobs))
}

/// Reads lines of job, task and state.
fn read_queue(text: &str, jobs: &[String]) -> Queue {
    let mut queue = Queue::default();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let (Some(job), Some(task), Some(state)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        if jobs.first().is_none_or(|array| array != job) {
            queue.merge = true;
            continue;
        }
        let Ok(number) = task.parse() else { continue };
        let word = match state {
            "RUNNING" | "COMPLETING" | "STAGE_OUT" | "SIGNALING" | "STOPPED" | "SUSPENDED" => Word::Running,
            // Also one that was requeued.
            _ => Word::Waiting,
        };
        queue.shards.insert(number, word);
    }
    queue
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
    fn a_queue_is_read_shard_by_shard() {
        let jobs = ["7".to_owned(), "8".to_owned()];
        let queue = read_queue("7 1 RUNNING\n7 2 PENDING\n7 12 COMPLETING\n8 N/A PENDING\n", &jobs);
        let expected = Words::from([(1, Word::Running), (2, Word::Waiting), (12, Word::Running)]);
        assert_eq!(queue, Queue { shards: expected, merge: true });
        assert!(read_queue("", &jobs).is_empty());
    }

    #[test]
    fn results_go_to_a_bucket_when_there_is_one() {
        let mut task = task(Engine::Slurm);
        task.bucket = Some("s3://nights/one/".to_owned());
        let script = shards_script(&task, &Wishes::default());
        assert!(
            script.contains("--out s3://nights/one/shards/\"$SLURM_ARRAY_TASK_ID\" mix.toml"),
            "{script}"
        );
    }

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
