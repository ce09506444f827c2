# ANYCCL_RECONNECT: connections between hosts that something on the way ends.

# start_reconnecting HOSTS [VARIABLE=VALUE...]: one rank a host, in an operation
start_reconnecting() {
  local rank size=$1
  shift
  for ((rank = 0; rank < size; rank++)); do
    start_rank $rank "$size" $rank env ANYCCL_RECONNECT=60 ANYCCL_DEBUG=INFO ANYCCL_DEBUG_SUBSYS=NET "$@" "$loop"
  done
  for ((rank = 0; rank < size; rank++)); do waits_for $rank 'runs'; done
}

# Resets what host 1 receives in its connections, until heal_connections.
reset_connections() {
  cluster on 1 nft 'add table inet wall; add chain inet wall in { type filter hook input priority 0; }
    add rule inet wall in iifname "eth0" tcp flags & (syn | ack) == ack reject with tcp reset'
}
heal_connections() { cluster on 1 nft delete table inet wall; }

test_a_connection_that_a_firewall_resets_is_replaced() {
  local rank
  cluster up 2
  start_reconnecting 2 LOOPS=1000
  reset_connections
  waits_for 0 'was lost'
  heal_connections
  for rank in 0 1; do ends $rank 0; done
  says 0 'connected again'
}

test_ranks_go_on_over_another_interface() {
  local rank
  cluster up 2 --rails 2
  start_reconnecting 2 LOOPS=1000 ANYCCL_TCP_ACK_TIMEOUT=2
  cluster drop 0 1 0
  for rank in 0 1; do ends $rank 0; done
  says 0 'connected again'
}

test_a_host_that_vanishes_is_named_when_the_time_is_over() {
  cluster up 2
  start_reconnecting 2 ANYCCL_TCP_ACK_TIMEOUT=2 ANYCCL_RECONNECT=2
  cluster drop 1 1
  ends 0 1
  ends 1 1
  says 0 'rank 1 (host h1, pid '
  says 0 'does not answer'
}
