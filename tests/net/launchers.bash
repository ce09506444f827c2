# Ranks that other launchers have started, with nothing between.

small=("$tool" perf all_reduce -b 8 -e 64 -f 8 -n 3 -w 1)
# MPICH's mpiexec with an input that does not end. It passes an end on to its helper, and if the ranks are through by
# then, it dies of SIGPIPE and tells neither their words nor their status: in 6 to 9 of 100 runs beside busy loops.
hydra_for_short=(bash -c 'exec "$@" 0<> <(:)' bash mpiexec.hydra)
mpirun=(mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to none)

# mpirun's own folder is named after the host alone, and each run removes it at its end: runs at the same
# time must not share it.
own_folder() {  # JOB
  mkdir "$folder/mpirun.$1"
  echo --mca orte_tmpdir_base "$folder/mpirun.$1"
}

right() { says job "# wrong values: 0 (all right)"; }

# The remote shells of mpirun and mpiexec, and a list of hosts
prepare_hosts() {  # HOSTFILE_LINE...
  printf '#!/bin/sh\nexec env CLUSTER=%s %s rsh "$@"\n' "$CLUSTER" "$here/../support/cluster" >"$folder/rsh"
  chmod +x "$folder/rsh"
  printf '%s\n' "$@" >"$folder/hosts"
  mpirun+=(--mca plm_rsh_agent "$folder/rsh" --mca plm_rsh_no_tree_spawn 1 --hostfile "$folder/hosts")
  hydra=(mpiexec.hydra -launcher ssh -launcher-exec "$folder/rsh" -f "$folder/hosts")
}

test_mpirun_on_one_host() {
  cluster up 1
  start job 0 "${mpirun[@]}" $(own_folder job) -n 3 "${small[@]}"
  ends job 0
  says job '3 ranks (processes)'
  right
}

test_hydra_on_one_host() {
  cluster up 1
  start job 0 mpiexec.hydra -n 3 "${small[@]}"
  ends job 0
  says job '3 ranks (processes)'
  right
}

test_hydra_with_a_script_around_the_program() {
  cluster up 1
  start job 0 mpiexec.hydra -n 2 sh -c '"$@"; exit $?' sh "${small[@]}"
  ends job 0
  right
}

test_two_jobs_on_one_host_do_not_mix() {
  cluster up 1
  start job 0 mpiexec.hydra -n 2 "${small[@]}"
  start job2 0 mpiexec.hydra -n 2 "${small[@]}"
  start job3 0 "${mpirun[@]}" $(own_folder job3) -n 2 "${small[@]}"
  start job4 0 "${mpirun[@]}" $(own_folder job4) -n 2 "${small[@]}"
  for job in job job2 job3 job4; do
    ends $job 0
    says $job '2 ranks (processes)'
  done
}

test_mpirun_on_several_hosts() {
  cluster up 3
  prepare_hosts 'h0 slots=3' 'h1 slots=1' 'h2 slots=2'
  start job 0 env MASTER_ADDR=h0 MASTER_PORT=29500 ANYCCL_SECRET=$secret \
    "${mpirun[@]}" $(own_folder job) -x MASTER_ADDR -x MASTER_PORT -x ANYCCL_SECRET -n 6 "${small[@]}"
  ends job 0
  says job '6 ranks (processes)'
  says job shm+tcp
  right
}

test_hydra_on_several_hosts() {
  cluster up 3
  prepare_hosts h0:3 h1:1 h2:2
  start job 0 env MASTER_ADDR=h0 MASTER_PORT=29500 ANYCCL_SECRET=$secret "${hydra[@]}" -n 6 "${small[@]}"
  ends job 0
  says job '6 ranks (processes)'
  says job shm+tcp
  right
}

test_what_several_hosts_need_is_said() {
  cluster up 2
  prepare_hosts h0:1 h1:1
  start job 0 "${hydra[@]}" -n 2 "${small[@]}"
  start no_address 0 env ANYCCL_SECRET=$secret "${hydra[@]}" -n 2 "${small[@]}"
  start no_port 0 env ANYCCL_SECRET=$secret MASTER_ADDR=h0 "${hydra[@]}" -n 2 "${small[@]}"
  ends job 1
  ends no_address 1
  ends no_port 1
  says job "ANYCCL_SECRET is not set, and MPICH's mpiexec has started ranks on several hosts"
  says no_address "MASTER_ADDR is not set, and MPICH's mpiexec has started ranks on several hosts"
  says no_port "MASTER_PORT is not set, and MPICH's mpiexec has started ranks on several hosts"
}

test_a_number_that_contradicts_the_launcher_is_named() {
  cluster up 1
  start job 0 "${hydra_for_short[@]}" -n 2 -genv WORLD_SIZE 3 "${small[@]}"
  ends job 2
  says job "WORLD_SIZE=3 contradicts PMI_SIZE=2, which MPICH's mpiexec has set"
}

test_a_rank_does_not_start_another_job() {
  cluster up 1
  start job 0 "${hydra_for_short[@]}" -n 2 "$tool" run -n 2 -- true
  ends job 2
  says job "MPICH's mpiexec has started this as process 1 of 2: start the program itself"
}

test_variables_of_anyccl_run_win() {
  cluster up 1
  start job 0 mpiexec.hydra -n 1 "$tool" run -n 2 -- "${small[@]}"
  ends job 0
  says job '2 ranks (processes)'
}

# start_task RANK HOST [VARIABLE=VALUE]...: as srun starts the ranks of a step on two hosts
start_task() {
  local rank=$1 host=$2
  shift 2
  start "$rank" "$host" env SLURM_PROCID="$rank" SLURM_STEP_NUM_TASKS=3 SLURM_STEP_NUM_NODES=2 SLURM_JOB_ID=4711 \
    SLURM_STEP_ID=0 SLURM_STEP_NODELIST='h[0-1]' "$@" "${small[@]}"
}

test_srun_with_rank_0_elsewhere_is_told() {
  cluster up 2
  start_task 0 1 ANYCCL_SECRET=$secret
  ends 0 1
  says 0 'rank 0 is not on h0, the first host of SLURM_STEP_NODELIST: set MASTER_ADDR'
}
