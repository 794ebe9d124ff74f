//! The child that becomes the container's command.

use crate::{
    arguments::Arguments,
    fail, stage,
    system::{self, Error},
};

/// Becomes the container's command.
pub(crate) fn become_command(arguments: &Arguments) -> ! {
    // The command is killed when its init ends.
    system::die_with_parent();
    if arguments.session() {
        system::begin_session();
    } else {
        system::begin_group();
    }
    if arguments.terminal()
        && let Err(error) = system::take_terminal()
    {
        fail(stage::TERMINAL, error);
    }
    if let Some(kept) = arguments.capabilities()
        && let Err(error) = system::keep_capabilities(kept)
    {
        fail(stage::CAPABILITIES, error);
    }
    if let Err(error) = become_user(arguments) {
        fail(stage::USER, error);
    }
    if arguments.makes_folder() {
        // An error is reported when the folder cannot be entered.
        system::make_folders(arguments.working_folder);
    }
    if let Err(error) = system::enter_folder(arguments.working_folder) {
        fail(stage::WORKING_FOLDER, error);
    }
    system::unblock_signals();
    system::close_by_execution(system::ERRORS);
    let mut worst = Error::NOT_FOUND;
    for index in 0.. {
        let file = arguments.file(index);
        if file.is_null() {
            break;
        }
        match system::execute(file, arguments.arguments, arguments.environment) {
            Error::NOT_FOUND | Error::NO_FOLDER => {}
            // Another folder may have a file that can be executed.
            Error::NO_ACCESS => worst = Error::NO_ACCESS,
            error => fail(stage::EXECUTE, error),
        }
    }
    fail(stage::EXECUTE, worst)
}

fn become_user(arguments: &Arguments) -> Result<(), Error> {
    if let Some(group) = arguments.group() {
        system::become_group(group)?;
    }
    if let Some(user) = arguments.user() {
        system::become_user(user)?;
    }
    // A change of the user resets this setting.
    system::die_with_parent();
    Ok(())
}
