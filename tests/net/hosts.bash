# Ranks on several hosts, each started by hand.

small=(perf all_reduce -b 8 -e 64K -f 64 -n 3 -w 1)

# all_right SIZE [TEXT]: ranks 0 to SIZE - 1 have measured and found no wrong value
all_right() {
  local rank
  for ((rank = 0; rank < $1; rank++)); do ends $rank 0; done
  says 0 '# wrong values: 0 (all right)'
  [ $# = 1 ] || says 0 "$2"
}

test_hosts_use_tcp_and_shared_memory() {
  cluster up 2
  for rank in 0 1 2 3; do start_rank $rank 4 $((rank / 2)) "$tool" "${small[@]}"; done
  all_right 4 shm+tcp
}

test_ranks_meet_over_ipv6_alone() {
  cluster up 2 --ip 6
  for rank in 0 1; do start_rank $rank 2 $rank "$tool" "${small[@]}"; done
  all_right 2
}

test_ranks_meet_at_a_numeric_ipv6_address() {
  cluster up 2
  master=$(cluster address 0 0 6)
  for rank in 0 1; do start_rank $rank 2 $rank "$tool" "${small[@]}"; done
  all_right 2
}

test_a_host_without_ipv6_joins_hosts_with_both() {
  cluster up 2 --ip 46,4
  for rank in 0 1; do start_rank $rank 2 $rank "$tool" "${small[@]}"; done
  all_right 2
}

test_a_host_with_another_address_family_is_told_what_it_tried() {
  cluster up 2 --ip 4,6
  for rank in 0 1; do start_rank $rank 2 $rank env ANYCCL_TIMEOUT=1.5 "$tool" "${small[@]}"; done
  ends 0 1
  ends 1 1
  says 0 'missing: 1'
  says 1 '10.77.0.1:29501: Network is unreachable'
  says 1 'no common address family: it has IPv4 addresses, and this host has none'
}

test_hosts_may_have_different_numbers_of_ranks() {
  cluster up 3
  local host=(0 0 0 1 2 2)
  for rank in 0 1 2 3 4 5; do start_rank $rank 6 "${host[rank]}" "$tool" "${small[@]}"; done
  all_right 6 shm+tcp
}

test_ranks_of_a_host_need_not_be_neighbours() {
  cluster up 3
  local host=(0 1 2 0 2 0)
  for rank in 0 1 2 3 4 5; do start_rank $rank 6 "${host[rank]}" "$tool" "${small[@]}"; done
  all_right 6 shm+tcp
}

# sent HOST RAIL: bytes
sent() { cluster bytes "$1" "$2" | cut -d ' ' -f 1; }

test_an_interface_can_be_chosen() {
  cluster up 2 --rails 2
  for rank in 0 1; do
    start_rank $rank 2 $rank env ANYCCL_SOCKET_IFNAME=eth1 "$tool" perf all_reduce -b 1M -e 1M -n 3 -w 1
  done
  all_right 2
  [ "$(sent 0 1)" -gt 1000000 ] || fail "eth1 has sent $(sent 0 1) bytes only"
  [ "$(sent 0 0)" -lt 100000 ] || fail "eth0 has sent $(sent 0 0) bytes"
}

test_an_interface_that_leads_nowhere_is_left_for_another() {
  cluster up 2 --rails 2
  cluster drop 0 1 0
  master=h0-r1
  for rank in 0 1; do start_rank $rank 2 $rank "$tool" "${small[@]}"; done
  all_right 2
}

test_a_bridge_with_the_same_address_everywhere_does_no_harm() {
  cluster up 2
  for host in 0 1; do
    cluster on $host ip link add docker0 type bridge
    cluster on $host ip address add 172.17.0.1/16 dev docker0
    cluster on $host ip link set docker0 up
  done
  for rank in 0 1; do start_rank $rank 2 $rank "$tool" "${small[@]}"; done
  all_right 2
}

test_distant_hosts_add_up() {
  cluster up 2 --delay 5ms
  for rank in 0 1; do start_rank $rank 2 $rank env LOOPS=2 "$loop"; done
  ends 0 0
  ends 1 0
}

# start_loops RANKS HOSTS [MILLISECONDS]: all in an operation, again and again
start_loops() {
  local rank size=$1 hosts=$2
  shift 2
  cluster up "$hosts"
  for ((rank = 0; rank < size; rank++)); do start_rank $rank $size $((rank * hosts / size)) "$loop" "$@"; done
  for ((rank = 0; rank < size; rank++)); do waits_for $rank 'runs'; done
}

test_a_killed_rank_is_named_on_all_hosts() {
  start_loops 4 2
  last_of_4_dies_and_is_named
}

test_a_cut_cable_ends_in_an_error_when_the_limit_is_over() {
  start_loops 2 2 3000
  cluster cut 1
  for rank in 0 1; do
    ends $rank 1
    says $rank 'rank'
  done
}

test_a_frozen_host_is_named_when_the_limit_is_over() {
  start_loops 2 2 3000
  cluster freeze 1
  ends 0 1
  says 0 'waits for rank 1 in operation'  # with its host only if it has not entered the call
  cluster thaw 1
  ends 1 1
}

test_the_log_names_hosts_transports_and_addresses() {
  cluster up 2 --ip 4
  for rank in 0 1; do start_rank $rank 2 $rank env ANYCCL_DEBUG=INFO LOOPS=1 "$loop"; done
  ends 0 0
  ends 1 0
  says 0 'communicator of 2 ranks on 2 hosts'
  says 0 'host of rank 1 (host h1, pid '
  says 0 'rank 0 of 2: tcp/'
  says 0 'listens at 10.77.0.1:'
}

test_a_slow_link_is_worth_a_codec() {
  cluster up 2 --rate 100mbit
  for rank in 0 1 2 3; do start_rank $rank 4 $((rank / 2)) "$build/bin/codec_if_slow"; done
  for rank in 0 1 2 3; do
    ends $rank 0
    says $rank 'f32 coded, bf16 coded'
  done
}
