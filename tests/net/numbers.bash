# What docs/numbers says of bytes between hosts, and scripts/on-hosts, which measures it.

# on_hosts HOSTS PROGRAM...: what it prints, in $folder/on_hosts
on_hosts() {
  "$here/../../scripts/on-hosts" "$@" >"$folder/on_hosts" 2>&1 </dev/null || fail "scripts/on-hosts $* failed"
}

# bytes_are HOSTS COLUMN: those of each codec, a twentieth more or less than in that column of the table
bytes_are() {
  on_hosts "$1" "$build/bin/coded_bench" 1048576 1
  local row page now
  for row in 'bf16, none' 'f32, none' 'bf16, `int8`' 'f32, `int8`' 'f32, `mxint8`' 'f32, `mxfp8_e4m3`' 'f32, `int4`' 'f32, `bf16`'; do
    page=$(grep -F "| $row |" "$here/../../docs/numbers/codecs.md" | cut -d '|' -f "$2")
    row=${row//\`/} row=${row/none/no codec}
    now=$(grep "^$row  " "$folder/on_hosts" | awk '{print $NF}')
    awk -v now="$now" -v page="$page" 'BEGIN { exit !(now > 0 && now < page * 1.05 && now > page * 0.95) }' ||
      fail "$row: ${now:-no} bytes for each element, and $page in docs/numbers/codecs.md"
  done
}

test_codecs_send_the_bytes_of_their_table_between_two_hosts() { bytes_are 2 5; }
test_codecs_send_the_bytes_of_their_table_between_four_hosts() { bytes_are 4 8; }

test_verification_and_types_are_measured_between_hosts() {
  on_hosts 2 "$build/bin/verify_bench" 2 1 65536
  says on_hosts 'off, all, 1/16, 1/64'
  says on_hosts '    65536 B '
  on_hosts 2 "$build/bin/types_bench" 2 1 32768
  says on_hosts 'bf16 to f32'
  says on_hosts 'all_reduce        32768 '
}
