"""Start 64 Dask workers on Slurm, and connect to them; needs dask_jobqueue."""

from dask.distributed import Client
from dask_jobqueue import SLURMCluster

cluster = SLURMCluster(
    queue="normal",
    cores=16,
    processes=16,  # one thread each: BLAS is not asked for more
    memory="128GB",
    walltime="02:00:00",
    local_directory="/scratch",
    job_script_prologue=["export OMP_NUM_THREADS=1"],
)
cluster.scale(jobs=4)  # 64 workers
client = Client(cluster)
