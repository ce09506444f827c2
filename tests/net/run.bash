# `anyccl run` on several hosts.

small=(perf all_reduce -b 8 -e 64 -f 8 -n 3 -w 1)
ssh=$here/../support/cluster

# start_node NODE COUNT OPTION... -- COMMAND...: as a user starts one node of a job
start_node() {
  local node=$1 count=$2
  shift 2
  start "$node" "$node" "$tool" run --nnodes "$count" --node-rank "$node" --master h0:29500 "$@"
}

test_nodes_make_one_job() {
  cluster up 2
  "$tool" secret "$folder/secret"
  for node in 0 1; do start_node $node 2 --secret-file "$folder/secret" -n 2 -- "$tool" "${small[@]}"; done
  ends 0 0
  ends 1 0
  says 0 '[0] # anyccl'
  says 0 '4 ranks (processes)'
  says 0 '# wrong values: 0 (all right)'
}

test_nodes_may_have_different_numbers_of_ranks() {
  cluster up 3
  export ANYCCL_SECRET=$secret
  # shellcheck disable=SC2016  # for the rank's shell
  for node in 0 1 2; do
    start_node $node 3 -n 3,1,2 -- sh -c 'echo $RANK of $WORLD_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE; exec "$@"' sh "$tool" "${small[@]}"
  done
  for node in 0 1 2; do ends $node 0; done
  says 0 '[2] 2 of 6, 2 of 3'
  says 1 '[3] 3 of 6, 0 of 1'
  says 2 '[5] 5 of 6, 1 of 2'
  says 0 '# wrong values: 0 (all right)'
}

test_a_node_without_a_secret_says_how_to_make_one() {
  cluster up 1
  start_node 0 2 -n 1 -- true
  ends 0 2
  says 0 'ANYCCL_SECRET is not set: make one with `anyccl secret FILE`'
}

test_a_secret_that_others_can_read_is_refused() {
  cluster up 1
  "$tool" secret "$folder/secret"
  chmod 644 "$folder/secret"
  start_node 0 2 --secret-file "$folder/secret" -n 1 -- true
  ends 0 2
  says 0 'chmod 600'
}

test_different_secrets_are_named_on_both_nodes() {
  cluster up 2
  for node in 0 1; do
    ANYCCL_SECRET=0000000000000000000000000000000$node start_node $node 2 -n 1 -- "$tool" "${small[@]}"
  done
  ends 1 2
  says 1 'another secret'
  waits_for 0 'was refused, as it knows another secret'  # while it waits for the other rank
  kill -TERM "${pids[0]}"
  ends 0 143
}

test_a_rank_of_a_job_does_not_start_another_one() {
  cluster up 2
  for rank in 0 1; do start_rank $rank 2 $rank "$tool" run -n 1 -- "$tool" "${small[@]}"; done
  for rank in 0 1; do
    ends $rank 2
    says $rank "RANK=$rank is set"
    says $rank '--nnodes, --node-rank and --master'
  done
}

# start_hosts OPTION... -- COMMAND...: all from host 0
# (A shell starts what is in the background without SIGINT.)
start_hosts() { start job 0 env --default-signal=INT "$tool" run --ssh "$ssh rsh" "$@"; }

test_hosts_are_started_from_one_of_them() {
  cluster up 3
  start_hosts --hosts h0,h1,h2 -n 6 -- "$tool" "${small[@]}"
  ends job 0
  says job '[0] # anyccl'
  says job '6 ranks (processes)'
  says job '# wrong values: 0 (all right)'
}

test_hosts_may_have_room_for_different_numbers_of_ranks() {
  cluster up 2
  # shellcheck disable=SC2016
  start_hosts --hosts h0,h1:2 -- sh -c 'echo $(hostname) $LOCAL_RANK $LOCAL_WORLD_SIZE $MASTER_ADDR'
  ends job 0
  says job '[0] h0 0 1 h0'
  says job '[1] h1 0 2 h0'
  says job '[2] h1 1 2 h0'
}

test_a_host_may_be_none_of_the_jobs() {
  cluster up 3
  start job 2 "$tool" run --ssh "$ssh rsh" --hosts h0,h1 -n 2 -- "$tool" "${small[@]}"
  ends job 0
  says job '# wrong values: 0 (all right)'
}

test_hosts_get_folder_variables_and_arguments() {
  cluster up 2
  cd "$folder"
  export ANYCCL_TIMEOUT=77 MINE="it's mine" OTHER=no
  # shellcheck disable=SC2016
  start_hosts --hosts h1 -n 1 -x MINE -x GIVEN=a=b -- \
    sh -c 'echo "$PWD|$ANYCCL_TIMEOUT|$MINE|$GIVEN|$OTHER|$1|$2|$3"' sh 'two  words' '' '$HOME'
  ends job 0
  says job "[0] $folder|77|it's mine|a=b|"
  says job '|two  words||$HOME'
}

test_the_secret_is_on_no_command_line() {
  cluster up 2
  # shellcheck disable=SC2016
  start_hosts --hosts h0,h1 -n 2 -- sh -c 'echo "$ANYCCL_SECRET" | grep -lF -f - /proc/[0-9]*/cmdline 2>/dev/null; echo looked'
  ends job 0
  says job '[1] looked'
  says_not job 'cmdline'
}

test_a_failed_rank_ends_the_ranks_of_all_hosts() {
  cluster up 3
  # shellcheck disable=SC2016
  start_hosts --hosts h0,h1,h2 -n 6 -- sh -c '[ $RANK != 3 ] || exit 42; trap "echo stopped; exit 0" TERM; sleep 1000 & wait'
  ends job 42
  says job 'rank 3 (host h1, pid '
  says job 'failed: exit code 42'
  says job 'host h1 failed: exit code 42'
  nobody_runs 0 1 2
}

test_an_interrupt_reaches_the_ranks_of_all_hosts() {
  cluster up 2
  start_hosts --hosts h0,h1 -n 2 -- sh -c 'trap "echo interrupted; exit 0" INT; echo ready; sleep 1000 & wait'
  waits_for job '[0] ready'
  waits_for job '[1] ready'
  kill -INT "${pids[job]}"
  ends job 0
  says job '[0] interrupted'
  says job '[1] interrupted'
  nobody_runs 0 1
}

# nobody_runs HOST...: soon
nobody_runs() {
  local host end=$((SECONDS + 30))
  for host in "$@"; do
    until [ -z "$(ip netns pids "$CLUSTER-h$host")" ]; do
      [ $SECONDS -lt $end ] || fail "on host $host runs: $(ps -o args= -p "$(ip netns pids "$CLUSTER-h$host" | paste -sd,)")"
      sleep 0.05
    done
  done
}

test_the_end_of_the_launcher_ends_the_ranks() {
  cluster up 2
  start_hosts --hosts h0,h1 -n 2 -- sh -c 'echo ready; exec sleep 1000'
  waits_for job '[0] ready'
  waits_for job '[1] ready'
  kill -KILL "${pids[job]}"
  ends job 137
  nobody_runs 0 1
}

test_a_host_that_does_not_answer_is_left_behind() {
  cluster up 2
  start_hosts --hosts h0,h1 -n 2 --grace 0 -- sh -c 'echo ready; exec sleep 1000'
  waits_for job '[1] ready'
  cluster freeze 1
  kill -TERM "${pids[job]}"
  ends job 143
  says job 'host h1 did not end within 0 s of SIGTERM: killing it'
}

test_a_host_that_cannot_be_reached_is_named() {
  cluster up 2
  start job 0 "$tool" run --ssh false --hosts h1 -n 1 -- true
  ends job 1
  says job 'host h1 failed: exit code 1'
}

test_a_program_that_is_missing_on_a_host_is_named() {
  cluster up 2
  start_hosts --hosts h0,h1 -n 2 -- no-such-program
  ends job 127
  says job "cannot start 'no-such-program'"
}
