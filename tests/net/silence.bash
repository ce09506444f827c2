# Hosts that vanish without a word: powered off, or behind a cable that is cut somewhere. Nothing resets their connections.

# start_limited RANKS LIMIT [VARIABLE=VALUE...]: one rank a host, in an operation; LIMIT: seconds that a host may be silent
start_limited() {
  local rank size=$1 limit=$2
  shift 2
  cluster up "$size"
  for ((rank = 0; rank < size; rank++)); do
    start_rank $rank "$size" $rank env ANYCCL_TCP_ACK_TIMEOUT="$limit" "$@" "$loop"
  done
  for ((rank = 0; rank < size; rank++)); do waits_for $rank 'runs'; done
}

# end_naming WHOM RANK...: each of these ranks ends and names one of WHOM (a pattern) as silent, within the test's time
end_naming() {
  local rank whom=$1
  shift
  for rank in "$@"; do
    ends "$rank" 1
    grep -qE "rank $whom \(host h$whom, pid [0-9]+\) does not answer while .* has acknowledged nothing for" \
      "$folder/$rank" || fail "$rank does not say that $whom is silent"
  done
}

test_a_host_that_vanishes_in_an_operation_is_named_by_all_others() {
  start_limited 3 2
  cluster drop 2 2
  end_naming 2 0 1
  end_naming '[01]' 2
}

test_a_host_that_vanishes_while_nothing_is_sent_is_named() {
  start_limited 2 2 RECEIVE=1
  cluster drop 1 1
  end_naming 1 0
  end_naming 0 1
}

test_a_host_that_vanishes_is_named_over_links_made_on_demand() {
  start_limited 2 2 ANYCCL_CONNECT_ALL=0
  cluster drop 1 1
  end_naming 1 0
  end_naming 0 1
}

test_each_half_of_a_torn_network_names_the_other() {
  start_limited 4 2
  cluster drop 0 2
  cluster drop 0 3
  cluster drop 1 2
  cluster drop 1 3
  end_naming '[23]' 0 1
  end_naming '[01]' 2 3
}

test_a_host_that_is_back_in_time_does_no_harm() {
  local rank
  start_limited 2 30 LOOPS=1000
  cluster drop 1 1
  sleep 2  # so long is it gone
  cluster heal
  for rank in 0 1; do ends $rank 0; done
}

test_a_process_that_stands_still_is_waited_for() {
  local rank
  start_limited 2 1 LOOPS=1000
  kill -STOP "${pids[1]}"
  sleep 4  # several times the limit
  kill -CONT "${pids[1]}"
  for rank in 0 1; do ends $rank 0; done
}
