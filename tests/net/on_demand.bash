# Hosts that connect when a call first needs it, as large groups do: ANYCCL_CONNECT_ALL=0 makes every group one.

later=(env ANYCCL_CONNECT_ALL=0)
small=(perf all_reduce -b 8 -e 64K -f 64 -n 3 -w 1)

test_hosts_connect_on_demand_beside_shared_memory() {
  cluster up 3
  for rank in 0 1 2 3 4 5; do start_rank $rank 6 $((rank / 2)) "${later[@]}" ANYCCL_DEBUG=INFO "$tool" "${small[@]}"; done
  for rank in 0 1 2 3 4 5; do ends $rank 0; done
  says 0 '# wrong values: 0 (all right)'
  says 0 'rank 0 of 6: shm to rank 1'
  says 0 ' to ranks 2-5'  # over tcp; it says more of links that peers have opened by then
  says 5 'listens at 10.77.0.3:'
}

test_a_firewall_that_lets_only_one_host_call_keeps_nobody_out() {
  # As in both directions: host 1 has the higher rank, whose calls count.
  local closed
  for closed in 0 1; do
    cluster up 2
    cluster on $closed nft 'add table inet wall; add chain inet wall in { type filter hook input priority 0; }
      add rule inet wall in iifname "eth0" tcp flags & (syn | ack) == syn tcp dport != 29501 drop'
    for rank in 0 1; do start_rank $rank 2 $rank "${later[@]}" "$tool" "${small[@]}"; done
    for rank in 0 1; do ends $rank 0; done
    says 0 '# wrong values: 0 (all right)'
  done
}

test_an_interface_that_leads_nowhere_is_left_on_demand_too() {
  cluster up 2 --rails 2
  cluster drop 0 1 0
  master=h0-r1
  for rank in 0 1; do start_rank $rank 2 $rank "${later[@]}" "$tool" "${small[@]}"; done
  for rank in 0 1; do ends $rank 0; done
  says 0 '# wrong values: 0 (all right)'
}

test_a_killed_rank_is_named_by_hosts_that_connected_on_demand() {
  cluster up 2
  for rank in 0 1 2 3; do start_rank $rank 4 $((rank / 2)) "${later[@]}" "$loop"; done
  for rank in 0 1 2 3; do waits_for $rank 'runs'; done
  last_of_4_dies_and_is_named
}
