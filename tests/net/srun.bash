# Slurm's srun: a controller on host 0 and a daemon on every host, which trust each other and need no munge.

small=("$tool" perf all_reduce -b 8 -e 64 -f 8 -n 3 -w 1)

# start_slurm HOSTS
start_slurm() {
  local host end=$((SECONDS + 60))
  cluster up "$1"
  export SLURM_CONF=$folder/slurm.conf
  cat >"$SLURM_CONF" <<CONF
ClusterName=lab
SlurmctldHost=h0
SlurmUser=root
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
SelectType=select/linear
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool-%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd-%n.pid
SlurmdParameters=config_overrides
NodeName=h[0-$(($1 - 1))] CPUs=4
PartitionName=all Nodes=ALL Default=YES
CONF
  echo 'CgroupPlugin=cgroup/v1' >"$folder/cgroup.conf"
  mkdir "$folder/state"
  start slurmctld 0 slurmctld -D
  for ((host = 0; host < $1; host++)); do
    mkdir "$folder/spool-h$host"
    # It looks at this folder, which hosts of the cluster lack, and then needs nothing of it.
    start "slurmd$host" "$host" sh -c 'mount -t tmpfs tmpfs /sys/fs/cgroup && exec slurmd -D -N "$1"' sh "h$host"
  done
  until [ "$(cluster on 0 sinfo -h -N -o %T 2>/dev/null | grep -cx idle)" = "$1" ]; do
    [ $SECONDS -lt $end ] || fail "the hosts are not ready: $(cluster on 0 sinfo 2>&1)"
    sleep 0.1
  done
}

test_srun_on_several_hosts_needs_a_secret_only() {
  start_slurm 2
  export ANYCCL_SECRET=$secret
  start job 0 srun -N 2 -n 3 "${small[@]}"
  ends job 0
  says job '3 ranks (processes)'
  says job shm+tcp
  says job '# wrong values: 0 (all right)'
}

test_srun_on_one_host_needs_nothing() {
  start_slurm 1
  start job 0 srun -n 2 "${small[@]}"
  ends job 0
  says job '2 ranks (processes)'
  says job '# wrong values: 0 (all right)'
}

test_several_ranks_by_each_task_of_srun() {
  start_slurm 2
  export FIRST=h0 ANYCCL_SECRET=$secret tool
  # shellcheck disable=SC2016
  start job 0 srun -N 2 --ntasks-per-node 1 sh -c \
    '$tool run --nnodes $SLURM_NNODES --node-rank $SLURM_NODEID --master $FIRST:29500 -n 2 -- "$@"' sh "${small[@]}"
  ends job 0
  says job '4 ranks (processes)'
  says job '# wrong values: 0 (all right)'
}
