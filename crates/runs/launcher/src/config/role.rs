//! The roles of a run.

use std::collections::BTreeMap;

use longshore_model::name;

use super::{
    Command, ConfigError, DEFAULT_IMAGE, Flags, Located, PodSpec, RoleSettings, RoleSpec, Settings,
    Text, command, data,
    env::Variables,
    layers::Layers,
    outputs, resources,
    values::{check_image, invalid, invalid_at},
};

/// The name of the only role if the configuration defines none.
const ONLY_ROLE: &str = "main";
/// The maximum length of a role name, so that it fits a host name with the run's name and an index.
const ROLE_LENGTH: usize = 16;
/// The maximum number of tasks of a role, so that their indices fit a host name.
const MOST_TASKS: u32 = 10_000;

/// The roles with tasks, the leader first.
pub(super) fn resolve(settings: &Settings, flags: &Flags) -> Result<Vec<RoleSpec>, ConfigError> {
    let counts = counts(settings, flags)?;
    let plain = RoleSettings::default();
    let mut roles = Vec::new();
    for (name, count) in &counts {
        check(name, count)?;
        if **count > 0 {
            let own = settings.roles.get(name).unwrap_or(&plain);
            roles.push(role(name, **count, own, settings, flags)?);
        }
    }
    if let (true, Some((name, count))) = (roles.is_empty(), counts.first_key_value()) {
        let names = one_or_joined(name, counts.keys());
        let rule = "at least one role must have a task";
        return Err(invalid_at(format!("count of role {names}"), count, rule));
    }
    let mut with_tasks = counts.iter().filter(|(_, count)| ***count > 0);
    if let (true, Some((name, _))) = (roles.iter().all(|role| role.service), with_tasks.next()) {
        let names = one_or_joined(
            name,
            [name].into_iter().chain(with_tasks.map(|(name, _)| name)),
        );
        let rule = "service roles end after the other roles: add a role that is not a service";
        return Err(invalid_at("service", &names, rule));
    }
    // The leader comes first, so that it has rank 0.
    roles.sort_by_key(|role| !matches!(role.name.as_str(), "chief" | "master"));
    Ok(roles)
}

/// The names of roles as one text, at the position of the first name.
fn one_or_joined<'a>(first: &Text, names: impl Iterator<Item = &'a Text>) -> Text {
    let names: Vec<&str> = names.map(|name| name.as_str()).collect();
    first.replaced(names.join(", "))
}

/// The roles with their numbers of tasks.
fn counts(settings: &Settings, flags: &Flags) -> Result<BTreeMap<Text, Located<u32>>, ConfigError> {
    let roles = settings.roles.iter();
    let mut counts: BTreeMap<Text, Located<u32>> = roles
        .map(|(name, role)| (name.clone(), role.count.unwrap_or_else(|| 1.into())))
        .collect();
    for flag in &flags.roles {
        let rule = "write NAME=COUNT, for example worker=4";
        let (role, count) = flag
            .split_once('=')
            .ok_or_else(|| invalid("--role", flag, rule))?;
        let count: u32 = count.parse().map_err(|_| invalid("--role", flag, rule))?;
        if !settings.roles.is_empty() && !settings.roles.contains_key(role) {
            let known: Vec<&str> = settings.roles.keys().map(|name| name.as_str()).collect();
            return Err(ConfigError::UnknownRole {
                role: role.to_owned(),
                flag: flag.clone(),
                known: known.join(", "),
            });
        }
        counts.insert(role.into(), count.into());
    }
    if counts.is_empty() {
        counts.insert(ONLY_ROLE.into(), 1.into());
    }
    Ok(counts)
}

fn check(name: &Text, count: &Located<u32>) -> Result<(), ConfigError> {
    name::dns_label("role", name).map_err(|error| invalid_at("role", name, error.rule()))?;
    if name.len() > ROLE_LENGTH {
        let rule = format!("use at most {ROLE_LENGTH} letters");
        return Err(invalid_at("role", name, rule));
    }
    if **count > MOST_TASKS {
        let rule = format!("use at most {MOST_TASKS} tasks");
        return Err(invalid_at(format!("count of role {name}"), count, rule));
    }
    Ok(())
}

fn role(
    name: &Text,
    count: u32,
    own: &RoleSettings,
    settings: &Settings,
    flags: &Flags,
) -> Result<RoleSpec, ConfigError> {
    let service = own.service.unwrap_or(**name == "ps");
    let options = Layers([&settings.task, &own.task, &flags.task]);
    let command = command(name, service, own, settings, flags)?;
    let variables = Variables::merge(options, flags)?;
    let resources = resources::merge(options, flags)?;
    let image = options.value(|options| &options.image);
    check_image("image", image)?;
    let source = settings.source.as_ref();
    let folder = source.and_then(|source| source.path.parent());
    let sources = variables.sources_to_kubernetes()?;
    Ok(RoleSpec {
        name: name.to_string(),
        count,
        image: image
            .map_or(DEFAULT_IMAGE, |image| image.as_str())
            .to_owned(),
        command,
        env: variables.into_values(),
        resources,
        outputs: outputs::resolve(options)?,
        data: data::resolve(&settings.task, &own.task, flags, folder)?,
        pods: PodSpec::resolve(settings, flags, &own.task, sources, folder)?,
        service,
    })
}

/// The command of a role. A command on the command line replaces it, except the own command of a
/// service role.
fn command(
    name: &Text,
    service: bool,
    own: &RoleSettings,
    settings: &Settings,
    flags: &Flags,
) -> Result<Vec<String>, ConfigError> {
    let given: Vec<Text> = flags
        .command
        .iter()
        .map(|word| word.as_str().into())
        .collect();
    let given = Some(given).filter(|command| !command.is_empty());
    let given = given.or_else(|| flags.task.command.as_ref().map(Command::words));
    let own_command = own.task.command.as_ref().map(Command::words);
    let general = settings.task.command.as_ref().map(Command::words);
    let command = if service {
        own_command.or(given)
    } else {
        given.or(own_command)
    };
    let command = command.or(general).filter(|words| !words.is_empty());
    let is_named = !(settings.roles.is_empty() && flags.roles.is_empty());
    let command = command.ok_or_else(|| ConfigError::NoCommand {
        role: is_named.then(|| name.to_string()),
    })?;
    command::check(&command)?;
    Ok(command.into_iter().map(Text::into_inner).collect())
}
