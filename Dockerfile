# One image for every service of gpupool. Base image and package index are build arguments:
#   docker build --build-arg BASE_IMAGE=... --build-arg PIP_INDEX_URL=... -t gpupool .
ARG BASE_IMAGE=python:3.11-slim-bookworm
FROM ${BASE_IMAGE}

ARG PIP_INDEX_URL=""
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1

RUN useradd --uid 50000 --gid 0 --no-create-home --home-dir /var/lib/gpupool gpupool \
    && install --directory --owner 50000 --group 0 --mode 0775 /var/lib/gpupool \
    && python3 -m venv /opt/venv

# Dependencies first: they change less often than the code, and Docker keeps the layer.
COPY requirements.txt /tmp/requirements.txt
RUN pip install ${PIP_INDEX_URL:+--index-url "$PIP_INDEX_URL"} --no-deps --requirement /tmp/requirements.txt

WORKDIR /opt/gpupool
COPY pyproject.toml README.md LICENSE ./
COPY include include
RUN pip install ${PIP_INDEX_URL:+--index-url "$PIP_INDEX_URL"} --no-deps .
COPY plugins plugins
COPY dags dags

USER 50000:0
CMD ["airflow", "version"]
