"""Linear maps and kernels on a CPU: by oneDNN, and in C++, compiled when they are used first."""
