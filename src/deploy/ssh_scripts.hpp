// SPDX-License-Identifier: Apache-2.0
#pragma once

// What runs on the other machine of `deploy: {ssh: ...}`. sshd hands one string to the login shell
// of the user there. These strings are constants without a single quote or a backslash, so that
// every login shell but csh hands them on as they are. Everything that differs from launch to
// launch comes by standard input, where `read -r` takes it as data.

#include <string>
#include <string_view>

namespace servetune {

/// The word that ssh gets for one of these scripts.
inline std::string remote_command(std::string_view script) {
    return "exec sh -c '" + std::string(script) + "' servetune";
}

/// An exit code of `start_script` itself: it could not get a folder, or write the engine's files.
inline constexpr int remote_folder_failed = 254;

/// What the scripts need there beside a POSIX shell.
inline constexpr std::string_view remote_tools =
    "setsid timeout head grep tr mktemp mkdir dirname sleep rm";

/// Prints `servetune: TOOL` for each word of the line that standard input brings that is no program
/// there, at last `servetune. all`.
inline constexpr std::string_view tools_script = R"sh(
IFS= read -r tools
for tool in $tools; do command -v "$tool" > /dev/null || echo "servetune: $tool"; done
echo "servetune. all"
)sh";

/// Starts the engine in a session of its own, without a standard input, in a new folder that is
/// removed at its end. Standard input brings lines, then an empty line, then beats: `sLABEL` of the
/// study, `nNAME` of the launch, `uSECONDS` that may pass without a beat, `pSECONDS` of patience
/// with an engine that was told to end, `wWORD` of the command, `eNAME=VALUE` of its environment,
/// `fNAME` begins a file, `lLINE` of it, `cTEXT` continues a word or a value that has line feeds;
/// `e` comes before `w`. Without a beat in time, or at the end of standard input, the session gets
/// TERM and, after the patience, KILL. The engine's exit codes 254 and 255 become 253. The engine's
/// environment is set in the subshell that becomes the engine and nowhere else: it changes nothing
/// of what this script itself does. Its own variables begin with `st_`, and no engine's do
/// (`wrong_with_variable`).
inline constexpr std::string_view start_script = R"sh(
trap : HUP PIPE
st_setsid=$(command -v setsid); st_timeout=$(command -v timeout); st_head=$(command -v head)
st_grep=$(command -v grep); st_sleep=$(command -v sleep); st_rm=$(command -v rm)
st_mkdir=$(command -v mkdir); st_dirname=$(command -v dirname)
st_feed=$(echo; echo x); st_feed=${st_feed%x}
st_folder=$(mktemp -d) && cd "$st_folder" || exit 254
st_clean() { cd /; "$st_rm" -rf -- "$st_folder"; }
trap st_clean EXIT
st_kind=; st_text=; st_variables=0
while IFS= read -r st_line; do
    case $st_line in c*) st_text=$st_text$st_feed${st_line#c}; continue;; esac
    case $st_kind in
        s) st_study=$st_text;;
        n) st_name=$st_text;;
        u) st_unheard=$st_text;;
        p) st_patience=$st_text;;
        w) set -- "$@" "$st_text";;
        e) set -- "$@" "$st_text"; st_variables=$((st_variables + 1));;
        f) st_file=$st_text; "$st_mkdir" -p -- "$("$st_dirname" -- "$st_file")" && : > "$st_file" || exit 254;;
        l) printf "%s$st_feed" "$st_text" >> "$st_file" || exit 254;;
    esac
    [ -n "$st_line" ] || break
    st_kind=${st_line%"${st_line#?}"}; st_text=${st_line#?}
done
[ -z "$st_line" ] && [ "$#" -gt "$st_variables" ] || exit 254
exec 3<&0
(
    trap - EXIT
    while [ "$st_variables" -gt 0 ]; do export "$1"; shift; st_variables=$((st_variables - 1)); done
    export SERVETUNE_STUDY="$st_study" SERVETUNE_LAUNCH="$st_name" SPT_NOENV=1
    exec "$st_setsid" "$@"
) < /dev/null 3<&- &
st_engine=$!
st_group() { kill -s "$1" -- "-$st_engine"; }
st_finish() {
    st_i=0; while st_group 0 && [ $st_i -lt $((10 * st_patience)) ]; do "$st_sleep" 0.1; st_i=$((st_i+1)); done
    st_group KILL
}
{
    trap - EXIT
    while [ "$("$st_timeout" "$st_unheard" "$st_head" -n 1 <&3; echo .)" != . ]; do :; done
    st_group TERM || kill -s TERM "$st_engine"
    st_finish
} > /dev/null 2>&1 &
st_listener=$!
while wait "$st_engine"; st_code=$?; kill -s 0 "$st_engine" 2> /dev/null; do :; done
exec 2> /dev/null
st_group TERM
st_finish
kill -s KILL "$st_listener"
for st_p in $("$st_grep" -lszx "SERVETUNE_LAUNCH=$st_name" /proc/[0-9]*/environ); do
    st_p=${st_p#/proc/}; kill -s KILL "${st_p%/environ}"
done
[ "$st_code" -lt 254 ] || st_code=253
exit "$st_code"
)sh";

/// Ends every process whose environment has the line that standard input brings: TERM, 10 s later
/// KILL. After a first line `look` it ends none. Prints `servetune: ID WORDS` for each that is
/// left, at last `servetune. all`.
inline constexpr std::string_view find_script = R"sh(
IFS= read -r what; IFS= read -r mark
all() { for p in $(grep -lszx "$mark" /proc/[0-9]*/environ); do p=${p#/proc/}; echo "${p%/environ}"; done; }
alive() { for p in $(all); do words=$(head -c 300 "/proc/$p/cmdline" | tr -c "[:print:]" " "); [ -z "$words" ] || echo "$p $words"; done; }
{
    if [ "$what" = end ]; then
        for p in $(all); do kill -s TERM "$p"; done
        i=0; while [ -n "$(alive)" ] && [ $i -lt 100 ]; do sleep 0.1; i=$((i+1)); done
        for p in $(all); do kill -s KILL "$p"; done
        i=0; while [ -n "$(alive)" ] && [ $i -lt 20 ]; do sleep 0.1; i=$((i+1)); done
    fi
    left=$(alive)
} 2> /dev/null
[ -z "$left" ] || echo "$left" | while IFS= read -r one; do echo "servetune: $one"; done
echo "servetune. all"
)sh";

}  // namespace servetune
