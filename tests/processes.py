"""Several processes of a training, for tests: forked from a server that has imported torch."""

import multiprocessing
import os
import pickle
import socket
import traceback

PRELOADED = ["torch", "torch.distributed.fsdp", "regard.runs.train", "tests.training_bench"]


def run_processes(num, function, *arguments, environment=None):
    """Run a function in several processes, as `torchrun` does; return their results by rank.

    A process that raises has the traceback as its result; one that dies has None.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    with socket.create_server(("localhost", 0)) as server:
        port = server.getsockname()[1]
    pipes, processes = [], []
    for rank in range(num):
        values = {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(num),
            "LOCAL_WORLD_SIZE": str(num),
            "MASTER_ADDR": "localhost",
            "MASTER_PORT": str(port),
            "OMP_NUM_THREADS": "1",
            **(environment or {}),
        }
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_run, args=(sender, values, function, arguments))
        process.start()
        sender.close()
        pipes.append(receiver)
        processes.append(process)
    results = [_receive(pipe) for pipe in pipes]
    for process in processes:
        process.join()
    return results


def _run(sender, values, function, arguments):
    import torch  # noqa: PLC0415 - loaded by the server

    os.environ.update(values)
    torch.set_num_threads(1)
    try:
        # Not `send`, which shares the memory of tensors with a process that ends before.
        sender.send_bytes(pickle.dumps(function(*arguments)))
    except BaseException:
        sender.send_bytes(pickle.dumps(traceback.format_exc()))


def _receive(pipe):
    try:
        return pickle.loads(pipe.recv_bytes())
    except EOFError:
        return None
