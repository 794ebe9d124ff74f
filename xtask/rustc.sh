#!/bin/sh
# The compiler for the packages of this workspace (`.cargo/config.toml`). The profile `tests`
# optimizes a few of them, which cargo also does with their test programs; those consist of
# JSON literals, take five times as long to compile then, and run no faster.
rustc=$1
shift
case " $* " in
*" --test "*"opt-level=1"* | *"opt-level=1"*" --test "*) exec "$rustc" "$@" -C opt-level=0 ;;
*) exec "$rustc" "$@" ;;
esac
