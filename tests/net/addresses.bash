# Ranks find each other among many addresses, and say why they do not.

small=(perf all_reduce -b 8 -e 1K -f 128 -n 3 -w 1)

# all_right SIZE: ranks 0 to SIZE - 1 have measured and found no wrong value
all_right() {
  local rank
  for ((rank = 0; rank < $1; rank++)); do ends $rank 0; done
  says 0 '# wrong values: 0 (all right)'
}

# file_of HOST NAME: what the host has in the place of /etc/NAME
file_of() { echo "/etc/netns/$CLUSTER-h$1/$2"; }

test_the_right_interface_is_found_among_many() {
  cluster up 2 --rails 2
  cluster drop 0 1 0  # eth0, which is the first, swallows everything
  for host in 0 1; do
    cluster on $host ip link add docker0 type bridge
    cluster on $host ip address add 172.17.0.1/16 dev docker0
    cluster on $host ip link set docker0 up
    cluster on $host ip link add alone0 type veth peer name alone1
    cluster on $host ip link set alone1 up
    cluster on $host ip address add 198.18.$host.1/32 dev alone0
    cluster on $host ip link set alone0 up
  done
  master=h0-r1
  # Less than one attempt at eth0 takes.
  for rank in 0 1; do start_rank $rank 2 $rank env ANYCCL_TIMEOUT=2.9 "$tool" "${small[@]}"; done
  all_right 2
}

test_rank_0s_name_may_mean_its_loopback_there() {
  cluster up 2
  echo '127.0.1.1 h0' >"$(file_of 0 hosts)"
  for rank in 0 1 2; do start_rank $rank 3 $((rank / 2)) "$tool" "${small[@]}"; done
  all_right 3
}

test_hosts_may_hide_the_kernels_settings() {
  cluster up 2
  # shellcheck disable=SC2016  # for the rank's shell
  for rank in 0 1; do
    start_rank $rank 2 $rank unshare -m sh -c 'mount -t tmpfs none /proc/sys && exec "$@"' sh "$tool" "${small[@]}"
  done
  all_right 2
}

test_a_host_without_ipv4_joins_hosts_with_both() {
  cluster up 2 --ip 46,6
  for rank in 0 1; do start_rank $rank 2 $rank "$tool" "${small[@]}"; done
  all_right 2
}

test_hosts_of_different_families_are_told_so() {
  cluster up 3 --ip 46,4,6
  for host in 1 2; do cluster on $host ip -6 address flush scope link; done
  for rank in 0 1 2; do start_rank $rank 3 $rank env ANYCCL_TIMEOUT=2 "$tool" "${small[@]}"; done
  ends 2 1
  says 2 'rank 1 (host h1, pid '
  says 2 'no common address family: it has IPv4 addresses, and this host has none'
}

test_link_local_addresses_are_enough() {
  cluster up 2 --ip 6 --rails 2
  for host in 0 1; do
    for rail in 0 1; do
      cluster on $host ip -6 address flush dev eth$rail
      cluster on $host ip address add fe80::77:$rail:$((host + 1))/64 dev eth$rail nodad
    done
  done
  master=fe80::77:1:1%eth1
  for rank in 0 1; do start_rank $rank 2 $rank "$tool" "${small[@]}"; done
  all_right 2
}

test_a_name_service_that_does_not_answer_ends_in_time() {
  cluster up 1 --ip 4
  echo 'nameserver 10.77.0.99' >"$(file_of 0 resolv.conf)"
  master=elsewhere.example
  start_rank 1 2 0 env ANYCCL_TIMEOUT=0.5 "$tool" "${small[@]}"
  ends 1 1
  says 1 'MASTER_ADDR: cannot find the address of elsewhere.example: the name service did not answer in time'
}

test_a_firewall_may_leave_a_range_of_ports() {
  cluster up 2
  for host in 0 1; do
    cluster on $host nft 'add table inet wall; add chain inet wall in { type filter hook input priority 0; }
      add rule inet wall in iifname "eth0" tcp flags & (syn | ack) == syn tcp dport != { 29501, 41000-41001 } drop'
  done
  for rank in 0 1 2 3; do
    start_rank $rank 4 $((rank / 2)) env ANYCCL_PORT_RANGE=41000-41001 ANYCCL_DEBUG=INFO "$tool" "${small[@]}"
  done
  all_right 4
  says 3 'listens at 10.77.0.2:4100'
}

test_a_range_of_ports_that_is_full_is_named() {
  cluster up 1 --ip 4
  for rank in 0 1 2; do
    start_rank $rank 4 0 env ANYCCL_PORT_RANGE=41000-41001 ANYCCL_TIMEOUT=2 "$tool" "${small[@]}"
  done
  for rank in 0 1 2; do ends $rank 1; done
  grep -qF 'no port of ANYCCL_PORT_RANGE=41000-41001 is free at ' "$folder"/* || fail 'nobody names the range'
}

test_a_host_without_free_ports_says_so() {
  cluster up 1 --ip 4
  cluster on 0 sh -c 'echo 41000 41001 >/proc/sys/net/ipv4/ip_local_port_range'
  for rank in 0 1 2; do start_rank $rank 3 0 env ANYCCL_TIMEOUT=2 "$tool" "${small[@]}"; done
  for rank in 0 1 2; do ends $rank 1; done
  grep -qF 'no port is free' "$folder"/* || fail 'nobody says that there is no port'
}

# start_limited RANK OPTION COUNT: of 12, with that many descriptors
start_limited() {
  # shellcheck disable=SC2016
  start_rank $1 12 0 bash -c "ulimit $2 $3"' && exec "$@"' sh env ANYCCL_TIMEOUT=20 "$tool" "${small[@]}"
}

test_a_low_soft_limit_of_descriptors_is_raised() {
  cluster up 1 --ip 4
  for ((rank = 0; rank < 12; rank++)); do start_limited $rank -Sn 18; done
  all_right 12
}

test_a_lack_of_descriptors_is_told_to_all_ranks() {
  cluster up 1 --ip 4
  start_limited 0 -n 18
  for ((rank = 1; rank < 12; rank++)); do start_limited $rank -Sn 100; done
  for ((rank = 0; rank < 12; rank++)); do
    ends $rank 1
    says $rank 'ulimit -n'
  done
}
