"""gpupool: a pool of GPUs, CPUs and NPUs operated by Apache Airflow.

Rooms, each importing only what stands before it:
``pool`` <- ``scheduling`` ; ``telemetry``, ``lake``, ``metering`` <- ``reports`` ; ``jobs`` ; and on top ``airflow``.
"""
