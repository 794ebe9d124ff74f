//! Causes that prevent a command from starting, independent of the system's error codes. The
//! bootstrap detects and reports the cause, and explanations add the remedy.

/// The cause that prevents a command from starting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartProblem {
    /// The command and its arguments are one word.
    OneWord,
    /// The command is the name of a file in the folder of the code, without its path.
    NotOnPath,
    /// The command is a text file whose first line names no interpreter.
    NoInterpreter,
    /// The first line ends with a carriage return.
    WindowsLines,
    /// The interpreter of a script does not exist.
    MissingInterpreter,
    /// The dynamic loader of a program does not exist.
    MissingLoader,
    /// The file is empty.
    Empty,
    /// The program is built for another architecture.
    WrongArchitecture,
    /// The file has no permission to be executed.
    NotExecutable,
    /// The command is a folder.
    Folder,
    /// A variable is too large.
    LargeVariable,
    /// An argument is too large.
    LargeArgument,
    /// The arguments and the variables are too large together.
    LargeTogether,
    /// The system cannot create another process.
    NoProcess,
}

impl StartProblem {
    /// All problems. A phrase that contains another one is first.
    pub const ALL: [Self; 14] = [
        Self::OneWord,
        Self::NotOnPath,
        Self::NoInterpreter,
        Self::WindowsLines,
        Self::MissingInterpreter,
        Self::MissingLoader,
        Self::Empty,
        Self::WrongArchitecture,
        Self::NotExecutable,
        Self::Folder,
        Self::LargeVariable,
        Self::LargeArgument,
        Self::LargeTogether,
        Self::NoProcess,
    ];

    /// The phrase in the message of the bootstrap.
    #[must_use]
    pub fn phrase(self) -> &'static str {
        match self {
            Self::OneWord => "no program has this name, which contains spaces",
            Self::NotOnPath => "a file of this name is in the folder of the code, but not on PATH",
            Self::NoInterpreter => "its first line does not name an interpreter",
            Self::WindowsLines => "its first line ends with a carriage return",
            Self::MissingInterpreter => "the interpreter in its first line does not exist",
            Self::MissingLoader => "its dynamic loader does not exist",
            Self::Empty => "the file is empty",
            Self::WrongArchitecture => "it is built for another architecture",
            Self::NotExecutable => "the file is not executable",
            Self::Folder => "it is a folder",
            Self::LargeVariable => "a variable is too large",
            Self::LargeArgument => "an argument is too large",
            Self::LargeTogether => "its arguments and variables are too large",
            Self::NoProcess => "the system cannot create another process",
        }
    }

    /// The recommended action.
    #[must_use]
    pub fn remedy(self) -> &'static str {
        match self {
            Self::OneWord => {
                "remove the quotes around the command, or run it in a shell: `sh -c 'COMMAND'`"
            }
            Self::NotOnPath => {
                "write its path, such as ./NAME, or run it with its interpreter: `python3 NAME`"
            }
            Self::NoInterpreter => {
                "begin the file with a line such as `#!/bin/sh`, or run it with its interpreter: `sh FILE`"
            }
            Self::WindowsLines => {
                "save the file with Unix line endings: `sed -i 's/\\r$//' FILE`, or `* text eol=lf` in .gitattributes"
            }
            Self::MissingInterpreter => {
                "name an interpreter that the image contains, such as `#!/usr/bin/env python3`, or run the file with one"
            }
            Self::MissingLoader => {
                "use a program that is built for the C library of the image, or link it statically"
            }
            Self::Empty => "check that the file was saved and is not a placeholder",
            Self::WrongArchitecture => {
                "build the program for the node's architecture, or select other nodes with `node_selector`"
            }
            Self::NotExecutable => {
                "make the file executable with `chmod +x`, or run it with its interpreter"
            }
            Self::Folder => "name a program in the folder, or run it with `python3 -m`",
            Self::LargeVariable | Self::LargeArgument | Self::LargeTogether => {
                "write large values to a file in the folder of the code, and pass its name"
            }
            Self::NoProcess => "raise `memory`, or the limit of processes of the node or the user",
        }
    }

    /// The problem in a message of the bootstrap.
    #[must_use]
    pub fn in_text(text: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|problem| text.contains(problem.phrase()))
    }
}
