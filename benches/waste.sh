#!/usr/bin/env bash
# What a web of sessions, aliases, mirrors, traps and false error pages costs: pages fetched for each
# distinct article, without rules and brakes, with those that need only the address, and with all.
# Usage: benches/waste.sh
set -euo pipefail
cd "$(dirname "$0")/.."
webs=benches/webs/target/release
if [ -z "${CRAWL:-}" ]; then
  cargo build --release --quiet
  CRAWL=target/release/crawl
fi
if [ -n "${WEBS:-}" ]; then webs=$WEBS; else
  cargo build --release --quiet --manifest-path benches/webs/Cargo.toml
fi
work=$(mktemp -d)
server='' crawler=''
end() {
  for process in $crawler $server; do kill "$process" 2> /dev/null || true; done
  wait
  rm -rf "$work"
}
trap end EXIT
# The budget ends what has no end when nothing else does; times are short, for the web is ours.
usual='host_addresses_max = 4000
delay = "0s"
connections_per_host = 2
retry_delay = "200ms"
busy_delay = "300ms"'
run() { # NAME FRONTIER REST: a server, a crawl, and what came of it
  local name=$1 folder=$work/$1
  mkdir "$folder"
  "$webs/waste" serve "$folder" & server=$!
  until [ -s "$folder/resolve" ]; do kill -0 "$server"; sleep 0.1; done
  printf '%s\n[fetch]\nallow_private = true\n' "$3" > "$folder/config.toml"
  cat "$folder/resolve" >> "$folder/config.toml"
  printf '[frontier]\n%s\n%s\n' "$usual" "$2" >> "$folder/config.toml"
  timeout 600 "$CRAWL" --config "$folder/config.toml" --scope domain --seeds "$folder/seeds" \
    --store "$folder/store" --report "$folder/report.json" --quiet > "$folder/out" & crawler=$!
  wait "$crawler"
  crawler=''
  kill "$server"; wait "$server" || true
  server=''
  echo "$name ($(awk '/"seconds"/ { print $2 + 0 }' "$folder/report.json") s)"
}
no_rules='[frontier.rules]
learn_rules = false
[frontier.yields]
slow_after = 0
stop_after = 0
alike_stop_after = 0'
run off "[frontier.shape]
path_segments_max = 1000
segment_repeats_max = 1000
sequence_repeats_max = 1000
calendar_months_ahead_max = 0
calendar_years_back_max = 0
refuse_path_sessions = false
$no_rules" '[crawl]
probe_error_page = false
[urls]
drop_tracking_parameters = false
drop_session_ids = false'
"$webs/waste" score "$work/off" "$work/off/store" || true
run address "$no_rules" '[crawl]
probe_error_page = false'
"$webs/waste" score "$work/address" "$work/address/store" "$work/off/log" || true
run all '' ''
"$webs/waste" score "$work/all" "$work/all/store" "$work/off/log"
"$CRAWL" check --store "$work/all/store" > /dev/null
