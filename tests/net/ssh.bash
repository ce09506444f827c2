# `anyccl run --hosts` by ssh: on each host a server of OpenSSH, with keys and settings that are this test's own.

small=("$tool" perf all_reduce -b 8 -e 64 -f 8 -n 3 -w 1)

# start_servers HOSTS [SETTING]...: of sshd_config
start_servers() {
  local host hosts=$1 etc
  shift
  cluster up "$hosts"
  for name in user host; do ssh-keygen -q -t ed25519 -N '' -f "$folder/$name.key"; done
  for ((host = 0; host < hosts; host++)); do
    etc=/etc/netns/$CLUSTER-h$host/ssh  # this host's /etc/ssh
    mkdir "$etc"
    printf '%s\n' "HostKey $folder/host.key" "AuthorizedKeysFile $folder/user.key.pub" 'PidFile none' 'UsePAM no' \
      'StrictModes no' 'PasswordAuthentication no' "$@" >"$etc/sshd_config"
    printf '%s\n' 'IdentitiesOnly yes' "IdentityFile $folder/user.key" 'StrictHostKeyChecking yes' \
      'GlobalKnownHostsFile /etc/ssh/known' 'UserKnownHostsFile none' >"$etc/ssh_config"
    echo "* $(cat "$folder/host.key.pub")" >"$etc/known"
    # /run/sshd, which it wants, exists on machines that run one.
    start "sshd$host" "$host" sh -c 'mount -t tmpfs tmpfs /run && mkdir /run/sshd && exec /usr/sbin/sshd -D -e'
    waits_for "sshd$host" 'Server listening on'
  done
}

# (A shell starts what is in the background without SIGINT.)
start_hosts() { start job 0 env --default-signal=INT "$tool" run "$@"; }

# no_rank_runs HOST...: soon; the server may
no_rank_runs() {
  local host end=$((SECONDS + 30)) running
  for host in "$@"; do
    while running=$(ps -o args= -p "$(ip netns pids "$CLUSTER-h$host" | paste -sd,)" | grep -v '^sshd:\|/sshd '); do
      [ $SECONDS -lt $end ] || fail "on host $host runs: $running"
      sleep 0.05
    done
  done
}

test_ssh_starts_the_ranks_of_all_hosts() {
  start_servers 2
  start_hosts --hosts h0,h1 -n 4 -- "${small[@]}"
  ends job 0
  says job '4 ranks (processes)'
  says job '# wrong values: 0 (all right)'
}

test_ssh_carries_variables_and_arguments() {
  start_servers 2
  export MINE="it's mine"
  # shellcheck disable=SC2016
  start_hosts --hosts h1 -n 1 -x MINE -- sh -c 'echo "$MINE|$1|$2"' sh 'two  words' '$HOME'
  ends job 0
  says job "[0] it's mine|two  words|\$HOME"
}

test_ssh_carries_signals() {
  start_servers 2
  start_hosts --hosts h0,h1 -n 2 -- sh -c 'trap "echo interrupted; exit 0" INT; echo ready; sleep 1000 & wait'
  waits_for job '[0] ready'
  waits_for job '[1] ready'
  kill -INT "${pids[job]}"
  ends job 0
  says job '[1] interrupted'
  no_rank_runs 0 1
}

test_the_end_of_the_launcher_ends_ranks_that_ssh_has_started() {
  start_servers 2
  start_hosts --hosts h0,h1 -n 2 -- sh -c 'echo ready; exec sleep 1000'
  waits_for job '[0] ready'
  waits_for job '[1] ready'
  kill -KILL "${pids[job]}"
  ends job 137
  no_rank_runs 0 1
}

test_a_host_that_refuses_the_key_is_named() {
  start_servers 2
  : >"$folder/user.key.pub"
  start_hosts --hosts h1 -n 1 -- true
  ends job 255
  says job 'Permission denied'
  says job 'host h1 failed: exit code 255'
}
