//! Applies the modes of the client's terminal (RFC 4254, section 8).

use rustix::termios::{InputModes, LocalModes, OutputModes, SpecialCodeIndex, Termios};

/// The value of a special character that is disabled.
const DISABLED: u32 = 255;

/// A mode of a terminal.
enum Mode {
    Character(SpecialCodeIndex),
    Input(InputModes),
    Local(LocalModes),
    Output(OutputModes),
}

/// Applies modes to the settings of a terminal. Unknown modes and the speed are ignored.
pub(super) fn apply(settings: &mut Termios, modes: &[(u8, u32)]) {
    for &(number, value) in modes {
        let is_on = value != 0;
        match mode(number) {
            Some(Mode::Character(index)) => {
                let character = match value {
                    DISABLED => 0,
                    value => u8::try_from(value).unwrap_or_default(),
                };
                settings.special_codes[index] = character;
            }
            Some(Mode::Input(flag)) => settings.input_modes.set(flag, is_on),
            Some(Mode::Local(flag)) => settings.local_modes.set(flag, is_on),
            Some(Mode::Output(flag)) => settings.output_modes.set(flag, is_on),
            None => {}
        }
    }
}

fn mode(number: u8) -> Option<Mode> {
    use Mode::{Character, Input, Local, Output};
    Some(match number {
        1 => Character(SpecialCodeIndex::VINTR),
        2 => Character(SpecialCodeIndex::VQUIT),
        3 => Character(SpecialCodeIndex::VERASE),
        4 => Character(SpecialCodeIndex::VKILL),
        5 => Character(SpecialCodeIndex::VEOF),
        6 => Character(SpecialCodeIndex::VEOL),
        7 => Character(SpecialCodeIndex::VEOL2),
        8 => Character(SpecialCodeIndex::VSTART),
        9 => Character(SpecialCodeIndex::VSTOP),
        10 => Character(SpecialCodeIndex::VSUSP),
        12 => Character(SpecialCodeIndex::VREPRINT),
        13 => Character(SpecialCodeIndex::VWERASE),
        14 => Character(SpecialCodeIndex::VLNEXT),
        18 => Character(SpecialCodeIndex::VDISCARD),
        30 => Input(InputModes::IGNPAR),
        31 => Input(InputModes::PARMRK),
        32 => Input(InputModes::INPCK),
        33 => Input(InputModes::ISTRIP),
        34 => Input(InputModes::INLCR),
        35 => Input(InputModes::IGNCR),
        36 => Input(InputModes::ICRNL),
        38 => Input(InputModes::IXON),
        39 => Input(InputModes::IXANY),
        40 => Input(InputModes::IXOFF),
        41 => Input(InputModes::IMAXBEL),
        42 => Input(InputModes::IUTF8),
        50 => Local(LocalModes::ISIG),
        51 => Local(LocalModes::ICANON),
        53 => Local(LocalModes::ECHO),
        54 => Local(LocalModes::ECHOE),
        55 => Local(LocalModes::ECHOK),
        56 => Local(LocalModes::ECHONL),
        57 => Local(LocalModes::NOFLSH),
        58 => Local(LocalModes::TOSTOP),
        59 => Local(LocalModes::IEXTEN),
        60 => Local(LocalModes::ECHOCTL),
        61 => Local(LocalModes::ECHOKE),
        70 => Output(OutputModes::OPOST),
        72 => Output(OutputModes::ONLCR),
        73 => Output(OutputModes::OCRNL),
        74 => Output(OutputModes::ONOCR),
        75 => Output(OutputModes::ONLRET),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use rustix::{
        pty::{OpenptFlags, openpt},
        termios::tcgetattr,
    };

    use super::*;

    #[test]
    fn modes_change_characters_and_flags() {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        let mut settings = tcgetattr(&terminal).unwrap();
        assert!(settings.local_modes.contains(LocalModes::ECHO));
        let modes = [
            (3, 8),
            (1, 255),
            (53, 0),
            (70, 1),
            (36, 0),
            (128, 38400),
            (99, 1),
        ];
        apply(&mut settings, &modes);
        assert_eq!(settings.special_codes[SpecialCodeIndex::VERASE], 8);
        assert_eq!(settings.special_codes[SpecialCodeIndex::VINTR], 0);
        assert!(!settings.local_modes.contains(LocalModes::ECHO));
        assert!(settings.local_modes.contains(LocalModes::ICANON));
        assert!(settings.output_modes.contains(OutputModes::OPOST));
        assert!(!settings.input_modes.contains(InputModes::ICRNL));
    }
}
