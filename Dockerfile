# An image that mines on processor cores, and runs flows. docs/operations.md says how it is built and used.
#
#     docker build --tag bicliques .
#     docker run --rm --user "$(id -u)" -v "$PWD":/data -v "bicliques-cache-$(id -u)":/cache bicliques \
#         bicliques mine IN -o OUT

FROM python:3.12-slim-bookworm AS build
ARG EXTRAS=cluster,prefect
COPY . /src
RUN python -m venv /venv \
    && /venv/bin/pip install --no-cache-dir --disable-pip-version-check -c /src/constraints.txt "/src[${EXTRAS}]"

FROM python:3.12-slim-bookworm
COPY --from=build /venv /venv
# What is compiled at the first use is kept in /cache; a volume there keeps it for the next container of the same user.
# The image that this one is made of has no bytecode of the standard library, and a user cannot keep any there.
RUN mkdir --mode=1777 /cache /data \
    && python -m compileall -q /usr/local/lib/python3.12
ENV PATH=/venv/bin:$PATH \
    HOME=/cache \
    XDG_CACHE_HOME=/cache \
    PREFECT_HOME=/cache/prefect \
    PREFECT_SERVER_ANALYTICS_ENABLED=false \
    DO_NOT_TRACK=1
WORKDIR /data
USER 1000
# no ENTRYPOINT, because the workers of Prefect and of Dask start commands of their own
CMD ["bicliques", "--help"]
